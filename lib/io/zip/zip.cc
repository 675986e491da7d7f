// Reads the directory of a zip archive and compares every entry with its local header.
//
//   directory entry: name "archive/data/0", 96 bytes, CRC 1234, header at 448 ---.
//   local header at 448: name "archive/data/0", sizes 0 (they follow the data) <-'   must agree
#include "io/zip/zip.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/bytes.h"
#include "io/file/crc32.h"
#include "io/file/folder.h"
#include "io/zip/inflate.h"
#include "io/zip/zip_end.h"

namespace mckpt::impl {
namespace {

// First bytes and fixed sizes of the two kinds of header.
constexpr u32 kLocalMagic = 0x04034b50, kEntryMagic = 0x02014b50;
constexpr i64 kLocalBytes = 30, kEntryBytes = 46;
constexpr i64 kInExtra = 0xffffffff;  // the value is in the zip64 extra field
constexpr u16 kExtra64 = 0x0001;
constexpr u16 kEncrypted = 0x2041, kPatch = 0x0020, kHasDescriptor = 0x0008;  // bits of the flags
constexpr u32 kDosFolder = 0x10;                                              // of the attributes
constexpr u16 kDeflate = 8;
constexpr u32 kModeMask = 0170000, kLinkMode = 0120000;  // of the unix mode

// The fields that directory entries and local headers have in common; `p` points to the flags.
struct CommonFields {
  u16 flags, method;
  u32 crc32;
  i64 stored_bytes, bytes;
  explicit CommonFields(const u8* p)
      : flags(load_le<u16>(p)),
        method(load_le<u16>(p + 2)),
        crc32(load_le<u32>(p + 8)),
        stored_bytes(load_le<u32>(p + 12)),
        bytes(load_le<u32>(p + 16)) {}
};

// Reads through one block, so that headers close to each other cost one read: a small block at first,
// doubled with every step that leads to the neighbourhood.
class Window {
 public:
  explicit Window(const ByteSource& source) : source_(source) {}
  // The bytes from `offset`, valid until the next call. pre: they are inside the source.
  const u8* at(i64 offset, i64 bytes) {
    i64 end = begin_ + static_cast<i64>(block_.size());
    if (offset < begin_ || offset + bytes > end) {
      bool near = offset >= begin_ && offset < end + step_;
      step_ = near ? std::min(2 * step_, kMostStep) : kStep;
      block_.resize(static_cast<std::size_t>(std::min(std::max(bytes, step_), source_.size() - offset)));
      source_.read(offset, block_);
      begin_ = offset;
    }
    return block_.data() + (offset - begin_);
  }

 private:
  static constexpr i64 kStep = 512, kMostStep = 64 << 10;
  const ByteSource& source_;
  std::vector<u8> block_;
  i64 begin_ = 0, step_ = kStep;
};

// Replaces the members of `fields` that are 0xffffffff by the 64-bit values of the extra field, which has
// them in this order.
void apply_extra64(std::span<const u8> extra, std::initializer_list<i64*> fields, i64 offset) {
  auto in_extra = [](const i64* f) { return *f == kInExtra; };
  if (std::none_of(fields.begin(), fields.end(), in_extra)) return;
  for (; extra.size() >= 4; extra = extra.subspan(4u + load_le<u16>(extra.data() + 2))) {
    std::size_t bytes = load_le<u16>(extra.data() + 2);
    if (bytes > extra.size() - 4) throw_bad_zip("an extra field passes its end", offset);
    if (load_le<u16>(extra.data()) != kExtra64) continue;
    std::span<const u8> values = extra.subspan(4, bytes);
    for (i64* f : fields) {
      if (!in_extra(f)) continue;
      if (values.size() < 8) throw_bad_zip("the zip64 extra field is too short", offset);
      *f = checked_zip_value(load_le<u64>(values.data()), "a zip64 size", offset);
      values = values.subspan(8);
    }
    return;
  }
  throw_bad_zip("a size of 0xffffffff has no zip64 extra field", offset);
}

[[noreturn]] void throw_unsupported(const ZipEntry& e, std::string_view why, i64 offset) {
  throw Error(Code::kUnsupportedZip, cat("the record '", escaped(e.name), "' ", why)).offset(offset);
}

// Refuses records that mean something else than bytes: encrypted, packed by another method, folders, links,
// names that lead out of the archive.
void check_entry(const ZipEntry& e, const CommonFields& common, u32 attributes, i64 offset) {
  std::string_view path = e.name;
  if (path.ends_with('/') && e.bytes == 0) path.remove_suffix(1);  // an empty record that represents a folder
  check_inside_name(path);
  if ((common.flags & kEncrypted) != 0) throw_unsupported(e, "is encrypted", offset);
  if (common.method != 0 && common.method != kDeflate)
    throw_unsupported(e, cat("is packed by an unsupported compression method (", common.method, ")"), offset);
  if ((common.flags & kPatch) != 0) throw_unsupported(e, "is a patch of another record", offset);
  // torch reads nothing of such a record and takes what was in memory.
  if ((attributes & kDosFolder) != 0 && e.bytes > 0)
    throw_unsupported(e, "has the attribute of a folder", offset);
  if ((attributes >> 16 & kModeMask) == kLinkMode)
    throw_unsupported(e, "has the attribute of a symlink", offset);
  if (e.bytes > 0 && e.stored_bytes == 0 && e.deflated)
    throw_bad_zip(cat("the compressed record '", escaped(e.name), "' of ", e.bytes, " bytes has no bytes"),
                  offset);
  if (!e.deflated && e.bytes != e.stored_bytes)
    throw_bad_zip(
        cat("the stored record '", escaped(e.name), "' has two sizes, ", e.bytes, " and ", e.stored_bytes),
        offset);
}

// Names are compared without regard to the case of ASCII letters.
char folded(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_but_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return folded(x) == folded(y); });
}

