#include "convert/compare/differences/counting.h"

#include <cmath>
#include <cstring>

#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "io/values/element.h"

namespace mckpt::impl {

void adopt_nans(DType dtype, std::span<const u8> expected, std::span<u8> found) {
  if (!is_castable(dtype)) return;
  const std::size_t bytes = static_cast<std::size_t>(dtype_bytes(dtype, 1));
  for (std::size_t at = 0; at < found.size(); at += bytes)
    if (std::isnan(value_of(dtype, &expected[at])) && std::isnan(value_of(dtype, &found[at])))
      std::memcpy(&found[at], &expected[at], bytes);
}

StretchCount count_differences(const DistanceMeter& by, std::span<const u8> found,
                               std::span<const u8> expected, const Tolerance& within) {
  StretchCount out;
  if (by.measures()) out.distance = by.between(found, expected, within);
  // A complex number is one item of two numbers.
  if (out.distance && element_form(by.dtype()).per_element == 1) {
    out.items = out.distance->differing;
    return out;
  }
  const i64 bytes = dtype_bytes(by.dtype(), 1);
  for (i64 at = 0; at < std::ssize(found); at += bytes)
    out.items += std::memcmp(&found[static_cast<std::size_t>(at)], &expected[static_cast<std::size_t>(at)],
                             static_cast<std::size_t>(bytes)) != 0;
  return out;
}

}  // namespace mckpt::impl
