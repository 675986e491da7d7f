// Builds the frame of a record once for its type and size: the zip headers and the pickle in front of the
// data, and behind them the descriptor with the sum, the version and the directory.
#include "io/dcp/write/record.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/file/crc32.h"
#include "io/pickle/write/writer.h"
#include "io/store/tensor_spec.h"
#include "io/torch/layout.h"
#include "io/torch/zip.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kVersion = "3\n";

std::span<const u8> bytes_of(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

// A record of a few bytes at offset `at` of the archive, with its sum.
ZipRecord small_record(std::string name, std::string_view content, i64 at) {
  ZipRecord r{std::move(name), std::ssize(content), at, 0, crc32(0, bytes_of(content)), false};
  r.data_offset = zip_data_offset(r);
  return r;
}

// Appends the record at the end of `archive`, which begins at offset 0.
void append_named(std::vector<u8>& archive, std::vector<u8>& entries, std::string name,
                  std::string_view content) {
  ZipRecord r = small_record(std::move(name), content, std::ssize(archive));
  append_zip_header(archive, r);
  archive.insert(archive.end(), content.begin(), content.end());
  append_zip_entry(entries, r);
}

void append_small(std::vector<u8>& archive, std::vector<u8>& entries, std::string_view name,
                  std::string_view content) {
  append_named(archive, entries, cat("archive/", name), content);
}

}  // namespace

DcpTensorFrame::DcpTensorFrame(DType dtype, std::span<const i64> dims) {
  TensorSpec tensor{"", dtype, dims};
  if (std::string why = torch_fault(tensor); !why.empty()) throw Error(Code::kNotHeld, why);
  PickleWriter pickle;
  write_tensor(pickle, tensor, 0);
  append_small(head_, entries_, "data.pkl", pickle.finish());
  append_small(head_, entries_, "byteorder", "little");
  data_ = {"archive/data/0", dtype_bytes(dtype, Shape(dims).items()), std::ssize(head_), 0, 0, true};
  data_.data_offset = zip_data_offset(data_);
  append_zip_header(head_, data_);

  i64 data_end = checked_add(data_.data_offset, data_.bytes, "the size of a tensor's record");
  version_ = small_record("archive/version", kVersion, data_end + zip_descriptor_bytes(data_));
  // The padding in front of the version makes the record end at a multiple of 64.
  i64 end = data_end + std::ssize(tail(0));
  version_.data_offset += round_up(end, kZipAlignment, "the size of a tensor's record") - end;
  tail_bytes_ = std::ssize(tail(0));
}

// The sum is the only part that depends on the data: it is in the descriptor and again in the directory.
std::vector<u8> DcpTensorFrame::tail(u32 crc32) const {
  ZipRecord data = data_;
  data.crc32 = crc32;
  std::vector<u8> out;
  append_zip_descriptor(out, data);
  append_zip_header(out, version_);
  out.insert(out.end(), kVersion.begin(), kVersion.end());
  i64 directory = data.data_offset + data.bytes + std::ssize(out);
  i64 begin = std::ssize(out);
  out.insert(out.end(), entries_.begin(), entries_.end());
  append_zip_entry(out, data);
  append_zip_entry(out, version_);
  append_zip_ends(out, 4, directory, std::ssize(out) - begin);
  return out;
}

void DcpTensorFrame::write_tail(u32 crc32, std::span<u8> to) const {
  std::vector<u8> bytes = tail(crc32);
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

std::string dcp_object_record(std::string_view pickle) {
  std::vector<u8> out, entries;
  append_small(out, entries, "data.pkl", pickle);
  append_small(out, entries, "byteorder", "little");
  append_small(out, entries, "version", kVersion);
  i64 directory = std::ssize(out);
  out.insert(out.end(), entries.begin(), entries.end());
  append_zip_ends(out, 3, directory, std::ssize(entries));
  return {out.begin(), out.end()};
}

std::string record_with_pickle(const TorchZip& archive, std::string_view pickle) {
  constexpr i64 kMostBytes = i64{64} << 20;
  std::vector<u8> out, entries;
  i64 records = 0;
  for (const ZipEntry& e : archive.archive().entries()) {
    if (std::ssize(out) + e.bytes > kMostBytes)
      throw Error(Code::kUnsupportedTorchFile, "the object is too large to be written with other values")
          .expected(cat("at most ", kMostBytes, " bytes"));
    if (&e == &archive.pickle()) {
      append_named(out, entries, std::string(e.name), pickle);
    } else {
      const std::vector<u8> bytes = archive.archive().read(e, kMostBytes);
      append_named(out, entries, std::string(e.name),
                   {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    records++;
  }
  i64 directory = std::ssize(out);
  out.insert(out.end(), entries.begin(), entries.end());
  append_zip_ends(out, records, directory, std::ssize(entries));
  return {out.begin(), out.end()};
}

}  // namespace mckpt::impl
