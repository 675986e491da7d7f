// What a file seems to be, by its first bytes.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

enum class FileKind : u8 {
  kUnknown,
  kEmpty,
  kSafetensors,
  kZip,
  kLegacyTorch,  // torch.save before 1.6: pickles and raw storages
  kPickle,
  kTar,  // torch.save before 0.2
  kHdf5,
  kGguf,
  kNumpy,
  kGzip,
  kLfsPointer,
  kHtml,
  kJson,
};

FileKind sniff(const ByteSource& file);

// Where the superblock of an HDF5 file lies: at 0, or behind a user block of 512, 1024, 2048 ... bytes, in
// which anything may stand; -1: this is no HDF5 file.
i64 find_hdf5_superblock(const ByteSource& file);

// "a git-lfs pointer (...)", for messages; "" for kUnknown and kSafetensors.
std::string_view sniffed_name(FileKind kind);

}  // namespace mckpt::impl
