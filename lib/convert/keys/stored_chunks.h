// Lists of chunks, each under a key: the chunks that a store has, or those that a layout plans. A side of
// every job (convert/jobs/chunk_side.h) is such a list, whatever its chunks are stored in.
//
//   PlannedChunks    the chunks of a result that a DcpLayout lays out
//   ListedChunks     all chunks of some tensors of a store
//   NamedChunks      those of the tensors that another store has under the same names
//   StoredChunks     those of the model section of a checkpoint, under the keys of a KeyTable
//   ChosenChunks     those of such a list whose keys are chosen
//   SomeChunks       a selection of another list
//
// Lists are columns of numbers: 12 bytes for each chunk of a store. Boxes, names and places are looked up in
// the store or the layout when they are asked for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/checksum.h"

namespace mckpt::impl {

class ByteSource;
class DcpLayout;
class DcpTensorFrame;
class KeyTable;
class Store;
struct Chunk;
struct ChunkData;
struct DcpLayoutKey;

// The interface of all lists. Functions are const and thread-safe; spans and strings that they return refer
// to the store or layout behind the list, which outlives it. pre, for all: 0 <= chunk < size().
class ChunkList {
 public:
  struct Box {
    std::span<const i64> offsets, sizes;
  };
  struct Place {
    i32 file = 0;
    i64 data_offset = 0;
    DType dtype = DType::kU8;
    std::vector<Checksum> sums{};  // of the records that the data are read from
  };

  virtual ~ChunkList() = default;
  virtual i64 size() const = 0;
  virtual i32 key(i64 chunk) const = 0;  // of a key table, or a number that the maker of the list chose
  virtual Box box(i64 chunk) const = 0;  // in the tensor of the key
  virtual std::span<const i64> dims(i64 chunk) const = 0;  // of that tensor
  virtual DType dtype(i64 chunk) const = 0;
  virtual Place place(i64 chunk) const = 0;  // may read the chunk's own header
  // For a chunk of a result: the tensor that the chunk is a piece of, by number and by name, and the records
  // around its data; null if its file has none.
  virtual i32 tensor(i64 chunk) const { return key(chunk); }
  virtual std::string name(i64 chunk) const = 0;
  virtual const DcpTensorFrame* frame(i64 /*chunk*/) const { return nullptr; }
  // Whether the chunk of a result has the items of another chunk once more: ranks hold parameters alike.
  virtual bool copy(i64 /*chunk*/) const { return false; }
  // The bytes of a place whose file is none of the store's: they are computed. Null: there are none.
  virtual std::shared_ptr<const ByteSource> made(i32 /*file*/) const { return nullptr; }
  // A made-up place for an outline: different chunks have different places, and no header is read.
  Place numbered_place(i64 chunk) const { return {0, chunk, dtype(chunk)}; }
  i64 items(i64 chunk) const { return Shape(box(chunk).sizes).items(); }
};

// The chunks of a result, as a layout places them.
class PlannedChunks : public ChunkList {
 public:
  // key(): table_key[k] for key k of the layout. Both outlive this.
  PlannedChunks(const DcpLayout& layout, std::span<const i32> table_key)
      : layout_(layout), table_key_(table_key) {}

  i64 size() const override;
  i32 key(i64 c) const override;
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override;
  DType dtype(i64 c) const override;
  Place place(i64 c) const override;
  i32 tensor(i64 c) const override;
  std::string name(i64 c) const override;
  const DcpTensorFrame* frame(i64 c) const override;

 private:
  const DcpLayoutKey& of(i64 c) const;

  const DcpLayout& layout_;
  std::span<const i32> table_key_;
};

// Chunks of a store, without replicas and without chunks of no items. Derived classes fill the list when they
// are constructed.
class StoreChunks : public ChunkList {
 public:
  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return at(c).key; }
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override;
  DType dtype(i64 c) const override;
  Place place(i64 c) const override;
  std::string name(i64 c) const override;

