// Guesses the kind of a file by its first bytes: the format to open it with, or the name of something that is
// not a checkpoint at all, so that an error can say what the user really has: "this is an HTML page, so the
// download was an error page". A guess only: the reader of the format checks everything.
//
//   50 4b 03 04                                    "PK"     kZip: torch.save since 1.6
//   98 00 00 00 00 00 00 00 7b                     8-byte length and "{"    kSafetensors
//   89 48 44 46 0d 0a 1a 0a                        "\x89HDF"                kHdf5
//   76 65 72 73 69 6f 6e 20 68 74 74 70 73 ...     "version https://git-lfs"    kLfsPointer
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;

// kUnknown: none of the others, which a reader may still recognise by the file's suffix.
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
  kNumpyArchive,
  kOnnx,
  kTflite,
  kGzip,
  kLfsPointer,
  kHtml,
  kJson,
  kZeros,
};

// Throws kReadFailed.
FileKind sniff(const ByteSource& file);

// The offset of the superblock of an HDF5 file: 0, or the size of a user block of 512, 1024, 2048 ... bytes,
// which may contain anything; -1: this is not an HDF5 file. Throws kReadFailed.
i64 find_hdf5_superblock(const ByteSource& file);

// "a git-lfs pointer (...)", for messages; "" for kUnknown and kSafetensors.
std::string_view sniffed_name(FileKind kind);

}  // namespace mckpt::impl