u64 hash_but_case(std::string_view name) {
  std::string one_case(name);
  for (char& c : one_case) c = folded(c);
  return NameHash()(one_case);
}

// The local header repeats what the directory says; sizes may be left to a descriptor behind the data. Sets
// data_offset. `limit`: where the next record or the directory begins.
void check_local_header(ZipEntry& e, Window& window, i64 limit) {
  auto differs = [&](const char* what) {
    throw_bad_zip(
        cat("the local header of '", escaped(e.name), "' differs from the central directory: ", what),
        e.header_offset);
  };
  i64 head = kLocalBytes + static_cast<i64>(e.name.size());
  if (head > limit - e.header_offset)
    throw_bad_zip(cat("the local header of '", escaped(e.name), "' overlaps what follows it"),
                  e.header_offset);
  const u8* p = window.at(e.header_offset, head);
  if (load_le<u32>(p) != kLocalMagic) differs("there is no header at its offset");
  if (load_le<u16>(p + 26) != e.name.size() ||
      std::string_view(reinterpret_cast<const char*>(p) + kLocalBytes, e.name.size()) != e.name)
    differs("the name");
  CommonFields local(p + 6);
  i64 extra_bytes = load_le<u16>(p + 28);
  if (local.method != (e.deflated ? kDeflate : 0) || (local.flags & kEncrypted) != 0) differs("the method");
  if (extra_bytes > limit - e.header_offset - head ||
      e.stored_bytes > limit - e.header_offset - head - extra_bytes)
    throw_bad_zip(cat("the record '", escaped(e.name), "' of ", e.stored_bytes,
                      " bytes overlaps what follows it, or reaches beyond the file"),
                  e.header_offset);
  e.data_offset = e.header_offset + head + extra_bytes;
  bool described = (local.flags & kHasDescriptor) != 0;
  if (!described && (local.bytes == kInExtra || local.stored_bytes == kInExtra)) {
    const u8* extra = window.at(e.header_offset + head, extra_bytes);
    apply_extra64({extra, static_cast<std::size_t>(extra_bytes)}, {&local.bytes, &local.stored_bytes},
                  e.header_offset);
  }
  auto agrees = [&](i64 here, i64 in_directory) {
    return here == in_directory || (described && (here == 0 || here == kInExtra));
  };
  if (!agrees(local.crc32, e.crc32)) differs("the checksum");
  if (!agrees(local.bytes, e.bytes) || !agrees(local.stored_bytes, e.stored_bytes)) differs("the size");
}

}  // namespace

ZipArchive::ZipArchive(const ByteSource& source, i64 most_trailing_bytes) : source_(source) {
  ZipEnd end = find_zip_end(source, most_trailing_bytes);
  directory_ = source.read(end.directory_offset, end.directory_bytes);
  parse_directory(end);
  index_names();
  check_local_headers(end.directory_offset);
}

