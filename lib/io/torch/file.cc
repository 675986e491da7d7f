// Finds out which form of torch.save a file has, and refuses files whose tensors are larger in total than
// any model's.
#include "io/torch/file.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/pickle/arena.h"
#include "io/pickle/pickle.h"
#include "io/store/open/sniff.h"

namespace mckpt::impl {
namespace {

// Limits of the size of all tensors together: 8 GiB, or 64 times the file.
constexpr i64 kMostSharedBytes = i64{8} << 30, kMostSharing = 64;  // the second: times the size of the file
constexpr std::array<u8, 10> kMagic = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

// The magic number in a pickle of any protocol; sniff() recognises it in protocol 2 alone.
bool begins_with_magic(const ByteSource& file) {
  std::vector<u8> head = file.read(0, std::min<i64>(file.size(), 64));
  try {
    return is_torch_magic(Pickle(head).root());
  } catch (const Error&) {
    return false;
  }
}

// A pickle that torch.save did not write. It is read all the same, so that the error can say if a loader
// would run code.
[[noreturn]] void throw_bare_pickle(const ByteSource& file) {
  auto pickle = Pickle::own(file.read(0, std::min(file.size(), PickleArena::kMostBytes)), {.storages = true});
  for (const PickleNote& note : pickle->notes())
    if (!note.warning) throw Error(note.code, note.message).offset(note.offset);
  throw Error(Code::kUnsupportedTorchFile,
              "this is a bare pickle without torch's magic number: torch.save did not write it")
      .help("load it where it came from, and save it with torch.save");
}

// The formats that are not read are named, with what to do.
TorchFile read_by_kind(const ByteSource& file, ShardRecords records) {
  FileKind kind = sniff(file);
  switch (kind) {
    case FileKind::kZip:
      return read_torch_zip(file, records);
    case FileKind::kLegacyTorch:
      return read_torch_legacy(file, records);
    case FileKind::kPickle:
      if (begins_with_magic(file)) return read_torch_legacy(file, records);
      throw_bare_pickle(file);
    case FileKind::kTar:
      throw Error(Code::kUnsupportedTorchFile,
                  "this is a tar archive, the format of torch before 0.2: unsupported")
          .help("load it with torch.load where it is trusted, and save it again");
    default: {
      if (begins_with_magic(file)) return read_torch_legacy(file, records);
      std::string_view name = sniffed_name(kind);
      throw Error(Code::kBadTorchFile, "this is not a file of torch.save: the format is not recognized")
          .expected("a zip archive (PK), or the magic number of the legacy format")
          .found(name.empty() ? "neither" : name);
    }
  }
}

// Throws kBadView. Tensors may share storages and repeat their items, so reading all of them may be far
// more work than reading the file; more than any model needs is refused.
void check_total_size(const TorchTable& table, i64 file_bytes) {
  const i64 most = kMostSharedBytes + kMostSharing * std::min(file_bytes, INT64_MAX / kMostSharing / 2);
  i64 total = 0;
  for (i64 row = 0; row < table.size(); row++) {
    const i64 bytes = dtype_bytes(table.dtype(row), Shape(table.dims(row)).items());
    if (bytes > most - total)
      throw Error(Code::kBadView, "the tensors share storages and have an enormous size together")
          .expected(cat("at most ", most, " bytes, in a file of ", file_bytes))
          .found(cat("more, from the tensor '", escaped(table.name(row)), "' on"));
    total += bytes;
  }
}

}  // namespace

// A number written as text may have one byte more, for the sign.
bool is_torch_magic(PickleValue v) {
  // Written as text it may have a byte more, for the sign.
  return v.is(PickleValue::Kind::kBigInt) && v.size() >= static_cast<i64>(kMagic.size()) &&
         std::equal(kMagic.begin(), kMagic.end(), v.bytes().begin()) &&
         std::all_of(v.bytes().begin() + kMagic.size(), v.bytes().end(), [](u8 b) { return b == 0; });
}

TorchFile read_torch_file(const ByteSource& file, ShardRecords records) {
  TorchFile torch = read_by_kind(file, records);
  check_total_size(torch.table, file.size());
  return torch;
}

}  // namespace mckpt::impl
