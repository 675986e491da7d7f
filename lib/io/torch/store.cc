// The store's answers, taken from the tables of its files. Nothing is read here: torch files say everything
// in the headers.
#include "io/torch/store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"
#include "io/store/store_files.h"
#include "io/torch/known_fields.h"

namespace mckpt::impl {
namespace {

constexpr i64 kReadBytes = i64{1} << 20;  // of a file that is only read

}  // namespace

TorchStore::TorchStore(std::string root, Format format, OpenOptions opening) {
  opening_ = std::move(opening);
  root_ = std::move(root);
  format_ = format;
}

i32 TorchStore::add_file(std::string path, i64 bytes, TorchFile file, std::string_view prefix, i32 rank) {
  i32 index = static_cast<i32>(files_.size());
  for (const std::vector<Finding>* list : {&file.table.findings(), &std::as_const(file.findings)})
    for (Finding f : *list) {
      f.file = path.empty() ? root_ : path;
      f.rank = rank;
      if (!f.tensor.empty()) f.tensor = cat(prefix, f.tensor);
      findings_.push_back(std::move(f));
    }
  for (const TorchTable::Item& o : file.table.objects()) {
    objects_.push_back({.name = cat(prefix, o.name),
                        .file = index,
                        .record_offset = file.pickle_offset,
                        .record_bytes = file.pickle_bytes,
                        .summary = pickle_summary(o.value)});
    values_.push_back({file.table.pickle(), o.value});
  }
  files_.push_back({std::move(path), bytes});
  tensor_of_row_.emplace_back(static_cast<std::size_t>(file.table.size()), -1);
  parts_.push_back({std::move(file.table), file.big_endian, rank, std::move(file.checksums)});
  return index;
}

void TorchStore::add_bytes(std::string path, i64 bytes, std::string name, i32 rank, std::string_view form) {
  objects_.push_back({.name = std::move(name),
                      .file = static_cast<i32>(files_.size()),
                      .record_offset = 0,
                      .record_bytes = bytes,
                      .summary = cat(with_commas(bytes), bytes == 1 ? " byte" : " bytes", form)});
  values_.push_back({nullptr, {}});
  files_.push_back({std::move(path), bytes});
  tensor_of_row_.emplace_back();
  parts_.push_back({TorchTable(), false, rank, {}});
}

// pre: the checksums are sorted by offset, as readers leave them.
const Checksum* TorchStore::record_sum(i32 file, i64 row) const {
  const std::vector<Checksum>& all = part(file).checksums;
  const TorchTable& t = table(file);
  const i64 begin = t.offset(row), end = begin + t.extent_bytes(row);
  auto after = std::upper_bound(all.begin(), all.end(), begin,
                                [](i64 at, const Checksum& c) { return at < c.offset; });
  if (after == all.begin() || t.storage(row) == nullptr) return nullptr;
  const Checksum& sum = *(after - 1);
  return end <= sum.offset + sum.bytes ? &sum : nullptr;
}

// Begins a tensor; rows that are added next belong to it.
void TorchStore::open_tensor(std::string_view prefix, std::string_view name, std::span<const i64> dims) {
  tensors_.push_back({rows_.size(), names_.size(), prefix.size() + name.size(), dims});
  names_ += prefix;
  names_ += name;
}

void TorchStore::add_tensor(i32 file, i64 row, std::string_view prefix) {
  const TorchTable& t = table(file);
  open_tensor(prefix, t.name(row), t.dims(row));
  rows_.push_back({file, false, row, zero_offsets(t.dims(row).size()), nullptr});
  tensor_of_row_[file][row] = tensor_count() - 1;
}

void TorchStore::add_sharded(std::string_view name, std::span<const i64> dims,
                             std::span<const Piece> pieces) {
  open_tensor("", name, numbers_.emplace_back(dims.begin(), dims.end()));
  for (const Piece& p : pieces) {
    rows_.push_back({p.file, p.replica, p.row, numbers_.emplace_back(p.offsets), nullptr});
    if (!p.sizes.empty()) {
      std::vector<i64>& box = numbers_.emplace_back(p.begin);
      box.insert(box.end(), p.sizes.begin(), p.sizes.end());
      rows_.back().box = &box;
    }
    tensor_of_row_[p.file][p.row] = tensor_count() - 1;
  }
}

const TorchStore::Row& TorchStore::row_at(i64 tensor, i64 index) const {
  return rows_[tensors_[tensor].first + static_cast<std::size_t>(index)];
}

std::string_view TorchStore::name(i64 tensor) const {
  const Tensor& t = tensors_[tensor];
  return {names_.data() + t.name_begin, t.name_bytes};
}

i64 TorchStore::dict_bytes(i64 tensor) const {
  const Row& r = row_at(tensor, 0);
  const TorchTable& t = table(r.file);
  return std::ssize(name(tensor)) - std::ssize(t.name(r.row)) + t.dict_bytes(r.row);
}

const TorchSharding* TorchStore::sharding(i64 tensor) const {
  const Row& r = row_at(tensor, 0);
  return table(r.file).sharding(r.row);
}

DType TorchStore::dtype(i64 tensor) const {
  const Row& r = row_at(tensor, 0);
  return table(r.file).dtype(r.row);
}

i64 TorchStore::chunk_count(i64 tensor) const {
  std::size_t t = static_cast<std::size_t>(tensor);
  std::size_t end = t + 1 < tensors_.size() ? tensors_[t + 1].first : rows_.size();
  return static_cast<i64>(end - tensors_[t].first);
}

std::span<const i64> TorchStore::sizes(const Row& r) const {
  if (r.box) return std::span<const i64>(*r.box).subspan(r.box->size() / 2);
  return table(r.file).dims(r.row);
}

// Empty where the items are row-major.
std::vector<i64> TorchStore::strides(const Row& r) const {
  const TorchTable& t = table(r.file);
  const std::span<const i64> own = t.strides(r.row), dims = t.dims(r.row);
  if (!own.empty() || !r.box) return {own.begin(), own.end()};
  std::vector<i64> out(dims.size());
  i64 step = 1;
  for (std::size_t d = dims.size(); d-- > 0; step *= dims[d]) out[d] = step;
  return out;
}

// The bytes from the first of the row to the first of the box in it.
i64 TorchStore::bytes_before(const Row& r) const {
  if (!r.box) return 0;
  const std::vector<i64> steps = strides(r);
  i64 items = 0;
  for (std::size_t d = 0; d < steps.size(); d++) items += (*r.box)[d] * steps[d];
  return dtype_bytes(table(r.file).dtype(r.row), items);
}

// From the first item to the end of the last one, what is between included.
i64 TorchStore::extent_bytes(const Row& r) const {
  if (!r.box) return table(r.file).extent_bytes(r.row);
  const std::vector<i64> steps = strides(r);
  const std::span<const i64> dims = sizes(r);
  i64 last = 0;
  for (std::size_t d = 0; d < steps.size(); d++) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * steps[d];
  }
  return dtype_bytes(table(r.file).dtype(r.row), last + 1);
}

