#include "convert/compare/differences/counting.h"

#include <cstring>

#include "core/items/dtype.h"
#include "io/values/element.h"

namespace mckpt::impl {

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
