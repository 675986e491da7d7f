// Unpacks records with the extensions that torch has.
#include "io/dcp/packing.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/dcp/item.h"
#include "io/dcp/metadata/metadata.h"
#include "io/file/crc32.h"
#include "io/file/parallel.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/zstd/zstd.h"

namespace mckpt::impl {
namespace {

// Unpacked records are kept up to so many bytes, and one for each thread that reads a chunk, whatever its
// size: a record that is not kept is unpacked again for each block of its chunk.
constexpr i64 kMostKeptBytes = i64{1} << 30;
// The largest pickle that is read, and what is around it in an archive.
constexpr i64 kMostObject = (i64{256} << 20) + (i64{1} << 20);

constexpr std::string_view kZstd = "stream.zstd/1";

// torch reads all versions that begin with 1: "stream.zstd/1", "stream.zstd/1.2".
bool is_zstd(std::string_view extension) {
  return extension.starts_with(kZstd) && (extension.size() == kZstd.size() || extension[kZstd.size()] == '.');
}

class UnpackedBytes final : public ByteSource {
 public:
  explicit UnpackedBytes(std::vector<u8> bytes) : ByteSource(std::ssize(bytes)), bytes_(std::move(bytes)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
  }
  std::vector<u8> bytes_;
};

// A part of an open file, which it keeps open.
class FilePart final : public ByteSource {
 public:
  FilePart(std::shared_ptr<const InputFile> file, i64 offset, i64 bytes)
      : ByteSource(bytes), file_(std::move(file)), part_(*file_, offset, bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override { part_.read(offset, to); }
  std::shared_ptr<const InputFile> file_;
  RangeSource part_;
};

// Zstandard has no sums of its own here; the archive's sums cover what matters.
void check_sums(std::span<const u8> archive) {
  MemorySource source(archive);
  each_item_checksum(source, [&](i64 offset, i64 bytes, u32 crc, std::string_view name) {
    u32 found = crc32(0, archive.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(bytes)));
    if (found != crc)
      throw Error(Code::kBadChecksum,
                  cat("the checksum (CRC-32) of '", escaped(name), "' does not match its bytes"))
          .expected(crc)
          .found(found);
  });
}

}  // namespace

std::vector<u8> unpack_record(const ByteSource& record, std::string_view packing, i64 most_bytes) {
  std::vector<u8> bytes = record.read(0, record.size());
  while (!packing.empty()) {
    std::size_t comma = packing.rfind(',');
    std::string_view extension = comma == packing.npos ? packing : packing.substr(comma + 1);
    if (!is_zstd(extension))
      throw Error(Code::kItemMismatch,
                  "the record was written through an extension of torch's DCP that mckpt does not know")
          .expected(cat(kZstd, ", or no extension"))
          .found(escaped(extension))
          .help("load the checkpoint with the program that saved it, and save it without extensions");
    bytes = unpack_zstd(bytes, most_bytes);
    packing = packing.substr(0, comma == packing.npos ? 0 : comma);
  }
  check_sums(bytes);
  return bytes;
}

std::shared_ptr<const ByteSource> open_object_record(const StoreFiles& files, const Object& object) {
  auto part = std::make_shared<FilePart>(files.open(object.file), object.record_offset, object.record_bytes);
  if (object.packing.empty()) return part;
  return std::make_shared<UnpackedBytes>(unpack_record(*part, object.packing, kMostObject));
}

std::shared_ptr<const ByteSource> UnpackedRecords::find(const DcpRecord& record) const {
  std::lock_guard lock(mutex_);
  for (auto at = kept_.begin(); at != kept_.end(); ++at) {
    if (at->file != record.file || at->offset != record.offset) continue;
    kept_.splice(kept_.begin(), kept_, at);
    return at->bytes;
  }
  return nullptr;
}

// Unpacked without the lock; two threads that want one record both do it.
std::shared_ptr<const ByteSource> UnpackedRecords::open(const StoreFiles& files, const DcpRecord& record,
                                                        std::string_view packing, i64 most_bytes) const {
  if (std::shared_ptr<const ByteSource> known = find(record)) return known;
  FilePart part(files.open(record.file), record.offset, record.bytes);
  auto bytes = std::make_shared<const UnpackedBytes>(unpack_record(part, packing, most_bytes));
  std::lock_guard lock(mutex_);
  kept_.push_front({record.file, record.offset, bytes});
  kept_bytes_ += bytes->size();
  while (kept_bytes_ > kMostKeptBytes && std::ssize(kept_) > default_threads()) {
    kept_bytes_ -= kept_.back().bytes->size();
    kept_.pop_back();
  }
  return bytes;
}

}  // namespace mckpt::impl