// Each entry is 46 bytes, the name, the extra field, a comment.
void ZipArchive::parse_directory(const ZipEnd& end) {
  i64 offset = end.directory_offset, count = end.entries;
  if (count > static_cast<i64>(directory_.size()) / kEntryBytes)
    throw_bad_zip(cat("its end record counts ", count, " entries, which a central directory of ",
                      directory_.size(), " bytes cannot hold"),
                  offset);
  entries_.reserve(static_cast<std::size_t>(count));
  std::span<const u8> rest = directory_;
  for (i64 i = 0; i < count; i++) {
    i64 here = offset + static_cast<i64>(directory_.size() - rest.size());
    const u8* p = rest.data();
    if (rest.size() < kEntryBytes || load_le<u32>(p) != kEntryMagic)
      throw_bad_zip(cat("entry ", i, " of the central directory is cut off or overwritten"), here);
    std::size_t name_bytes = load_le<u16>(p + 28), extra_bytes = load_le<u16>(p + 30);
    std::size_t variable_bytes = name_bytes + extra_bytes + load_le<u16>(p + 32);
    if (rest.size() - kEntryBytes < variable_bytes)
      throw_bad_zip(cat("entry ", i, " of the central directory passes its end"), here);
    CommonFields common(p + 8);
    ZipEntry e{.name = {reinterpret_cast<const char*>(p) + kEntryBytes, name_bytes},
               .header_offset = load_le<u32>(p + 42),
               .stored_bytes = common.stored_bytes,
               .bytes = common.bytes,
               .crc32 = common.crc32,
               .deflated = common.method == kDeflate};
    apply_extra64(rest.subspan(kEntryBytes + name_bytes, extra_bytes),
                  {&e.bytes, &e.stored_bytes, &e.header_offset}, here);
    u16 disk = load_le<u16>(p + 34);
    if (disk != end.disk && disk != 1)
      throw_unsupported(e, "is said to be in another part of the archive", here);
    check_entry(e, common, load_le<u32>(p + 38), here);
    has_checksums_ |= e.crc32 != 0;
    entries_.push_back(e);
    rest = rest.subspan(kEntryBytes + variable_bytes);
  }
  if (!rest.empty())
    throw_bad_zip(
        cat("its central directory holds more than the ", count, " entries that its end record counts"),
        offset);
}

// A hash table by name. Throws kBadZip for two records of one name.
void ZipArchive::index_names() {
  std::size_t mask = std::bit_ceil(entries_.size() * 2 + 1) - 1;
  slots_.assign(mask + 1, 0);
  for (std::size_t i = 0; i < entries_.size(); i++) {
    std::size_t slot = hash_but_case(entries_[i].name) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask)
      if (same_but_case(entries_[slots_[slot] - 1].name, entries_[i].name))
        throw_bad_zip(cat("the name '", escaped(entries_[i].name), "' is a duplicate: two records carry it"),
                      entries_[i].header_offset);
    slots_[slot] = static_cast<u32>(i + 1);
  }
}

const ZipEntry* ZipArchive::find(std::string_view name) const {
  std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = hash_but_case(name) & mask; slots_[slot] != 0; slot = (slot + 1) & mask)
    if (const ZipEntry& e = entries_[slots_[slot] - 1]; e.name == name) return &e;
  return nullptr;
}

// In the order of the file, so that each record's limit is the beginning of the next.
void ZipArchive::check_local_headers(i64 directory_offset) {
  std::vector<u32> order(entries_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](u32 a, u32 b) { return entries_[a].header_offset < entries_[b].header_offset; });
  if (!order.empty() && entries_[order[0]].header_offset != 0)
    throw_bad_zip("it does not begin with a record: a prefix was put in front of it", 0);
  Window window(source_);
  for (std::size_t i = 0; i < order.size(); i++) {
    i64 limit = i + 1 < order.size() ? entries_[order[i + 1]].header_offset : directory_offset;
    if (limit > directory_offset)
      throw_bad_zip(cat("the offset of '", escaped(entries_[order[i + 1]].name), "' is beyond the records"),
                    limit);
    check_local_header(entries_[order[i]], window, limit);
  }
}

std::vector<u8> ZipArchive::read(const ZipEntry& e, i64 most_bytes) const {
  if (e.bytes > most_bytes || e.stored_bytes > most_bytes)
    throw Error(Code::kUnsupportedZip, cat("the record '", escaped(e.name), "' is larger than the limit"))
        .offset(e.data_offset)
        .expected(cat("at most ", most_bytes, " bytes"))
        .found(std::max(e.bytes, e.stored_bytes));
  std::vector<u8> bytes = source_.read(e.data_offset, e.stored_bytes);
  if (e.deflated) bytes = inflated(bytes, e.bytes, e.data_offset);
  if (u32 found = crc32(0, bytes); has_checksums_ && found != e.crc32)
    throw Error(Code::kBadChecksum,
                cat("the checksum (CRC-32) of '", escaped(e.name), "' does not match its bytes"))
        .offset(e.data_offset)
        .expected(e.crc32)
        .found(found);
  return bytes;
}

}  // namespace mckpt::impl
