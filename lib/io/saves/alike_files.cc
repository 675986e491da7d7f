// Files of ranks that trained differ in their first matrix, so that a record of each is opened, and no more.
// Only where all sums are equal are data read.
#include "io/saves/alike_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "io/file/crc32.h"
#include "io/saves/copied_files.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/varying_items.h"

namespace mckpt::impl {
namespace {

constexpr const char* kCopyAgain = "copy or save the folder again as a whole, into an empty one";

u64 mixed(u64 hash, i64 value) {
  hash = (hash ^ static_cast<u64>(value)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// A hash that is equal for two records only if one can take the place of the other.
u64 hash_of(const Store& store, const FileRecord& r) {
  u64 hash = mixed(mixed(1, r.offset), r.bytes);
  if (r.tensor < 0) return hash;
  hash = mixed(hash, 1 + static_cast<i64>(store.dtype(r.tensor)));
  for (i64 size : store.chunk(r.tensor, r.chunk).sizes) hash = mixed(hash, size);
  return hash;
}

// All records, by their files.
class RecordsByFile {
 public:
  RecordsByFile(const Store& store, std::span<const DcpMetadata::Copy> copies)
      : store_(store), files_(store.files().size()) {
    for (const DcpMetadata::Copy& c : copies) shared_.insert({c.taken.file, c.taken.offset});
    for (i64 t = 0; t < store.tensor_count(); t++)
      for (i64 i = 0; i < store.chunk_count(t); i++) {
        const Chunk chunk = store.chunk(t, i);
        add(chunk.file, {chunk.record_offset, chunk.record_bytes, t, static_cast<i32>(i)});
      }
    for (const Object& o : store.objects()) add(o.file, {o.record_offset, o.record_bytes});
    for (const DcpMetadata::Copy& c : copies)
      add(c.other.file, {c.other.offset, c.other.bytes, -1, -1, true});
  }

  AlikeFiles alike() {
    std::map<std::pair<std::size_t, u64>, std::vector<AlikeFile>> groups;
    for (std::size_t f = 0; f < files_.size(); f++) {
      std::vector<FileRecord>& records = files_[f];
      if (std::ranges::all_of(records, &FileRecord::shared)) continue;  // copies may change places
      u64 layout = 0;
      for (const FileRecord& r : records) layout += hash_of(store_, r);
      groups[{records.size(), layout}].push_back({static_cast<i32>(f), std::move(records)});
    }
    AlikeFiles out;
    for (auto& [layout, group] : groups) {
      if (group.size() < 2) continue;
      for (AlikeFile& f : group)
        std::ranges::sort(f.records, {},
                          [](const FileRecord& r) { return std::pair(r.tensor < 0, r.offset); });
      out.push_back(std::move(group));
    }
    return out;
  }

 private:
  void add(i32 file, FileRecord record) {
    if (file < 0) return;
    if (!shared_.empty() && shared_.contains({file, record.offset})) record.shared = true, record.tensor = -1;
    files_[file].push_back(record);
  }

  const Store& store_;
  std::set<std::pair<i32, i64>> shared_;  // file and offset
  std::vector<std::vector<FileRecord>> files_;
};

// Whether the tensor has one for each layer or expert along its first dimension:
// "decoder.layers.mlp.linear_fc1.weight". Layers and experts can be equal.
bool is_stack(std::string_view name) {
  for (std::string_view of : {"layers.", "experts."})
    for (std::size_t at = name.find(of); at != name.npos; at = name.find(of, at + 1)) {
      const std::size_t next = at + of.size();
      if (next < name.size() && (name[next] < '0' || name[next] > '9')) return true;
    }
  return false;
}

// Whether the two records are to be other rows or columns of one tensor.
bool are_parts_of_one(const Store& store, const FileRecord& a, const FileRecord& b) {
  if (a.tensor < 0 || a.tensor != b.tensor) return false;
  const std::span<const i64> one = store.chunk(a.tensor, a.chunk).offsets,
                             other = store.chunk(b.tensor, b.chunk).offsets;
  const std::size_t rows =
      std::max<std::size_t>(one.size() > 2 ? one.size() - 2 : 0, is_stack(store.name(a.tensor)));
  return rows < one.size() && std::ranges::equal(one.first(rows), other.first(rows)) &&
         !std::ranges::equal(one, other);
}

class CopySearch {
 public:
  CopySearch(const Store& store, const StoreFiles& files, const SameBytes& same_bytes)
      : store_(store), files_(files), same_bytes_(same_bytes) {}

  void search(const std::vector<AlikeFile>& alike, std::vector<Finding>& out) const {
    const std::vector<i64> records(alike.size(), std::ssize(alike[0].records));
    auto sum = [&](i64 f, i64 record) { return sum_of(alike[f].file, alike[f].records[record]); };
    for (const std::vector<i64>& equal : files_with_equal_sums(records, sum))
      for (std::size_t i = 1; i < equal.size(); i++) add_finding(alike[equal[0]], alike[equal[i]], out);
  }

 private:
  // Nothing for a record that cannot be read, which is reported where it is wanted. Objects, and records
  // without a sum, are read for their first bytes.
  std::optional<PieceSum> sum_of(i32 file, const FileRecord& r) const {
    constexpr i64 kMostRead = i64{1} << 20;
    try {
      if (r.tensor >= 0)
        if (const ChunkData data = store_.resolve(r.tensor, r.chunk); data.checksum)
          return PieceSum{data.checksum->bytes, data.checksum->crc32};
      return PieceSum{r.bytes, crc32(0, files_.open(file)->read(r.offset, std::min(r.bytes, kMostRead)))};
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  bool varies(const FileRecord& r) const {
    if (r.tensor < 0) return false;
    const ChunkData data = store_.resolve(r.tensor, r.chunk);
    const Chunk chunk = store_.chunk(r.tensor, r.chunk);
    const i64 item = std::max<i64>(dtype_bytes(data.dtype, 1), 1);
    i64 items = 1, last = 0;
    for (std::size_t d = 0; d < chunk.sizes.size(); d++) {
      items *= chunk.sizes[d];
      if (!data.strides.empty()) last += (chunk.sizes[d] - 1) * data.strides[d];
    }
    if (items == 0) return false;
    const i64 bytes = data.strides.empty() ? dtype_bytes(data.dtype, items) / item * item : (last + 1) * item;
    if (data.unpacked) return items_vary(*data.unpacked, data.offset, bytes, item);
    return items_vary(*files_.open(data.file), data.offset, bytes, item);
  }

  void add_finding(const AlikeFile& first, const AlikeFile& copy, std::vector<Finding>& out) const {
    bool parts = false, other_tensors = false;
    for (std::size_t i = 0; i < copy.records.size() && !parts; i++) {
      const FileRecord &a = first.records[i], &b = copy.records[i];
      if (are_parts_of_one(store_, a, b))
        parts = varies(b);
      else if (!other_tensors)
        other_tensors = varies(b);
    }
    if (!parts && !other_tensors) return;
    for (std::size_t i = 0; i < copy.records.size(); i++)
      if (!same_bytes_(place(first, i), place(copy, i))) return;
    const std::string other(file_label(store_, first.file));
    out.push_back(
        {.code = Code::kBadShards,
         .file = std::string(file_label(store_, copy.file)),
         .message =
             parts
                 ? copied_file_message(other)
                 : cat("the file has the same data as ", other,
                       ", for other tensors: unless these began as copies, one of the two is a copy under another rank's name"),
         .help = kCopyAgain,
         .rank = store_.chunk(copy.records[0].tensor, copy.records[0].chunk).rank,
         .warning = !parts});
  }

  static DcpRecord place(const AlikeFile& of, std::size_t record) {
    return {.file = of.file, .offset = of.records[record].offset, .bytes = of.records[record].bytes};
  }

  const Store& store_;
  const StoreFiles& files_;
  const SameBytes& same_bytes_;
};

}  // namespace

AlikeFiles alike_files(const Store& store, std::span<const DcpMetadata::Copy> copies) {
  return RecordsByFile(store, copies).alike();
}

std::vector<Finding> find_copied_files(const Store& store, const StoreFiles& files, const AlikeFiles& alike,
                                       const SameBytes& same_bytes) {
  std::vector<Finding> out;
  const CopySearch search(store, files, same_bytes);
  for (const std::vector<AlikeFile>& group : alike) search.search(group, out);
  std::ranges::sort(out, {}, &Finding::file);
  return out;
}

}  // namespace mckpt::impl
