// The chunks of a checkpoint by the keys of a model: those that a store has, or those that a layout plans.
#pragma once

#include <vector>

#include "convert/keys/key_table.h"
#include "io/dcp/layout.h"
#include "io/store/store.h"

namespace mckpt {

class ChunkList {
 public:
  struct Box {
    std::span<const i64> offsets, sizes;
  };
  struct Place {
    i32 file = 0;
    i64 data_offset = 0;
    DType dtype = DType::kU8;
    std::optional<Checksum> checksum{};
  };

  virtual ~ChunkList() = default;
  virtual i64 size() const = 0;
  virtual i32 key(i64 chunk) const = 0;  // in the key table
  virtual Box box(i64 chunk) const = 0;
  virtual DType dtype(i64 chunk) const = 0;
  virtual Place place(i64 chunk) const = 0;  // thread-safe; may read the chunk's own header
  // For an outline: tells chunks apart without reading anything.
  Place numbered_place(i64 chunk) const { return {0, chunk, dtype(chunk), std::nullopt}; }
};

class PlannedChunks final : public ChunkList {
 public:
  // The layout's keys are those of the table, in another order: table_key[k] is key k of the layout. Both
  // outlive this.
  PlannedChunks(const DcpLayout& layout, std::span<const i32> table_key)
      : layout_(layout), table_key_(table_key) {}

  i64 size() const override { return layout_.chunk_count(); }
  i32 key(i64 c) const override { return table_key_[static_cast<std::size_t>(layout_.chunk(c).key)]; }
  Box box(i64 c) const override { return {layout_.chunk(c).offsets, layout_.chunk(c).sizes}; }
  DType dtype(i64 c) const override { return layout_.key(layout_.chunk(c).key).dtype; }
  Place place(i64 c) const override {
    return {layout_.chunk(c).rank, layout_.chunk(c).data_offset(), dtype(c), std::nullopt};
  }

 private:
  const DcpLayout& layout_;
  std::span<const i32> table_key_;
};

// Chunks that a store has, without replicas and empty ones.
class StoreChunks : public ChunkList {
 public:
  i64 size() const override { return std::ssize(chunks_); }
  i32 key(i64 c) const override { return at(c).key; }
  Box box(i64 c) const override;
  DType dtype(i64 c) const override { return store_.dtype(at(c).tensor); }
  Place place(i64 c) const override;

  struct Entry {
    i32 key, tensor, chunk;  // of the store
  };
  Entry entry(i64 c) const { return at(c); }

 protected:
  explicit StoreChunks(const Store& store) : store_(store) {}  // the store outlives this
  void add(i32 tensor, i32 key);                               // all chunks of the tensor

 private:
  const Entry& at(i64 c) const { return chunks_[static_cast<std::size_t>(c)]; }

  const Store& store_;
  std::vector<Entry> chunks_;
};

// Those of tensors that are listed, each with its key.
class ListedChunks final : public StoreChunks {
 public:
  ListedChunks(const Store& store, std::span<const std::pair<i32, i32>> tensors) : StoreChunks(store) {
    for (auto [tensor, key] : tensors) add(tensor, key);
  }
};

// Some of the chunks of a list, which outlives this.
class SomeChunks final : public ChunkList {
 public:
  SomeChunks(const ChunkList& all, std::vector<i32> some) : all_(all), some_(std::move(some)) {}

  i64 size() const override { return std::ssize(some_); }
  i32 key(i64 c) const override { return all_.key(of(c)); }
  Box box(i64 c) const override { return all_.box(of(c)); }
  DType dtype(i64 c) const override { return all_.dtype(of(c)); }
  Place place(i64 c) const override { return all_.place(of(c)); }

 private:
  i64 of(i64 c) const { return some_[static_cast<std::size_t>(c)]; }

  const ChunkList& all_;
  std::vector<i32> some_;
};

// The model section of a checkpoint, without copies of tied weights.
class StoredChunks final : public StoreChunks {
 public:
  // Throws kUnaccounted for tensors of the model section that are no key of the table, kSourceShape where a
  // tensor has not the shape of its key. Both outlive this.
  StoredChunks(const Store& store, const KeyTable& keys);

  // Tensors of the store that were left out because they are copies of tied weights.
  const std::vector<i32>& copies() const { return copies_; }
  // By source tensor, the type in which its items are stored; nothing where no chunk has them.
  std::vector<std::optional<DType>> types_of_sources() const;

 private:
  const KeyTable& keys_;
  std::vector<i32> copies_;
};

}  // namespace mckpt
