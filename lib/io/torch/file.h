// A file of torch.save: a zip archive (torch 1.6 and newer) or the stream of pickles and raw storages before
// that.
#pragma once

#include "core/base/int.h"
#include "io/store/checksum.h"
#include "io/store/finding.h"
#include "io/torch/table.h"

namespace mckpt::impl {

class ByteSource;

// What reading the headers of one file gives.
struct TorchFile {
  TorchTable table;
  std::string format{};   // "torch.save zip", "torch.save legacy"
  i64 pickle_offset = 0;  // of the pickle that the table comes from
  i64 pickle_bytes = 0;
  bool big_endian = false;            // of the storages
  std::vector<Checksum> checksums{};  // without the file
  std::vector<Finding> findings{};
  std::vector<std::pair<std::string, std::string>> facts{};
};

// By what the file begins with. Throws kBadTorchFile, kUnsupportedTorchFile and what zip and pickle throw.
TorchFile read_torch_file(const ByteSource& file);

TorchFile read_torch_zip(const ByteSource& file);
TorchFile read_torch_legacy(const ByteSource& file);

// The number that the first pickle of the legacy form is.
bool is_torch_magic(PickleValue v);

}  // namespace mckpt::impl
