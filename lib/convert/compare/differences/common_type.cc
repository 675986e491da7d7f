// Orders the types by the values that they have, and looks behind the views that decode.
#include "convert/compare/differences/common_type.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/scheme.h"
#include "io/store/store.h"
#include "io/values/element.h"

namespace mckpt::impl {

namespace {

// Numbers as a type has them: whole numbers of so many bits beside the sign, or floats by the bits of their
// fraction and the powers of two of their smallest and largest value.
struct Reach {
  bool whole = false, negative = true;
  int bits = 0;
  int lowest = 0, highest = 0;  // of floats
};

std::optional<Reach> reach_of(DType type) {
  const DTypeInfo& info = dtype_info(type);
  switch (info.kind) {
    case DTypeKind::kBool:
      return Reach{.whole = true, .negative = false, .bits = 1};
    case DTypeKind::kUnsigned:
      return Reach{.whole = true, .negative = false, .bits = info.bits};
    case DTypeKind::kSigned:
      return Reach{.whole = true, .bits = info.bits - 1};
    case DTypeKind::kFloat:
      break;
    default:
      return std::nullopt;
  }
  if (type == DType::kF64) return Reach{.bits = 53, .lowest = -1074, .highest = 1023};
  if (type == DType::kF32) return Reach{.bits = 24, .lowest = -149, .highest = 127};
  const SmallFloat* f = info.bits >= 8 ? small_float(type) : nullptr;
  if (!f) return std::nullopt;
  const bool of_numbers =
      f->special != SmallFloat::Special::kIeee && f->special != SmallFloat::Special::kScale;
  const int largest = (1 << f->exponent_bits) - (of_numbers ? 1 : 2);
  return Reach{.bits = f->mantissa_bits + 1,
               .lowest = 1 - f->bias - f->mantissa_bits - (f->special == SmallFloat::Special::kScale),
               .highest = largest - f->bias};
}

// From the narrowest on; of two of one size whole numbers come first.
constexpr DType kCommon[] = {DType::kU8,  DType::kI8,  DType::kU16, DType::kI16, DType::kF16, DType::kBF16,
                             DType::kU32, DType::kI32, DType::kF32, DType::kU64, DType::kI64, DType::kF64};

template <typename T>
void append(T value, std::vector<u8>& out) {
  const u8* bytes = reinterpret_cast<const u8*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

// Exact for all whole numbers of 64 bits.
u64 whole_at(DType type, const u8* items, i64 index) {
  switch (type) {
    case DType::kI8:
      return static_cast<u64>(i64{load<std::int8_t>(items, index)});
    case DType::kI16:
      return static_cast<u64>(i64{load<std::int16_t>(items, index)});
    case DType::kI32:
      return static_cast<u64>(i64{load<i32>(items, index)});
    case DType::kU16:
      return load<u16>(items, index);
    case DType::kU32:
      return load<u32>(items, index);
    case DType::kI64:
    case DType::kU64:
      return load<u64>(items, index);
    default:
      return items[index];
  }
}

}  // namespace

bool holds_values_of(DType to, DType from) {
  if (to == from) return true;
  const std::optional<Reach> wide = reach_of(to), narrow = reach_of(from);
  if (!wide || !narrow || wide->bits < narrow->bits) return false;
  if (wide->whole) return narrow->whole && (wide->negative || !narrow->negative);
  return narrow->whole || (wide->lowest <= narrow->lowest && wide->highest >= narrow->highest);
}

std::optional<DType> common_type(DType a, DType b) {
  if (a == b) return a;
  for (DType one : {a, b})
    if (std::ranges::find(kCommon, one) != std::end(kCommon) && holds_values_of(one, one == a ? b : a))
      return one;
  for (DType wide : kCommon)
    if (holds_values_of(wide, a) && holds_values_of(wide, b)) return wide;
  return std::nullopt;
}

void append_widened(DType from, DType to, std::span<const u8> items, std::vector<u8>& out) {
  const i64 bytes = dtype_bytes(from, 1), wide = dtype_bytes(to, 1), count = std::ssize(items) / bytes;
  const std::size_t begin = out.size();
  if (from == to) return static_cast<void>(out.insert(out.end(), items.begin(), items.end()));
  if (is_castable(from)) {
    out.resize(begin + static_cast<std::size_t>(count * wide));
    return cast_items({from, to, to}, items.data(), &out[begin], count);
  }
  out.reserve(begin + static_cast<std::size_t>(count * wide));
  for (i64 i = 0; i < count; i++) {
    if (dtype_info(to).kind != DTypeKind::kFloat) {
      const u64 value = whole_at(from, items.data(), i);  // its low bytes come first
      const u8* low = reinterpret_cast<const u8*>(&value);
      out.insert(out.end(), low, low + wide);
      continue;
    }
    const double value = number_at(from, items.data(), i);
    if (to == DType::kF64) {
      append(value, out);
      continue;
    }
    const float narrow = static_cast<float>(value);
    u8 cast[sizeof narrow];
    cast_items({DType::kF32, to, to}, reinterpret_cast<const u8*>(&narrow), cast, 1);
    out.insert(out.end(), cast, cast + wide);
  }
}

std::string stored_form(const Store& store, i64 tensor) {
  if (const AdaptedStore* merged = adapted_view(store)) return stored_form(merged->base(), tensor);
  const DequantizedStore* view = dequantized_view(store);
  const QuantizedTensor* q = view ? view->quantized(tensor) : nullptr;
  return q ? scheme_text(q->layout) : std::string(dtype_name(store.dtype(tensor)));
}

}  // namespace mckpt::impl
