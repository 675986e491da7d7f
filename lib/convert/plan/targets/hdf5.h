// A checkpoint of any format as an HDF5 archive, and the files of the checkpoint back again.
// docs/formats/archive.md.
//
//   Qwen3-0.6B/                     -->   archive/archive.h5, model.safetensors.h5
//   ckpt/iter_0000010/ (8 ranks)    -->   archive/archive.h5, __0_0.distcp.h5 ... __7_0.distcp.h5
//   any of them                     -->   ckpt.h5                                    a single file
//
// The archive has every file of the checkpoint, bit for bit; tensors are datasets that other programs read as
// numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

struct Conversion;

// Plain values.
struct ToHdf5Options {
  std::string source, target;
  bool single_file = false;             // `target` is a file, as one that ends in .h5 always is
  std::optional<std::string> assets{};  // a folder with config.json and tokenizer that go with the checkpoint
  std::vector<Code> accept{};           // codes of damage that is accepted
  OpenOptions files{};
};

// Throws kUnknownFormat for a source that is an archive or an HDF5 file; DamagedCheckpoint; what
// archived_files() and ArchiveLayout throw.
Conversion plan_to_hdf5(const ToHdf5Options& options);

struct FromHdf5Options {
  std::string source, target;
  OpenOptions files{};
};

// The files that an archive was made of: a folder, or one file where the checkpoint was one. Throws
// kUnknownFormat for a source that is not an archive, kNotFound or kReadFailed for a part that is missing or
// has another size.
Conversion plan_from_hdf5(const FromHdf5Options& options);

}  // namespace mckpt::impl
