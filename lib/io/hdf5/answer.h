// The answer of mckpt-hdf5 (io/hdf5/wire.h), parsed. The program reads files that may be made to harm it,
// so its answer is trusted no more than a file: everything is counted before memory is taken, and nonsense
// is an error. Whether the facts fit each other and the file is judged later (io/hdf5/layout.h).
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/hdf5/wire.h"

namespace mckpt::impl {

// A type as HDF5 describes it; hdf5_dtype() (layout.h) finds torch's name for it.
struct Hdf5Type {
  hdf5_wire::TypeClass kind = hdf5_wire::TypeClass::kInteger;
  i64 bytes = 0;
  bool big_endian = false;
  std::array<i64, hdf5_wire::kTypeNumbers> numbers{};
};

// A filter of a chunked dataset: its number at the HDF Group, and its first parameter.
struct Hdf5Filter {
  i64 id = 0, parameter = 0;
};

// One stored chunk.
struct Hdf5Chunk {
  i64 place = 0;    // in the grid of chunks, row-major
  i64 offset = 0;   // from the superblock
  i64 bytes = 0;    // as stored
  i64 skipped = 0;  // bit i: filter i was not applied
};

// A box of a virtual dataset, and the dataset of the same sizes that has its items.
struct Hdf5Mapping {
  std::string file, dataset;  // file ".": the same
  std::vector<i64> offsets, sizes;
};

// A dataset. A number too large for 63 bits in the file is the largest one here: no size or place fits it.
struct Hdf5Dataset {
  std::string name;
  i64 address = 0;  // of its header: the same for two names of one dataset
  Hdf5Type type;
  std::vector<i64> dims;
  std::vector<u8> fill;  // one element; empty: zeros
  hdf5_wire::Storage storage = hdf5_wire::Storage::kContiguous;
  i64 offset = -1, bytes = 0;  // contiguous; -1: never written
  std::vector<u8> compact;
  std::vector<i64> chunk_dims;
  std::vector<Hdf5Filter> filters;
  std::vector<Hdf5Chunk> chunks;
  std::vector<Hdf5Mapping> mappings;
};

// An attribute of a group or dataset, printed, and its whole value: `bytes`, of which `layout` says what they
// are; "" if they are not known.
struct Hdf5Attribute {
  std::string owner, name, type, value;
  std::string layout, bytes;
};
// Anything that is not a tensor: strings, compounds, and so on.
struct Hdf5Other {
  std::string name, what;
  bool values_left_out = false;
};
// A soft link: a name for another path.
struct Hdf5Link {
  std::string name, target;
};
// A part that the library or the helper could not read, with the library's words.
struct Hdf5Fault {
  std::string name, words;
  hdf5_wire::Blame blame = hdf5_wire::Blame::kDamaged;
};

// All records, by kind.
struct Hdf5Answer {
  std::vector<std::string> groups;
  std::vector<Hdf5Dataset> datasets;
  std::vector<Hdf5Attribute> attributes;
  std::vector<Hdf5Other> others;
  std::vector<Hdf5Link> links;
  std::vector<Hdf5Fault> faults;
};

// Throws kHelperFailed.
Hdf5Answer parse_hdf5_answer(std::span<const u8> answer);

}  // namespace mckpt::impl
