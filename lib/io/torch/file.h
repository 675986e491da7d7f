// A file of torch.save: a zip archive (torch 1.6 and newer), or before that a stream of pickles and raw
// storages. In both, tensors are views of storages: a tensor is (storage, offset, sizes, strides), and
// several tensors may share one storage.
//
//   pickle     {"w": tensor(storage "0", offset 0, size (6, 4), stride (4, 1)), "b": tensor(storage "1", ..)}
//   storages   "0": 96 bytes at 1024    "1": 24 bytes at 1152
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "io/store/checksum.h"
#include "io/store/finding.h"
#include "io/store/format.h"
#include "io/torch/table/table.h"

namespace mckpt::impl {

class ByteSource;

// The headers of one file. Made by read_torch_file(), taken over by TorchStore.
struct TorchFile {
  TorchTable table;
  Format format{};
  i64 pickle_offset = 0;  // of the pickle that the table comes from
  i64 pickle_bytes = 0;
  bool big_endian = false;  // of the storages
  // The name of the file when torch.save wrote it, without its ending; empty where the file does not say it:
  // torch writes it as the folder in the archive, and "archive" if it was given an open file.
  std::string saved_name{};
  // Checksums have no file number yet.
  std::vector<Checksum> checksums{};
  std::vector<Finding> findings{};
  std::vector<std::pair<std::string, std::string>> facts{};
};

// Whether the boxes of shards are taken out of the pickle (ShardRows), as the tensors need no more of them;
// or kept, for those who look at all of a value.
enum class ShardRecords : u8 { kTakenOut, kKept };

// Decides by the first bytes. Throws kBadTorchFile, kUnsupportedTorchFile and what zip and pickle throw.
TorchFile read_torch_file(const ByteSource& file, ShardRecords records = ShardRecords::kTakenOut);

// Readers of the two forms.
TorchFile read_torch_zip(const ByteSource& file, ShardRecords records = ShardRecords::kTakenOut);
TorchFile read_torch_legacy(const ByteSource& file, ShardRecords records = ShardRecords::kTakenOut);

// Whether the value is the number that begins the legacy form, 0x1950a86a20f9469cfc6c.
bool is_torch_magic(PickleValue v);

}  // namespace mckpt::impl