  struct Entry {
    i32 key, tensor, chunk;  // `tensor` and `chunk` are numbers of the store
  };
  Entry entry(i64 c) const { return at(c); }

 protected:
  explicit StoreChunks(const Store& store) : store_(store) {}  // the store outlives this
  const Store& store() const { return store_; }
  void add(i32 tensor, i32 key);  // all chunks of the tensor that have items and are not replicas
  void add(const Entry& entry) { chunks_.push_back(entry); }

 private:
  const Entry& at(i64 c) const { return chunks_[c]; }

  const Store& store_;
  std::vector<Entry> chunks_;
};

// All chunks of the tensors in a list of (tensor, key).
class ListedChunks final : public StoreChunks {
 public:
  ListedChunks(const Store& store, std::span<const std::pair<i32, i32>> tensors) : StoreChunks(store) {
    for (auto [tensor, key] : tensors) add(tensor, key);
  }
};

// The chunks of another list of the store whose keys are chosen.
class ChosenChunks final : public StoreChunks {
 public:
  ChosenChunks(const Store& store, const StoreChunks& all, const std::function<bool(i32 key)>& chosen)
      : StoreChunks(store) {
    for (i64 c = 0; c < all.size(); c++)
      if (chosen(all.key(c))) add(all.entry(c));
  }
};

// Some of the chunks of a list, which outlives this.
class SomeChunks final : public ChunkList {
 public:
  SomeChunks(const ChunkList& all, std::vector<i32> some) : all_(all), some_(std::move(some)) {}

  i64 size() const override { return std::ssize(some_); }
  i32 key(i64 c) const override { return all_.key(of(c)); }
  Box box(i64 c) const override { return all_.box(of(c)); }
  std::span<const i64> dims(i64 c) const override { return all_.dims(of(c)); }
  DType dtype(i64 c) const override { return all_.dtype(of(c)); }
  Place place(i64 c) const override { return all_.place(of(c)); }
  i32 tensor(i64 c) const override { return all_.tensor(of(c)); }
  std::string name(i64 c) const override { return all_.name(of(c)); }
  const DcpTensorFrame* frame(i64 c) const override { return all_.frame(of(c)); }
  std::shared_ptr<const ByteSource> made(i32 file) const override { return all_.made(file); }

 private:
  i64 of(i64 c) const { return some_[c]; }

  const ChunkList& all_;
  std::vector<i32> some_;
};

// The chunks of a store's tensors, under the numbers of the tensors that have the same names in another
// store. Tensors that the other store does not have are left out.
class NamedChunks final : public StoreChunks {
 public:
  // `except`: tensors of the store that are left out as well. Both stores outlive this.
  NamedChunks(const Store& store, const Store& other, const std::set<i64>& except = {});
};

// The chunks of a checkpoint's model section under the keys of a table, without copies of tied weights and
// without objects that torch stores as tensors (`_extra_state`).
class StoredChunks final : public StoreChunks {
 public:
  // Throws kUnaccounted for tensors of the model section that are not a key of the table, kSourceShape if the
  // shape of a tensor is not its key's. Store and table outlive this object.
  StoredChunks(const Store& store, const KeyTable& keys);

  // Tensors of the store that are left out because the model ties them to another tensor: an output layer
  // beside the embedding. open_sharded() checks whether both hold the same values.
  const std::vector<i32>& copies() const { return copies_; }
  // By source tensor, the type in which its items are stored; nothing where no chunk has them.
  std::vector<std::optional<DType>> types_of_sources() const;

 private:
  const KeyTable& keys_;
  std::vector<i32> copies_;
};

// The embedding that belongs to an output layer, by its name: "a.b.output_layer.weight" belongs to
// "a.b.embedding.word_embeddings.weight". -1: the tensor is not an output layer, or there is no such
// embedding.
i64 tied_embedding(const Store& store, i64 tensor);

// Throws kUnsupportedTensor unless the chunk's items are stored row by row, little-endian and not compressed.
void check_plain(const Store& store, i64 tensor, const Chunk& chunk, const ChunkData& data);

}  // namespace mckpt::impl
