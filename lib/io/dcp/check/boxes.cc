// Checks of boxes and records after .metadata was read. Boxes are compared by core/items/box_cover.h;
// records are sorted by file and offset, and neighbours compared, so that a third of a million records take
// a fraction of a second.
#include "io/dcp/check/boxes.h"

#include <algorithm>
#include <numeric>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/box_cover.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/dcp/metadata/metadata.h"
#include "io/store/cover.h"
#include "io/store/finding.h"
#include "io/store/findings.h"
#include "io/store/missing_file.h"

namespace mckpt::impl {
namespace {

constexpr const char* kWrongOffsets =
    "torch releases with wrong offsets of uneven shards write such files; save again with a newer torch";

std::string_view path_of(const DcpMetadata& m, i32 file) {
  return file < 0 ? std::string_view() : std::string_view(m.files[file]);
}

// A record and what it belongs to: chunk `chunk` of tensor `owner`, or object ~owner (a negative number).
struct Owned {
  const DcpRecord* record;
  i64 owner, chunk;
};

std::string owner_name(const DcpMetadata& m, const Owned& o) {
  return std::string(o.owner >= 0 ? m.name(o.owner) : m.object_name(~o.owner));
}

// Calls visit(record, owner, chunk) for every record that has a place.
template <typename Visit>
void each_record(const DcpMetadata& m, Visit&& visit) {
  std::size_t at = 0;
  for (i64 t = 0; t < m.tensor_count(); t++)
    for (i64 c = 0; at < static_cast<std::size_t>(m.records.ends[t]); c++, at++)
      if (m.records.items[at].file >= 0) visit(m.records.items[at], t, c);
  for (std::size_t o = 0; o < m.object_records.size(); o++)
    if (m.object_records[o].file >= 0) visit(m.object_records[o], ~static_cast<i64>(o), 0);
}

// All records by file, and by offset in it. A counting sort by file, then a sort only where a file needs
// it.
std::vector<Owned> ordered_records(const DcpMetadata& m) {
  std::vector<std::size_t> begin(m.files.size() + 1);
  each_record(m, [&](const DcpRecord& r, i64, i64) { begin[static_cast<std::size_t>(r.file) + 1]++; });
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Owned> out(begin.back());
  std::vector<std::size_t> next = begin;
  each_record(m, [&](const DcpRecord& r, i64 owner, i64 chunk) { out[next[r.file]++] = {&r, owner, chunk}; });
  auto before = [](const Owned& a, const Owned& b) { return a.record->offset < b.record->offset; };
  for (std::size_t f = 0; f < m.files.size(); f++) {
    std::span file = std::span(out).subspan(begin[f], begin[f + 1] - begin[f]);
    // Each rank plans its own file from front to back, so most are in order already.
    if (!std::is_sorted(file.begin(), file.end(), before)) std::stable_sort(file.begin(), file.end(), before);
  }
  return out;
}

// Two chunks of one tensor at one offset share their record: they are one chunk, listed twice.
bool listed_twice(const DcpMetadata& m, const Owned& a, const Owned& b) {
  if (a.owner != b.owner || a.owner < 0) return false;
  std::size_t rank = m.dims[a.owner].size();
  auto offset = [&](const Owned& o) {
    return m.offsets[o.owner].subspan(static_cast<std::size_t>(o.chunk) * rank, rank);
  };
  return std::ranges::equal(offset(a), offset(b));
}

// A finding at a record: names its tensor or object, its file and its offset.
Finding finding_of(const DcpMetadata& m, const Owned& o, Code code, std::string message) {
  return {.code = code,
          .tensor = owner_name(m, o),
          .file = std::string(path_of(m, o.record->file)),
          .message = std::move(message),
          .offset = o.record->offset};
}

// Whether the record is large enough for the chunk; adds a finding when not. A deflated archive may be
// smaller than its content, but never by more than 1032 to 1, and a block of Zstandard makes 128 KiB of 3
// bytes. Sizes that pass are later asked for as memory and disk, so a small file must not be able to claim a
// large tensor.
bool check_room_for_chunk(const DcpMetadata& m, const Owned& o, Findings& findings) {
  const double most = o.record->packing < 0 ? 1032 : 131072.0 / 3;
  if (o.owner < 0) return true;
  std::size_t rank = m.dims[o.owner].size();
  std::span<const i64> box = m.sizes[o.owner].subspan(static_cast<std::size_t>(o.chunk) * rank, rank);
  DType dtype = m.dtypes[o.owner];
  double bytes = dtype_info(dtype).bits / 8.0;  // an exact product might not fit 63 bits
  for (i64 size : box) bytes *= static_cast<double>(size);
  if (bytes / most <= static_cast<double>(o.record->bytes)) return true;
  findings.add(finding_of(m, o, Code::kItemMismatch,
                          cat("the record of ", o.record->bytes, " bytes is too small for a chunk of ",
                              dims_to_string(box), " of ", dtype_name(dtype))));
  return false;
}

// Whether the record's range is valid and inside its file; adds a finding when not. A missing file is
// reported once, elsewhere.
bool check_range(const DcpMetadata& m, const Owned& o, i64 file_bytes, Findings& findings) {
  const DcpRecord& r = *o.record;
  bool negative = r.offset < 0 || r.bytes < 0;
  if (!negative && (file_bytes < 0 || (r.offset <= file_bytes && r.bytes <= file_bytes - r.offset)))
    return true;
  std::string range = cat("the record at offset ", r.offset, ", length ", r.bytes, ", ");
  if (negative) {
    findings.add(finding_of(m, o, Code::kRecordOutside, range + "is out of range: a number is negative"));
    return false;
  }
  Finding f = finding_of(m, o, Code::kRecordOutside,
                         cat(range, "reaches beyond the end of the file, which has ", file_bytes, " bytes"));
  f.help = "the file is truncated: copy it again";
  findings.add(std::move(f));
  return false;
}

}  // namespace

void check_boxes(const DcpMetadata& m, Findings& findings) {
  for (i64 t = 0; t < m.tensor_count(); t++) {
    i64 count = static_cast<i64>(m.records[t].size());
    for (const BoxFault& fault : cover_faults(m.dims[t], m.offsets[t], m.sizes[t], count)) {
      i32 file = fault.first < 0 ? -1 : m.records[t][fault.first].file;
      findings.add({.code = cover_code(fault.kind),
                    .tensor = std::string(m.name(t)),
                    .file = std::string(path_of(m, file)),
                    .message = to_string(fault),
                    .help = kWrongOffsets});
    }
  }
}

// Records that are out of range are dropped first: an overlap with one of them means nothing.
void check_records(const DcpMetadata& m, std::span<const i64> file_bytes, Findings& findings) {
  for (std::size_t f = 0; f < m.files.size(); f++)
    if (file_bytes[f] < 0)
      findings.add(named_file_missing(Code::kIncomplete, m.files[f], ".metadata names",
                                      "copy the folder again, or take an older checkpoint"));
  std::vector<Owned> records = ordered_records(m);
  std::erase_if(records, [&](const Owned& o) {
    return !check_range(m, o, file_bytes[o.record->file], findings) || !check_room_for_chunk(m, o, findings);
  });
  const Owned* reaching = nullptr;  // of those before, the one that reaches farthest in this file
  for (const Owned& o : records) {
    if (o.record->bytes == 0) continue;
    if (reaching != nullptr && reaching->record->file != o.record->file) reaching = nullptr;
    if (reaching != nullptr && o.record->offset < reaching->record->offset + reaching->record->bytes &&
        !listed_twice(m, *reaching, o))
      findings.add(finding_of(m, o, Code::kRecordOverlap,
                              cat("the record overlaps that of '", escaped(owner_name(m, *reaching)),
                                  "' at offset ", reaching->record->offset)));
    if (reaching == nullptr ||
        o.record->offset + o.record->bytes > reaching->record->offset + reaching->record->bytes)
      reaching = &o;
  }
}

void check_ends(const DcpMetadata& m, std::span<const i64> file_bytes, Findings& findings) {
  std::vector<i64> end(m.files.size(), -1);
  each_record(m, [&](const DcpRecord& r, i64, i64) {
    i64& last = end[r.file];
    if (r.offset >= 0 && r.bytes >= 0 && r.bytes <= INT64_MAX - r.offset)
      last = std::max(last, r.offset + r.bytes);
  });
  for (std::size_t f = 0; f < end.size(); f++)
    if (end[f] >= 0 && file_bytes[f] > end[f])
      findings.add(
          {.code = Code::kMixedSaves,
           .file = m.files[f],
           .message = cat(
               file_bytes[f] - end[f],
               " bytes after the last record belong to no chunk or object: the file may be of another save"),
           .offset = end[f],
           .warning = true});
}

}  // namespace mckpt::impl
