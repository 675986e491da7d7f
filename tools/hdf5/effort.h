// The limits of one file's cost. A file of some kilobytes can describe a grid of a million chunks, and name
// it a hundred times: so what is looked up is counted over the whole file, and the limit grows with its
// bytes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mckpt::impl {

// A budget for one file: 65,536 places and one more for each 16 bytes of the file; of whole attributes as
// many bytes as the file has, 16 MiB at most.
class Effort {
 public:
  explicit Effort(std::uint64_t file_bytes)
      : places_(kPlaces + file_bytes / kBytesPerPlace), values_(std::min(file_bytes, kValues)) {}

  // Counts the grid of a dataset's chunks, each of which is looked up, written or not. False: so many are
  // beyond what is left, and none is taken.
  bool take_places(std::uint64_t places) {
    if (places > places_) return false;
    places_ -= places;
    return true;
  }

  // Counts the bytes of an attribute that the answer has whole: a file can name one text many times. False:
  // more than what is left, and nothing is taken.
  bool take_value(std::uint64_t bytes) {
    if (bytes > values_) return false;
    values_ -= bytes;
    return true;
  }

 private:
  static constexpr std::uint64_t kPlaces = std::uint64_t{1} << 16, kBytesPerPlace = 16,
                                 kValues = std::uint64_t{1} << 24;
  std::uint64_t places_, values_;
};

}  // namespace mckpt::impl