Chunk TorchStore::chunk(i64 tensor, i64 index) const {
  const Row& r = row_at(tensor, index);
  return {.offsets = r.offsets,
          .sizes = sizes(r),
          .file = r.file,
          .rank = part(r.file).rank,
          .record_offset = table(r.file).offset(r.row) + bytes_before(r),
          .record_bytes = extent_bytes(r),
          .replica = r.replica};
}

ChunkData TorchStore::resolve(i64 tensor, i64 index) const {
  const Row& r = row_at(tensor, index);
  const TorchTable& t = table(r.file);
  ChunkData out{.file = r.file,
                .offset = t.offset(r.row) + bytes_before(r),
                .dtype = t.dtype(r.row),
                .strides = strides(r),
                .big_endian = part(r.file).big_endian};
  if (const Checksum* sum = record_sum(r.file, r.row)) {
    out.checksum = *sum;
    out.checksum->file = r.file;
    out.checksum->tensor = tensor;
  }
  return out;
}

std::shared_ptr<const PickleValue> TorchStore::object(i64 index) const {
  if (!values_[index].pickle) return nullptr;
  // The value lives in the pickle, so the two travel together.
  auto both = std::make_shared<ObjectValue>(values_[index]);
  if (contains_kind(both->value, PickleValue::Kind::kRow)) {
    // A record of a shard was taken out, which is a part of this value.
    const i32 file = objects_[index].file;
    i64 first = index;
    while (first > 0 && objects_[first - 1].file == file) first--;
    const TorchFile whole = read_torch_file(*StoreFiles(*this).open(file), ShardRecords::kKept);
    if (index - first >= std::ssize(whole.table.objects()))
      throw Error(Code::kReadFailed, "the file was changed while it was read");
    *both = {whole.table.pickle(), whole.table.objects()[index - first].value};
  }
  return {both, &both->value};
}

// Rows of a file's table are numbered in the file, so each is turned into the tensor that it became.
void TorchStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  for (std::size_t file = 0; file < parts_.size(); file++)
    for (Checksum c : parts_[file].checksums) {
      c.file = static_cast<i32>(file);
      if (c.tensor >= 0) c.tensor = tensor_of_row_[file][c.tensor];
      visit(c);
    }
}

std::optional<std::vector<Finding>> TorchStore::check(int /*threads*/) const {
  std::vector<Finding> out;
  const StoreFiles files(*this);
  std::vector<u8> block(kReadBytes);
  for (std::size_t o = 0; o < objects_.size(); o++) {
    if (values_[o].pickle) continue;
    try {
      const auto file = files.open(objects_[o].file);
      for (i64 at = 0; at < objects_[o].record_bytes; at += kReadBytes)
        file->read(at, std::span(block).first(std::min(kReadBytes, objects_[o].record_bytes - at)));
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      out.push_back(to_finding(e));
      out.back().file = files_[objects_[o].file].path;
    }
  }
  std::vector<std::string> unknown;
  for (const Part& p : parts_)
    if (p.table.pickle())
      for (const std::string& field : unknown_fields(*p.table.pickle()))
        if (std::ranges::find(unknown, field) == unknown.end()) unknown.push_back(field);
  if (!unknown.empty())
    out.push_back({.code = Code::kBadPickle,
                   .message = cat("fields that mckpt does not know are left out: ", listed(unknown)),
                   .warning = true});
  if (out.empty()) return std::nullopt;  // nothing to say of names and objects
  return out;
}

}  // namespace mckpt::impl
