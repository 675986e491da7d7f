// ChunkSide: one side of a job. Its chunks hold items of *slots*, the model's own tensors; two sides meet where
// their chunks hold the same items, whatever either of them is stored in:
//
//   a Hugging Face tensor       a box of its own slot                            [all of q_proj]
//   a key of a dialect          the runs that the key table has for the box      [q rows 0-7, k rows 0-1, v ...]
//   a key of unknown meaning    a box of a slot that both sides number alike     [rows 10-19 of "w"]
//   memory of a live model      as the key of its checkpoint
#pragma once

#include <vector>

#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"

namespace mckpt::impl {

struct CheckpointKey;
struct ItemRun;
struct ModelParameter;

struct ChunkSide {
  const ChunkList& chunks;
  const KeyTable* keys = nullptr;  // null: every chunk is a box of a slot
  // What a key of the list stands for: a key of the table, or without a table a slot. Below 0: a box of the
  // slot that has the key's number. Empty: every key stands for its own number.
  std::span<const i32> meaning{};

  bool is_box(i64 chunk) const { return !keys || meant(chunk) < 0; }
  // pre: is_box()
  i32 slot(i64 chunk) const {
    i32 means = meant(chunk);
    return means < 0 ? chunks.key(chunk) : means;
  }
  // Whether a box holds the items of another tensor once more, as tied weights do.
  bool repeats(i64 chunk) const { return slot(chunk) != chunks.key(chunk); }
  // pre: not is_box()
  const CheckpointKey& key(i64 chunk) const { return (*keys)[meant(chunk)]; }
  const ModelParameter& parameter(i64 chunk) const { return keys->parameter(key(chunk)); }
  // The items of the chunk in its own row-major order.
  std::vector<ItemRun> runs(i64 chunk) const;

 private:
  i32 meant(i64 chunk) const {
    i32 k = chunks.key(chunk);
    return meaning.empty() ? k : meaning[k];
  }
};

}  // namespace mckpt::impl
