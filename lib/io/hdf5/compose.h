// HDF5's answer to the description of a file: the places of the data, and all other bytes. The HDF5 library
// runs in mckpt-hdf5 (io/hdf5/wire.h), which writes nothing; data and all other bytes are written by the
// caller.
//
//   Hdf5Request file(512);                                     ComposedHdf5 made = compose_hdf5(file, folders);
//   i64 w = file.contiguous("w", bf16, {4, 2});                made.offsets[w]     3584
//   file.text("dtype", "bfloat16");                            made.pieces         (512, "\x89HDF..."), ...
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct Hdf5Mapping;
struct Hdf5Type;

// A description, object by object. Attributes belong to the object before them; the first ones to the root.
class Hdf5Request {
 public:
  // `user_block`: bytes in front of the file that HDF5 leaves alone: 0, 512, 1024, 2048, ...
  explicit Hdf5Request(i64 user_block);

  void group(std::string_view path);
  // Returns the number of the dataset among the contiguous ones.
  i64 contiguous(std::string_view path, const Hdf5Type& type, std::span<const i64> dims);
  // The file names in `mappings` are relative to the folder of the file.
  void virtual_dataset(std::string_view path, const Hdf5Type& type, std::span<const i64> dims,
                       std::span<const Hdf5Mapping> mappings);
  void text(std::string_view name, std::string_view value);
  void numbers(std::string_view name, std::span<const i64> values);

  i64 objects() const { return objects_; }
  i64 datasets() const { return datasets_; }
  // Ends the description.
  std::string take();

 private:
  void byte(int v) { bytes_ += static_cast<char>(v); }
  void number(i64 v);
  void put(std::string_view text);
  void type(const Hdf5Type& type);
  void list(std::span<const i64> values);

  std::string bytes_;
  i64 objects_ = 0, datasets_ = 0;
};

// Bytes of the file that are not data.
struct Hdf5Piece {
  i64 offset = 0;
  std::string bytes;
};

struct ComposedHdf5 {
  std::vector<i64> offsets;       // of each contiguous dataset; -1: it has no items
  std::vector<Hdf5Piece> pieces;  // ascending, apart
  i64 bytes = 0;                  // of the file
};

// Lays the file out; equal requests give equal files by one version of the library. Throws kModuleMissing
// without the program, kHelperFailed, and kNotHeld with the library's words for what HDF5 cannot store.
ComposedHdf5 compose_hdf5(Hdf5Request request, std::span<const std::string> folders);

}  // namespace mckpt::impl
