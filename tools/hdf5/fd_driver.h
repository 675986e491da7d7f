// How the HDF5 library reaches the file: a driver that reads standard input and can do nothing else. No name
// is ever opened, and a user block before the superblock is not part of the file that the
// library sees, so that all its addresses count from there, whichever version it is.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

namespace mckpt::impl {

// Properties for H5Fopen of the file whose superblock is at `begin`. Negative if the library refuses.
hid_t input_access(std::int64_t begin);
// The bytes of that file, from its superblock on.
std::uint64_t input_bytes();
// All bytes of standard input, where that is a request and not an HDF5 file; fewer if reading fails.
std::string whole_input();

// Where the library would have read stored data: the place of the last such read, and how many there were.
struct Stretch {
  std::uint64_t address = 0, bytes = 0;
  int count = 0;  // of reads
};

// While one exists, data are not read: where they would be is noted instead. That is how a chunk is located.
// The library's own question, H5Dget_chunk_info, walks all chunks for each.
class LocateData {
 public:
  explicit LocateData(Stretch& to);
  ~LocateData();
  LocateData(const LocateData&) = delete;
  LocateData& operator=(const LocateData&) = delete;
};

}  // namespace mckpt::impl
