// Opens one record of a .distcp file and compares it with what .metadata says about it. torch itself
// converts a type that differs without a word; here it is an error, because nobody can know which of the
// two is right.
//
// A record is a zip archive, or the stream of torch before 1.6, which torch's loader still accepts.
#include "io/dcp/item.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/open/sniff.h"
#include "io/torch/file.h"
#include "io/torch/table/attached.h"
#include "io/torch/zip.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

// Bytes behind an archive that torch accepts, and the most that a compressed storage is unpacked to.
constexpr i64 kMostTrailing = 64;            // bytes behind an archive that torch would not mind
constexpr i64 kMostUnpacked = i64{1} << 32;  // of a compressed storage

// Bytes in memory as a source that owns them.
class OwnedBytes final : public ByteSource {
 public:
  explicit OwnedBytes(std::vector<u8> bytes)
      : ByteSource(static_cast<i64>(bytes.size())), bytes_(std::move(bytes)) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
  }
  std::vector<u8> bytes_;
};

// Throws kItemMismatch.
void check_matches(DType found, std::span<const i64> found_sizes, DType dtype, std::span<const i64> sizes) {
  if (found != dtype)
    throw Error(Code::kItemMismatch, "the stored tensor has another data type than .metadata says (mismatch)")
        .expected(dtype_name(dtype))
        .found(dtype_name(found));
  // FSDP2 over tensor parallelism saves [0, 0] for a rank's [5, 0]. Nobody reads either.
  const bool both_empty = found_sizes.size() == sizes.size() && std::ranges::count(found_sizes, 0) > 0 &&
                          std::ranges::count(sizes, 0) > 0;
  if (!both_empty && !std::ranges::equal(found_sizes, sizes))
    throw Error(Code::kItemMismatch,
                "the stored tensor has another shape than its chunk in .metadata (size mismatch)")
        .expected(dims_to_string(sizes))
        .found(dims_to_string(found_sizes));
}

// DCP stores chunks as plain tensors; a DTensor inside a record would be cut twice.
[[noreturn]] void throw_piece(const TorchSharding& sharding) {
  throw Error(Code::kItemMismatch, "the record is a tensor that is itself a piece of another tensor")
      .found(to_string(sharding));
}

// Throws kBadView. torch stores an expanded tensor in full, so a stride of 0 comes only from a file made by
// hand. A small file with many of them would take days to read.
void check_repeats(const TorchTensor& t) {
  constexpr i64 kMostRepeatedBytes = 1 << 20;
  i64 bytes = dtype_bytes(t.dtype, t.shape.items());
  if (bytes <= kMostRepeatedBytes || bytes <= t.storage.view_bytes) return;
  throw Error(Code::kBadView, "the record repeats a small storage up to an enormous size (stride 0)")
      .expected(cat("at most ", kMostRepeatedBytes, " bytes, or its storage's ", t.storage.view_bytes))
      .found(bytes);
}

// The strides are kept where they are not row-major: torch trims a storage but keeps a transposed tensor as
// it is.
DcpItem read_zip_item(const ByteSource& record, DType dtype, std::span<const i64> sizes) {
  TorchZip zip(record, kMostTrailing);
  std::vector<u8> bytes = zip.read_pickle();
  Pickle pickle(bytes, zip.pickle_rules());
  zip.check_loads(pickle);
  if (!is_torch_tensor(pickle.root()))
    throw Error(Code::kItemMismatch, "the record is not one tensor")
        .expected("a tensor")
        .found(kind_name(pickle.root().kind()));
  TorchMeshes meshes;
  TorchTensor t = read_torch_tensor(pickle.root(), meshes);
  check_torch_view(t);
  if (t.sharding) throw_piece(*t.sharding);
  check_matches(t.dtype, t.shape.dims(), dtype, sizes);
  check_repeats(t);
  DcpItem item;
  const ZipEntry& storage = zip.storage(t.storage);
  item.offset =
      checked_add(t.storage.view_begin_bytes, dtype_bytes(t.dtype, t.offset_items), "the offset of a tensor");
  if (storage.deflated)
    item.unpacked = std::make_shared<OwnedBytes>(zip.archive().read(storage, kMostUnpacked));
  else
    item.offset = checked_add(item.offset, storage.data_offset, "the offset of a tensor");
  if (!storage.deflated && zip.archive().has_checksums())
    item.sum = {storage.data_offset, storage.bytes, storage.crc32};
  if (!is_row_major(sizes, t.strides)) item.strides = std::move(t.strides);
  item.big_endian = zip.big_endian();
  item.carries_values = !attached_values(pickle.root()).empty();
  return item;
}

