// Joins the indexes of single ranks. torch 2.9 and newer can save without communication: each rank writes
// __<rank>.metadata for what it wrote itself, and nobody writes .metadata.
//
//   __0.metadata   "w" [0, 0] [6, 4]   "norm" [0] [8]              "w": two chunks
//   __1.metadata   "w" [6, 0] [4, 4]   "norm" [0] [8]      ==>     "norm": one chunk, and a copy to compare
#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/dcp/metadata/rows.h"

namespace mckpt::impl {
namespace {

// Tensor number `tensor` of part number `part`.
struct Source {
  std::size_t part;
  i64 tensor;
};

// Used once. Files of the parts get new numbers: the files of part p follow the files of part p-1.
class Merger {
 public:
  explicit Merger(std::span<const DcpMetadata> parts) : parts_(parts) {}

  DcpMetadata run() {
    for (std::size_t p = 0; p < parts_.size(); p++) {
      const DcpMetadata& m = parts_[p];
      for (i64 t = 0; t < m.tensor_count(); t++) add_source(p, t);
      for (const Finding& f : m.findings) out_.findings.push_back(f);
      if (out_.version.empty()) out_.version = m.version;
      file_base_.push_back(static_cast<i32>(out_.files.size()));
      out_.files.insert(out_.files.end(), m.files.begin(), m.files.end());
      add_packings(m.packings);
    }
    for (const std::vector<Source>& sources : tensors_) add_tensor(sources);
    for (std::size_t p = 0; p < parts_.size(); p++) add_objects(p);
    return std::move(out_);
  }

 private:
  // Collects the tensors of one name. Names keep the order in which they first appear.
  void add_source(std::size_t part, i64 tensor) {
    std::size_t number = names_.add(parts_[part].name(tensor));
    if (number == tensors_.size()) tensors_.emplace_back();
    tensors_[number].push_back({part, tensor});
  }
  void add_packings(const std::vector<std::string>& packings);
  void add_tensor(const std::vector<Source>& sources);
  using Seen = NameMap<std::string, DcpRecord>;  // by offsets and sizes
  void add_chunks(const Source& s, Seen& seen);
  void add_objects(std::size_t part);
  // The record with the new numbers of its file and packing.
  DcpRecord moved(DcpRecord r, std::size_t part) const {
    if (r.file >= 0) r.file += file_base_[part];
    if (r.packing >= 0) r.packing = packing_of_[part][static_cast<std::size_t>(r.packing)];
    return r;
  }

  std::span<const DcpMetadata> parts_;
  DcpMetadata out_;
  NameTable names_, object_names_;
  std::vector<std::vector<Source>> tensors_;  // by number of the name
  std::vector<i32> file_base_;
  std::vector<std::vector<i32>> packing_of_;  // by part and number in it: the number in the result
};

template <typename T>
void append(std::vector<T>& to, std::span<const T> from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Ranks pack alike: a packing that another part has, too, keeps the number of that one.
void Merger::add_packings(const std::vector<std::string>& packings) {
  std::vector<i32>& numbers = packing_of_.emplace_back();
  for (const std::string& packing : packings) {
    auto at = std::ranges::find(out_.packings, packing);
    if (at == out_.packings.end()) at = out_.packings.insert(at, packing);
    numbers.push_back(static_cast<i32>(at - out_.packings.begin()));
  }
}

// Throws kBadMetadata if two parts disagree on type or shape. The copies of one box count once.
void Merger::add_tensor(const std::vector<Source>& sources) {
  const DcpMetadata& first = parts_[sources[0].part];
  i64 t = sources[0].tensor;
  Seen seen;
  for (const Source& s : sources) {
    const DcpMetadata& m = parts_[s.part];
    bool same_type = m.dtypes[s.tensor] == first.dtypes[t];
    if (!same_type || !std::ranges::equal(m.dims[s.tensor], first.dims[t]))
      throw Error(Code::kBadMetadata, "two ranks describe the tensor differently")
          .tensor(first.name(t))
          .expected(cat(dtype_name(first.dtypes[t]), " ", dims_to_string(first.dims[t])))
          .found(cat(dtype_name(m.dtypes[s.tensor]), " ", dims_to_string(m.dims[s.tensor])));
    add_chunks(s, seen);
  }
  append(out_.names.items, first.names[t]);
  append(out_.dims.items, first.dims[t]);
  out_.dtypes.push_back(first.dtypes[t]);
  out_.names.end_row();
  out_.dims.end_row();
  out_.offsets.end_row();
  out_.sizes.end_row();
  out_.records.end_row();
}

// Every holder of a replicated tensor wrote it; the first copy is used, the others are kept for comparison.
void Merger::add_chunks(const Source& s, Seen& seen) {
  const DcpMetadata& m = parts_[s.part];
  std::size_t rank = m.dims[s.tensor].size();
  auto bytes = [](std::span<const i64> v) {
    return std::string_view(reinterpret_cast<const char*>(v.data()), v.size_bytes());
  };
  for (std::size_t c = 0; c < m.records[s.tensor].size(); c++) {
    std::span<const i64> offset = m.offsets[s.tensor].subspan(c * rank, rank);
    std::span<const i64> size = m.sizes[s.tensor].subspan(c * rank, rank);
    DcpRecord record = moved(m.records[s.tensor][c], s.part);
    if (auto [at, fresh] = seen.emplace(cat(bytes(offset), bytes(size)), record); !fresh) {
      out_.copies.push_back({out_.names.size(), false, at->second, record});
      continue;
    }
    append(out_.offsets.items, offset);
    append(out_.sizes.items, size);
    out_.records.items.push_back(record);
  }
}

// Objects of one name are one object that every rank saved; the lowest rank's is used.
void Merger::add_objects(std::size_t part) {
  const DcpMetadata& m = parts_[part];
  for (i64 o = 0; o < m.object_names.size(); o++) {
    DcpRecord record = moved(m.object_records[o], part);
    if (u32 row = object_names_.add(m.object_name(o)); row != static_cast<u32>(out_.object_names.size())) {
      out_.copies.push_back({row, true, out_.object_records[row], record});
      continue;
    }
    append(out_.object_names.items, m.object_names[o]);
    out_.object_names.end_row();
    out_.object_records.push_back(record);
  }
}

}  // namespace

DcpMetadata merge_dcp_metadata(std::span<const DcpMetadata> parts) { return Merger(parts).run(); }

}  // namespace mckpt::impl
