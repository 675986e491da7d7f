// Writes the headers of zip records and the directory, as torch does. Sizes and offsets of 4 GiB and more
// are 0xffffffff in the header and have their value in a zip64 field.
#include "io/zip/zip_writer.h"

#include "core/base/error.h"
#include "io/file/bytes.h"

namespace mckpt::impl {
namespace {

constexpr i64 kWide = 0xffffffff;  // sizes and offsets from here on stand in a zip64 field
constexpr u16 kUtf8Name = 0x0800, kCrcBehind = 0x0008;
constexpr i64 kLocalBytes = 30, kExtraHead = 4, kWideSizesBytes = 16;

// Whether the number needs a zip64 field; narrow() is what the header has then.
bool is_wide(i64 v) { return v >= kWide; }
u32 narrow(i64 v) { return is_wide(v) ? static_cast<u32>(kWide) : static_cast<u32>(v); }
u16 flags_of(const ZipRecord& r) { return static_cast<u16>(kUtf8Name | (r.crc_behind ? kCrcBehind : 0)); }

void append_text(std::vector<u8>& out, const std::string& text) {
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

i64 zip_data_offset(const ZipRecord& r) {
  if (r.name.size() > 0xffff)
    throw Error(Code::kOddName, "the name of the archive is too long").found(r.name.size());
  i64 head = kLocalBytes + static_cast<i64>(r.name.size()) + kExtraHead +
             (is_wide(r.bytes) ? kExtraHead + kWideSizesBytes : 0);
  return round_up(checked_add(r.header_offset, head, "the size of the file"), kZipAlignment,
                  "the size of the file");
}

// An extra field of type "FB", filled with 'Z', leads up to the data.
void append_zip_header(std::vector<u8>& out, const ZipRecord& r) {
  std::size_t begin = out.size();
  bool wide = is_wide(r.bytes);
  i64 bytes = r.crc_behind ? 0 : r.bytes;  // the descriptor has the sizes as well
  i64 extra = r.data_offset - r.header_offset - kLocalBytes - static_cast<i64>(r.name.size());
  out.insert(out.end(), kZipRecordMark.begin(), kZipRecordMark.end());
  append_le<u16>(out, wide ? 45 : 0);
  append_le<u16>(out, flags_of(r));
  for (int zero = 0; zero < 3; zero++)
    append_le<u16>(out, 0);  // stored; no time, so that nothing depends on it
  append_le<u32>(out, r.crc_behind ? 0 : r.crc32);
  append_le<u32>(out, wide ? narrow(r.bytes) : narrow(bytes));
  append_le<u32>(out, wide ? narrow(r.bytes) : narrow(bytes));
  append_le<u16>(out, static_cast<u16>(r.name.size()));
  append_le<u16>(out, static_cast<u16>(extra));
  append_text(out, r.name);
  if (wide) {
    append_le<u16>(out, 1), append_le<u16>(out, static_cast<u16>(kWideSizesBytes));
    append_le<u64>(out, static_cast<u64>(bytes)), append_le<u64>(out, static_cast<u64>(bytes));
  }
  i64 padding = r.data_offset - r.header_offset - static_cast<i64>(out.size() - begin) - kExtraHead;
  append_le<u16>(out, 0x4246), append_le<u16>(out, static_cast<u16>(padding));
  out.insert(out.end(), static_cast<std::size_t>(padding), 'Z');
}

// Mark, checksum and both sizes.
i64 zip_descriptor_bytes(const ZipRecord& r) { return is_wide(r.bytes) ? 24 : 16; }

// The sizes and the sum that the header left open.
void append_zip_descriptor(std::vector<u8>& out, const ZipRecord& r) {
  append_le<u32>(out, 0x08074b50);
  append_le<u32>(out, r.crc32);
  for (int both = 0; both < 2; both++)
    if (is_wide(r.bytes))
      append_le<u64>(out, static_cast<u64>(r.bytes));
    else
      append_le<u32>(out, static_cast<u32>(r.bytes));
}

void append_zip_entry(std::vector<u8>& out, const ZipRecord& r) {
  std::vector<u8> wide;
  if (is_wide(r.bytes))
    append_le<u64>(wide, static_cast<u64>(r.bytes)), append_le<u64>(wide, static_cast<u64>(r.bytes));
  if (is_wide(r.header_offset)) append_le<u64>(wide, static_cast<u64>(r.header_offset));
  append_le<u32>(out, 0x02014b50);
  append_le<u16>(out, 0), append_le<u16>(out, wide.empty() ? 0 : 45);
  append_le<u16>(out, flags_of(r));
  for (int zero = 0; zero < 3; zero++) append_le<u16>(out, 0);
  append_le<u32>(out, r.crc32);
  append_le<u32>(out, narrow(r.bytes));
  append_le<u32>(out, narrow(r.bytes));
  append_le<u16>(out, static_cast<u16>(r.name.size()));
  append_le<u16>(out, static_cast<u16>(wide.empty() ? 0 : wide.size() + kExtraHead));
  for (int zero = 0; zero < 3; zero++) append_le<u16>(out, 0);  // no comment, first disk, no inner attributes
  append_le<u32>(out, 0);
  append_le<u32>(out, narrow(r.header_offset));
  append_text(out, r.name);
  if (!wide.empty()) append_le<u16>(out, 1), append_le<u16>(out, static_cast<u16>(wide.size()));
  out.insert(out.end(), wide.begin(), wide.end());
}

// torch writes the zip64 end record for archives of any size, then its locator and the plain end record.
void append_zip_ends(std::vector<u8>& out, i64 records, i64 directory_offset, i64 directory_bytes) {
  u64 count = static_cast<u64>(records);
  append_le<u32>(out, 0x06064b50);
  append_le<u64>(out, 44);
  append_le<u16>(out, 45), append_le<u16>(out, 45);
  append_le<u64>(out, 0);  // this disk, the disk of the directory
  append_le<u64>(out, count), append_le<u64>(out, count);
  append_le<u64>(out, static_cast<u64>(directory_bytes)),
      append_le<u64>(out, static_cast<u64>(directory_offset));
  append_le<u32>(out, 0x07064b50);
  append_le<u32>(out, 0);
  append_le<u64>(out, static_cast<u64>(directory_offset + directory_bytes));
  append_le<u32>(out, 1);
  append_le<u32>(out, 0x06054b50);
  append_le<u32>(out, 0);
  u16 short_count = count >= 0xffff ? 0xffff : static_cast<u16>(count);
  append_le<u16>(out, short_count), append_le<u16>(out, short_count);
  append_le<u32>(out, narrow(directory_bytes)), append_le<u32>(out, narrow(directory_offset));
  append_le<u16>(out, 0);
}

}  // namespace mckpt::impl
