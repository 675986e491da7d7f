// The transposed one of two matrices is read as stripes: all of its rows, and as many columns as the other
// one has rows in a window.
#include "hf/adapter/lora/tied_factors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/pairing.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/same_bytes.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr i64 kItemsOfStripe = i64{1} << 20;

// Whether `tall` [rows, columns] is `flat` [columns, rows], transposed.
bool is_transpose(const Store& store, i64 tall, i64 flat) {
  const i64 rows = store.dims(tall)[0], columns = store.dims(tall)[1];
  const i64 wanted[] = {columns, rows};
  if (store.dtype(tall) != store.dtype(flat) || !std::ranges::equal(store.dims(flat), wanted)) return false;
  if (rows == 0 || columns == 0) return true;
  const i64 width = dtype_bytes(store.dtype(tall), 1), step = std::max(kItemsOfStripe / columns, i64{1});
  const StoreFiles files(store);
  TensorReader of_tall(store, files), of_flat(store, files);
  std::vector<u8> window, line;
  auto read = [&](TensorReader& reader, i64 tensor, i64 begin, i64 end, std::vector<u8>& to) {
    to.resize(static_cast<std::size_t>((end - begin) * width));
    reader.read(tensor, begin, end, [&](std::span<const u8> bytes, i64 at) {
      std::memcpy(to.data() + (at - begin * width), bytes.data(), bytes.size());
    });
  };
  for (i64 first = 0; first < rows; first += step) {
    const i64 end = std::min(first + step, rows);
    read(of_tall, tall, first * columns, end * columns, window);
    for (i64 c = 0; c < columns; c++) {
      read(of_flat, flat, c * rows + first, c * rows + end, line);
      for (i64 r = 0; r < end - first; r++)
        if (std::memcmp(window.data() + (r * columns + c) * width, line.data() + r * width,
                        static_cast<std::size_t>(width)) != 0)
          return false;
    }
  }
  return true;
}

// Reads along the longer side, whichever of the two has it.
bool are_transposed(const Store& store, i64 one, i64 other) {
  return store.dims(one)[0] >= store.dims(one)[1] ? is_transpose(store, one, other)
                                                  : is_transpose(store, other, one);
}

// In what the pairs are not one, as "other values of x.lora_A.weight"; "" if they are.
std::string unlike_factors(const Store& adapter, const AdaptedFactors& one, const AdaptedFactors& other) {
  if (one.magnitude >= 0 || other.magnitude >= 0) return "magnitudes of their own";
  if (one.scale != other.scale) return cat("the scales ", one.scale, " and ", other.scale);
  std::array pairs{std::pair(one.a, other.a), std::pair(one.b, other.b)};
  const bool turned = one.turned != other.turned;
  if (turned) std::swap(pairs[0].second, pairs[1].second);
  for (auto [of_one, of_other] : pairs)
    if (turned ? !are_transposed(adapter, of_one, of_other)
               : !have_same_bytes(adapter, std::array{std::pair(of_one, of_other)}, 1)[0])
      return cat("other values of ", escaped(adapter.name(of_other)));
  return "";
}

}  // namespace

void require_one_pair(const Store& adapter, const AdaptedFactors& one, const AdaptedFactors& other) {
  const std::string unlike = unlike_factors(adapter, one, other);
  if (unlike.empty()) return;
  throw Error(
      Code::kUnsupportedTensor,
      "the config says that two modules of the vocabulary have one pair of factors, and the adapter has two, so the trained model has two weights where its base has one")
      .tensor(adapter.name(other.a))
      .expected(cat("the product of ", escaped(adapter.name(one.a)), ", as ensure_weight_tying says"))
      .found(unlike)
      .help(
          "PEFT loses this tie in training where it makes the factors of a base in bfloat16 or float16; ensure_weight_tying false, with both modules in target_modules, gives the sum of both, as merge_and_unload() makes it");
}

}  // namespace mckpt::impl
