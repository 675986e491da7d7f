// Asks the library for the place of every chunk of a dataset. A dataset of 5 x 4 items in chunks of 2 x 2 has
// a grid of 3 x 2 places, numbered row by row; a chunk that was never written has no bytes:
//
//   place 0  place 1        answer: 5 chunks written, then for each
//   place 2  place 3                place, address, bytes, filters that were skipped
//   place 4    -
//
// The library is asked to read each chunk while the driver only notes where the bytes would be (fd_driver.h).
#include "hdf5/chunks.h"

#include <algorithm>

#include "hdf5/fd_driver.h"

namespace mckpt::impl {
namespace {

// The number of places of the grid. Saturates, because it is compared with a limit.
hsize_t places(const std::vector<hsize_t>& dims, const std::vector<hsize_t>& chunk) {
  hsize_t all = 1;
  for (std::size_t d = 0; d < dims.size(); d++) {
    hsize_t here = dims[d] / chunk[d] + (dims[d] % chunk[d] != 0);
    if (__builtin_mul_overflow(all, here, &all)) return HSIZE_UNDEF;
  }
  return all;
}

// The next place in row-major order.
void step(std::vector<hsize_t>& at, const std::vector<hsize_t>& dims, const std::vector<hsize_t>& chunk) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    at[d] += chunk[d];
    if (at[d] < dims[d]) return;
    at[d] = 0;
  }
}

// Where the library would read the chunk at a place, and the filters that it skips. False if the chunk was
// never written, or the index is damaged: then fewer chunks are found than the library counts.
bool find_chunk(hid_t dataset, const std::vector<hsize_t>& at, Stretch& stretch, std::uint32_t& mask) {
  char none;  // is not written to: the driver reads nothing
  stretch = {};
  LocateData locate(stretch);
  return H5Dread_chunk(dataset, H5P_DEFAULT, at.data(), &mask, &none) >= 0 && stretch.count == 1;
}

}  // namespace

ChunkAnswer add_chunks(Answer& out, Effort& effort, hid_t dataset, const std::vector<hsize_t>& dims,
                       const std::vector<hsize_t>& chunk) {
  SpaceHandle space(H5Dget_space(dataset));
  hsize_t written = 0, all = places(dims, chunk);
  if (!space || H5Dget_num_chunks(dataset, space, &written) < 0) return ChunkAnswer::kDamaged;
  if (written > 0 && !effort.take_places(all)) return ChunkAnswer::kTooMany;
  out.number(written);
  std::vector<hsize_t> at(dims.size());
  for (hsize_t place = 0; place < all && written > 0; place++, step(at, dims, chunk)) {
    Stretch stretch;
    std::uint32_t mask = 0;
    if (!find_chunk(dataset, at, stretch, mask)) continue;
    out.number(place).number(stretch.address).number(stretch.bytes).number(mask);
    written--;
  }
  return written == 0 ? ChunkAnswer::kWhole : ChunkAnswer::kDamaged;
}

}  // namespace mckpt::impl