// The old stream has no checksums.
DcpItem read_legacy_item(const ByteSource& record, DType dtype, std::span<const i64> sizes) {
  TorchFile file = read_torch_legacy(record);
  const TorchTable& table = file.table;
  for (const Finding& f : table.findings()) throw Error(f.code, f.message);
  // Behind it are tensors among the values that it carries, of which a chunk needs none.
  if (table.size() == 0 || !is_torch_tensor(table.pickle()->root()))
    throw Error(Code::kItemMismatch, "the record is not one tensor")
        .expected("a tensor")
        .found(counted(table.size(), "tensor"));
  if (table.sharding(0)) throw_piece(*table.sharding(0));
  check_matches(table.dtype(0), table.dims(0), dtype, sizes);
  DcpItem item;
  item.offset = table.offset(0);
  item.strides.assign(table.strides(0).begin(), table.strides(0).end());
  item.big_endian = file.big_endian;
  item.carries_values = !attached_values(table.pickle()->root()).empty();
  return item;
}

// Whether the record begins with zeros, as where a block of the file was lost.
bool begins_with_zeros(const ByteSource& record) {
  u8 head[64] = {};
  std::span<u8> read = std::span(head).first(static_cast<std::size_t>(std::min<i64>(record.size(), 64)));
  record.read(0, read);
  return !read.empty() && std::ranges::all_of(read, [](u8 byte) { return byte == 0; });
}

[[noreturn]] void throw_not_an_archive(const ByteSource& record, FileKind kind) {
  if ((kind == FileKind::kUnknown || kind == FileKind::kZeros) && begins_with_zeros(record))
    throw Error(Code::kItemMismatch, "the record is damaged: it begins with zeros")
        .expected("an archive of torch.save")
        .help("copy or download the file again");
  throw Error(Code::kItemMismatch, "the record is not an archive of torch.save")
      .expected("a zip archive, or the form before torch 1.6")
      .found(kind == FileKind::kUnknown ? "unknown bytes" : sniffed_name(kind));
}

}  // namespace

// ---- The two ends of a record

RecordSource::RecordSource(const ByteSource& file, i64 offset, i64 bytes)
    : ByteSource(bytes), file_(file), offset_(offset) {
  check_inside(file, offset, bytes);
  i64 head = bytes <= kWhole ? bytes : kEnd;
  head_ = file.read(offset, head);
  if (bytes > head) tail_ = file.read(offset + bytes - kEnd, kEnd);
}

void RecordSource::read_inside(i64 offset, std::span<u8> to) const {
  i64 end = offset + static_cast<i64>(to.size()), tail_begin = size() - static_cast<i64>(tail_.size());
  if (end <= static_cast<i64>(head_.size()))
    std::copy_n(head_.begin() + offset, to.size(), to.begin());
  else if (offset >= tail_begin)
    std::copy_n(tail_.begin() + (offset - tail_begin), to.size(), to.begin());
  else
    file_.read(offset_ + offset, to);
}

// ---- Items

DcpItem read_dcp_item(const ByteSource& record, DType dtype, std::span<const i64> sizes) {
  switch (FileKind kind = sniff(record); kind) {
    case FileKind::kZip:
      return read_zip_item(record, dtype, sizes);
    case FileKind::kLegacyTorch:
      return read_legacy_item(record, dtype, sizes);
    default:
      throw_not_an_archive(record, kind);
  }
}

std::shared_ptr<const Pickle> read_dcp_object(const ByteSource& record) {
  switch (FileKind kind = sniff(record); kind) {
    case FileKind::kZip: {
      TorchZip zip(record, kMostTrailing);
      return Pickle::own(zip.read_pickle(), zip.pickle_rules());
    }
    case FileKind::kLegacyTorch:
      return read_torch_legacy(record, ShardRecords::kKept).table.pickle();
    default:
      throw_not_an_archive(record, kind);
  }
}

void each_item_checksum(
    const ByteSource& record,
    const std::function<void(i64 offset, i64 bytes, u32 crc32, std::string_view name)>& visit) {
  if (sniff(record) != FileKind::kZip) return;
  ZipArchive zip(record, kMostTrailing);
  if (!zip.has_checksums()) return;
  for (const ZipEntry& e : zip.entries())
    if (!e.deflated) visit(e.data_offset, e.stored_bytes, e.crc32, e.name);
}

}  // namespace mckpt::impl
