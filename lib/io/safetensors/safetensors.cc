// The store's answers, from the tables of its files. Everything is in the headers, so resolve() reads
// nothing.
#include "io/safetensors/safetensors.h"

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/safetensors/shards.h"
#include "io/store/open/format_ids.h"
#include "io/store/open/sniff.h"

namespace mckpt::impl {

SafetensorsStore::SafetensorsStore(std::string root, Format format, OpenOptions opening) {
  opening_ = std::move(opening);
  root_ = std::move(root);
  format_ = format;
  tables_.emplace_back();
}

i32 SafetensorsStore::add_file(std::string path, i64 bytes, SafetensorsTable table) {
  for (Finding f : table.findings()) {
    f.file = path.empty() ? root_ : path;
    findings_.push_back(std::move(f));
  }
  files_.push_back({std::move(path), bytes});
  table_of_.push_back(static_cast<u32>(tables_.size()));
  tables_.push_back(std::move(table));
  return static_cast<i32>(files_.size() - 1);
}

void SafetensorsStore::add_lost_file(std::string path, i64 bytes) {
  files_.push_back({std::move(path), bytes});
  table_of_.push_back(0);
}

void SafetensorsStore::reserve_files(i64 count) {
  files_.reserve(static_cast<std::size_t>(count)), table_of_.reserve(static_cast<std::size_t>(count));
}

void SafetensorsStore::reserve_tensors(i64 count) {
  tensors_.reserve(static_cast<std::size_t>(count));
  rows_.reserve(static_cast<std::size_t>(count));
}

void SafetensorsStore::add_tensor(i32 file, i64 row) {
  std::span<const i64> dims = table(file).dims(row);
  tensors_.push_back({static_cast<u32>(rows_.size()), static_cast<u32>(dims.size()), dims.data()});
  rows_.push_back({file, -1, row, zero_offsets(dims.size()).data()});
}

void SafetensorsStore::add_sharded(std::span<const Piece> pieces, std::vector<i64> dims) {
  const std::vector<i64>& kept = numbers_.emplace_back(std::move(dims));
  tensors_.push_back({static_cast<u32>(rows_.size()), static_cast<u32>(kept.size()), kept.data()});
  for (const Piece& p : pieces)
    rows_.push_back({p.file, p.rank, p.row, numbers_.emplace_back(p.offsets).data()});
}

const SafetensorsStore::Row& SafetensorsStore::row_at(i64 tensor, i64 index) const {
  return rows_[tensors_[tensor].first + static_cast<std::size_t>(index)];
}

std::string_view SafetensorsStore::name(i64 tensor) const {
  const Row& r = first_row(tensor);
  return table(r.file).name(r.row);
}

DType SafetensorsStore::dtype(i64 tensor) const {
  const Row& r = first_row(tensor);
  return table(r.file).dtype(r.row);
}

std::span<const i64> SafetensorsStore::dims(i64 tensor) const {
  const Tensor& t = tensors_[tensor];
  return {t.dims, t.rank};
}

i64 SafetensorsStore::chunk_count(i64 tensor) const {
  std::size_t t = static_cast<std::size_t>(tensor);
  std::size_t end = t + 1 < tensors_.size() ? tensors_[t + 1].first : rows_.size();
  return static_cast<i64>(end - tensors_[t].first);
}

Chunk SafetensorsStore::chunk(i64 tensor, i64 index) const {
  const Row& r = row_at(tensor, index);
  const SafetensorsTable& t = table(r.file);
  std::span<const i64> sizes = t.dims(r.row);
  return {.offsets = {r.offsets, sizes.size()},
          .sizes = sizes,
          .file = r.file,
          .rank = r.rank,
          .record_offset = t.offset(r.row),
          .record_bytes = t.bytes(r.row)};
}

ChunkData SafetensorsStore::resolve(i64 tensor, i64 index) const {
  const Row& r = row_at(tensor, index);
  const SafetensorsTable& t = table(r.file);
  return {
      .file = r.file, .offset = t.offset(r.row), .dtype = t.dtype(r.row), .checksum = checksum(tensor, r)};
}

// The manifest's sum of exactly this row's bytes; nothing if there is none.
std::optional<Checksum> SafetensorsStore::checksum(i64 tensor, const Row& r) const {
  sums_read_.run([&] {
    try {
      sums_.emplace(*this);
    } catch (const Error& e) {
      if (e.is_of_the_moment()) throw;
      sums_.emplace();  // those who judge the folder's files say what is wrong with its manifest
    }
  });
  const SafetensorsTable& t = table(r.file);
  const SummedStretch* sum = sums_->find(r.file, t.offset(r.row));
  if (sum == nullptr || sum->bytes != t.bytes(r.row)) return std::nullopt;
  return Checksum{r.file, sum->offset, sum->bytes, sum->crc32, "", tensor};
}

void SafetensorsStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  for (i64 t = 0; t < tensor_count(); t++)
    for (i64 i = 0; i < chunk_count(t); i++)
      if (std::optional<Checksum> sum = checksum(t, row_at(t, i))) visit(*sum);
}

SafetensorsTable read_safetensors_table(const ByteSource& file) {
  try {
    return SafetensorsTable(file);
  } catch (Error& e) {
    if (e.code() != Code::kBadHeader && e.code() != Code::kBadJson && e.code() != Code::kCutShort) throw;
    const FileKind kind = sniff(file);
    if (sniffed_name(kind).empty()) throw;
    // The cause: numbers that were read from such a file say nothing.
    Error cause(e.code(), cat("this is not a safetensors file: it is ", sniffed_name(kind)));
    const bool again = kind == FileKind::kZeros || kind == FileKind::kHtml || kind == FileKind::kEmpty;
    throw again ? cause.help("fetch or copy the file again") : cause;
  }
}

void SafetensorsStore::add_metadata_facts(const SafetensorsTable& table) {
  for (const auto& [key, value] : table.metadata())
    if (key != kShardingInfoKey) add_fact(cat("metadata.", key), value);
}

// One file alone: all of its tensors count.
std::unique_ptr<Store> open_safetensors_file(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&]() -> std::unique_ptr<Store> {
    InputFile file(path, opening);
    auto store = std::make_unique<SafetensorsStore>(path, Format::kSafetensors, opening);
    i32 index = store->add_file("", file.size(), read_safetensors_table(file));
    const SafetensorsTable& table = store->table(index);
    store->reserve_tensors(table.size());
    for (i64 row = 0; row < table.size(); row++) store->add_tensor(index, row);
    store->add_metadata_facts(table);
    return store;
  });
}

}  // namespace mckpt::impl
