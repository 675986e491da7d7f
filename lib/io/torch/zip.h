// The parts of a zip archive that torch.save wrote: the pickle, the byte order, and a record for each
// storage.
#pragma once

#include <string>

#include "core/base/int.h"
#include "io/pickle/pickle.h"
#include "io/zip/zip.h"

namespace mckpt::impl {

struct TorchStorage;

class TorchZip {
 public:
  // Throws kBadTorchFile, kUnsupportedTorchFile and what reading the archive throws. Keeps a reference to the
  // source.
  explicit TorchZip(const ByteSource& source, i64 most_trailing_bytes = 0);

  const ZipArchive& archive() const { return zip_; }
  std::string_view top() const { return top_; }  // the folder that everything lies in, with its slash
  const ZipEntry& pickle() const { return *pickle_; }
  bool big_endian() const { return big_endian_; }
  // Throws kUnsupportedZip, also where it is compressed and far larger than what is stored of it.
  std::vector<u8> read_pickle() const;
  // Throws kBadTorchFile or kBadStorage for what keeps torch from loading the archive though all that is
  // wanted of it can be read.
  void check_loads(const Pickle& pickle) const;
  PickleRules pickle_rules() const { return {.storages = true, .stored_bytes = pickle_->stored_bytes}; }
  // The record of a storage. Throws kBadStorage when it is missing or has another size than the pickle says.
  const ZipEntry& storage(const TorchStorage& s) const;

 private:
  ZipArchive zip_;
  std::string_view top_;
  std::string data_;  // what the names of storages begin with
  const ZipEntry* pickle_;
  bool big_endian_;
};

}  // namespace mckpt::impl
