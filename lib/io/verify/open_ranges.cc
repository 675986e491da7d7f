// The names say which end it is; the values are read again for their signs, one number mostly.
#include "io/verify/open_ranges.h"

#include <algorithm>
#include <string_view>

#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kLower[] = {"input_min", "output_min"}, kUpper[] = {"input_max", "output_max"};

template <typename Names>
bool is_one_of(const Names& names, std::string_view last) {
  return std::ranges::find(names, last) != std::end(names);
}

}  // namespace

bool is_open_range(const Store& store, i64 tensor, const NonFinite& values, TensorReader& reader) {
  const std::string_view name = store.name(tensor), last = name.substr(name.find_last_of("./:") + 1);
  const bool lower = is_one_of(kLower, last);
  if (!lower && !is_one_of(kUpper, last)) return false;
  if (values.nans > 0 || values.infinities != store.shape(tensor).items()) return false;
  const std::size_t width = static_cast<std::size_t>(dtype_info(store.dtype(tensor)).bits) / 8;
  bool fits = width > 0;
  reader.read(tensor, [&](std::span<const u8> bytes, i64) {
    for (std::size_t end = width; fits && end <= bytes.size(); end += width)
      fits = (bytes[end - 1] >= 0x80) == lower;
  });
  return fits;
}

}  // namespace mckpt::impl
