// Collects the tensors of a torch file in columns.
#include "io/torch/table/table.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/pickle/pickle.h"
#include "io/torch/table/walk.h"
#include "io/values/strided.h"

namespace mckpt::impl {
namespace {

// Findings of one file; a file made to be wrong could have one for each tensor.
constexpr std::size_t kMostFindings = 100;

// Items from the first to the last of the view, holes included. pre: check_torch_view() passed, so that
// nothing overflows.
i64 extent_items(const TorchTensor& t) {
  if (t.shape.items() == 0) return 0;
  i64 last = 0;
  for (int d = 0; d < t.shape.rank(); d++) last += (t.shape[d] - 1) * t.strides[d];
  return last + 1;
}

// torch gives a storage the type that it is named with first, and refuses to save one under two, unless it
// has no bytes. An untyped storage is of uint8.
void check_one_type(const TorchStorage& storage, DType seen) {
  if (storage.dtype == seen || storage.bytes == 0) return;
  throw Error(Code::kBadStorage,
              cat("the pickle gives the storage '", escaped(storage.key), "' two data types (mismatch)"))
      .expected(std::string(dtype_name(seen)))
      .found(std::string(dtype_name(storage.dtype)));
}

}  // namespace

TorchTable::TorchTable(std::shared_ptr<const Pickle> pickle, std::shared_ptr<const ShardRows> rows)
    : pickle_(std::move(pickle)) {
  for (PickleNote& n : pickle_->notes())
    findings_.push_back(
        {.code = n.code, .message = std::move(n.message), .offset = n.offset, .warning = n.warning});
  TorchWalk(*this, std::move(rows)).run();
  if (more_findings_ > 0)
    findings_.push_back({.code = Code::kBadTorchFile,
                         .message = cat("and ", counted(more_findings_, "more problem"), " of this file")});
}

void TorchTable::add_finding(Finding f) {
  if (findings_.size() < kMostFindings)
    findings_.push_back(std::move(f));
  else
    more_findings_++;
}

// The number of the storage with this key. Throws kBadStorage if it was named with another size or type
// before.
u32 TorchTable::storage_index(const TorchStorage& s) {
  auto [it, is_new] = storage_by_key_.try_emplace(s.key, static_cast<u32>(storages_.size()));
  if (is_new) {
    storages_.push_back({s, -1, static_cast<i64>(rows_.size())});
    return it->second;
  }
  check_one_type(s, storages_[it->second].id.dtype);
  check_one_size(s, storages_[it->second].id.bytes);
  return it->second;
}

void TorchTable::add(std::string_view name, i64 dict_bytes, const TorchTensor& t) {
  add_row(name, dict_bytes, t, t.nothing ? kNoStorage : storage_index(t.storage));
}

void TorchTable::add_placed(std::string_view name, const TorchTensor& t, i64 storage_offset) {
  storages_.push_back({t.storage, storage_offset, size()});
  add_row(name, 0, t, static_cast<u32>(storages_.size() - 1));
}

void TorchTable::add_row(std::string_view name, i64 dict_bytes, const TorchTensor& t, u32 storage) {
  Row r{};
  r.storage = storage;
  r.sharding = t.sharding ? static_cast<i32>(shardings_.size()) : -1;
  if (t.sharding) shardings_.push_back(*t.sharding);
  r.name_begin = names_.size();
  r.name_bytes = static_cast<u32>(name.size());
  r.dict_bytes = static_cast<u32>(dict_bytes);
  names_ += name;
  r.rank = static_cast<u32>(t.shape.rank());
  r.dims = numbers_.size();
  numbers_.insert(numbers_.end(), t.shape.dims().begin(), t.shape.dims().end());
  r.row_major = is_row_major(t.shape.dims(), t.strides);
  if (!r.row_major) numbers_.insert(numbers_.end(), t.strides.begin(), t.strides.end());
  r.begin_bytes =
      t.storage.view_begin_bytes + (t.shape.items() == 0 ? 0 : dtype_bytes(t.dtype, t.offset_items));
  r.extent_bytes = dtype_bytes(t.dtype, extent_items(t));
  r.dtype = t.dtype;
  rows_.push_back(r);
}

std::span<const i64> TorchTable::strides(i64 row) const {
  const Row& r = at(row);
  if (r.row_major) return {};
  return {numbers_.data() + r.dims + r.rank, r.rank};
}

const TorchSharding* TorchTable::sharding(i64 row) const {
  i32 s = at(row).sharding;
  return s < 0 ? nullptr : &shardings_[s];
}

const TorchTable::Storage* TorchTable::storage(i64 row) const {
  u32 s = at(row).storage;
  return s == kNoStorage ? nullptr : &storages_[s];
}

i64 TorchTable::offset(i64 row) const {
  const Storage* s = storage(row);
  return s == nullptr ? 0 : s->offset + at(row).begin_bytes;
}

void TorchTable::place_storages(const std::function<i64(const TorchStorage&)>& find) {
  std::map<u32, Finding> wrong;
  for (u32 i = 0; i < storages_.size(); i++) {
    try {
      storages_[i].offset = find(storages_[i].id);
    } catch (const Error& e) {
      if (e.code() == Code::kReadFailed) throw;
      wrong[i] = to_finding(e);
    }
  }
  drop_rows_without_storage(wrong);
}

// Reports the tensors of storages that have no place, each by its name, and removes them. `wrong`: by
// storage.
void TorchTable::drop_rows_without_storage(const std::map<u32, Finding>& wrong) {
  auto lost = [&](const Row& r) { return r.storage != kNoStorage && storages_[r.storage].offset < 0; };
  if (wrong.empty()) return;
  for (i64 i = 0; i < size(); i++) {
    if (!lost(at(i))) continue;
    Finding f = wrong.at(at(i).storage);
    f.tensor = name(i);
    add_finding(std::move(f));
  }
  std::erase_if(rows_, lost);
  for (Storage& s : storages_) s.tensor = -1;
  for (i64 i = size(); i-- > 0;)
    if (at(i).storage != kNoStorage) storages_[at(i).storage].tensor = i;
}

}  // namespace mckpt::impl
