// The tensors and other objects of one torch file, in columns: the result of walking its pickle.
//
// Nested dicts and lists become dotted names: {"model": {"w": T}, "betas": [T, T]} has model.w, betas.0 and
// betas.1. Keys may contain dots themselves, as the keys of a state dict do, and are used as they are. If two
// tensors would get the same name, the later one's has the dots in its keys escaped (a\.b), and if even
// that is taken, #2, #3 and so on at its end. A value without any tensor in it is one object, named by the
// same rule among objects.
//
// A ShardedTensor is a row for each shard that the rank has of it, one after the other, or one row of no
// items and no storage.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/pickle/value.h"
#include "io/store/finding.h"
#include "io/torch/table/tensor.h"

namespace mckpt::impl {

class Pickle;
class ShardRows;

// Made of a pickle by TorchWalk; the reader of the file then gives the storages their places. Rows point
// into the table, and it keeps the pickle alive.
class TorchTable {
 public:
  // A storage of the file, used by one or more tensors.
  struct Storage {
    TorchStorage id;
    i64 offset = -1;  // of its bytes in the file; -1: not there
    i64 tensor = -1;  // the first one that uses it
  };
  // An object: a value in the pickle without tensors.
  struct Item {
    std::string name;
    PickleValue value;
  };

  // Walks the pickle, which was read with these rows. Throws kPickleLimit. A tensor with something wrong
  // becomes a finding and is left out.
  TorchTable(std::shared_ptr<const Pickle> pickle, std::shared_ptr<const ShardRows> rows);

  // A table of tensors that are in no pickle, each in a storage of its own.
  TorchTable() = default;
  void add_placed(std::string_view name, const TorchTensor& tensor, i64 storage_offset);

  const std::shared_ptr<const Pickle>& pickle() const { return pickle_; }
  const std::vector<Storage>& storages() const { return storages_; }
  const std::vector<Item>& objects() const { return objects_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // The sum of the facts that dotted names do not show: each list, each key that is a number, each dot in a
  // key. Two files with equal names and equal sums nest their values alike.
  u64 nesting() const { return nesting_; }

  // Gives each storage its place: `find` returns the offset of its bytes in the file, or throws what is
  // wrong; then the tensors of that storage are left out.
  void place_storages(const std::function<i64(const TorchStorage&)>& find);

  i64 size() const { return static_cast<i64>(rows_.size()); }
  std::string_view name(i64 row) const { return {names_.data() + at(row).name_begin, at(row).name_bytes}; }
  // The first bytes of the name that lead to the dict or list with the tensor: 6 for {"model": {"a.w": T}}, 0
  // for {"model.a.w": T} and for names that are not their keys alone.
  i64 dict_bytes(i64 row) const { return at(row).dict_bytes; }
  DType dtype(i64 row) const { return at(row).dtype; }
  std::span<const i64> dims(i64 row) const { return {numbers_.data() + at(row).dims, at(row).rank}; }
  std::span<const i64> strides(i64 row) const;                      // empty: row-major
  const TorchSharding* sharding(i64 row) const;                     // null: the tensor is whole
  i64 offset(i64 row) const;                                        // of the first item, in the file
  const Storage* storage(i64 row) const;                            // null: the row has none
  i64 extent_bytes(i64 row) const { return at(row).extent_bytes; }  // from there to the end of the last item

 private:
  friend class TorchWalk;
  static constexpr u32 kNoStorage = ~u32{0};
  // Numbers refer to the columns below, so that a hundred thousand tensors are a few megabytes.
  struct Row {
    u64 name_begin;
    u32 name_bytes;
    u32 dict_bytes;
    u32 rank;
    u32 storage;
    i32 sharding;
    u64 dims;         // in numbers_, followed by the strides unless row-major
    i64 begin_bytes;  // of the first item in the storage
    i64 extent_bytes;
    DType dtype;
    bool row_major;
  };
  const Row& at(i64 row) const { return rows_[row]; }
  void add(std::string_view name, i64 dict_bytes, const TorchTensor& tensor);
  void add_row(std::string_view name, i64 dict_bytes, const TorchTensor& tensor, u32 storage);
  u32 storage_index(const TorchStorage& s);
  void add_finding(Finding f);
  void drop_rows_without_storage(const std::map<u32, Finding>& wrong);  // by storage

  std::shared_ptr<const Pickle> pickle_;
  std::vector<Row> rows_;
  std::string names_;
  std::vector<i64> numbers_;
  std::vector<Storage> storages_;
  NameMap<std::string_view, u32> storage_by_key_;
  std::deque<TorchSharding> shardings_;
  std::vector<Item> objects_;
  std::vector<Finding> findings_;
  i64 more_findings_ = 0;
  u64 nesting_ = 0;
};

}  // namespace mckpt::impl
