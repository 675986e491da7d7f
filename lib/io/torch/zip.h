// The parts of a zip archive that torch.save wrote: the pickle, the byte order, and a record for each
// storage. Used for whole .pt files, and for each record of a .distcp file.
#pragma once

#include <string>

#include "core/base/int.h"
#include "io/pickle/pickle.h"
#include "io/zip/zip.h"

namespace mckpt::impl {

struct TorchStorage;

// An archive whose directory was read; its records are read on demand.
class TorchZip {
 public:
  // Keeps a reference to the source. Throws kBadTorchFile, kUnsupportedTorchFile and what reading the
  // archive throws.
  explicit TorchZip(const ByteSource& source, i64 most_trailing_bytes = 0);

  const ZipArchive& archive() const { return zip_; }
  // The folder that everything is in, with its slash: "archive/".
  std::string_view top() const { return top_; }
  const ZipEntry& pickle() const { return *pickle_; }
  bool big_endian() const { return big_endian_; }
  // Throws kUnsupportedZip, also for a compressed pickle that is far larger than its stored bytes.
  std::vector<u8> read_pickle() const;
  // Throws kBadTorchFile or kBadStorage for what keeps torch from loading the archive although everything
  // needed here can be read.
  void check_loads(const Pickle& pickle) const;
  PickleRules pickle_rules() const { return {.storages = true, .stored_bytes = pickle_->stored_bytes}; }
  // The record of a storage. Throws kBadStorage if it is missing or its size differs from the pickle's.
  const ZipEntry& storage(const TorchStorage& s) const;

 private:
  ZipArchive zip_;
  std::string_view top_;
  std::string data_;  // what the names of storages begin with
  const ZipEntry* pickle_;
  bool big_endian_;
};

}  // namespace mckpt::impl
