// ChunkSide: one side of a job, the source or the result. The chunks of a side hold items of *slots*, which
// are the model's own tensors. A job needs to know nothing of formats: the two sides meet wherever their
// chunks hold the same items of a slot.
//
//   a Hugging Face tensor       a box of its own slot                            [all of q_proj]
//   a key of a dialect          the runs that the key table has for the box      [q rows 0-7, k rows 0-1, v ...]
//   a key of unknown meaning    a box of a slot that both sides number alike     [rows 10-19 of "w"]
//   memory of a live model      the runs of the key under which it is saved
//
// Slots are numbered by their tensor in the model's source table, or, if no table is known, by whatever
// number both sides agree on. The fewer runs a chunk has, the faster its task is planned: a box of whole rows
// is one run.
#pragma once

#include <vector>

#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"

namespace mckpt::impl {

struct CheckpointKey;
struct ItemRun;
struct ModelParameter;

// A list of chunks with the meaning of their keys. The struct refers to the list, the table and the numbers
// and owns none of them: all outlive it. All functions are const and thread-safe.
struct ChunkSide {
  const ChunkList& chunks;
  const KeyTable* keys = nullptr;  // null: every chunk is a box of a slot
  // The meaning of a key of the list, by key: the number of a key of the table, or without a table the number
  // of a slot. -1: the chunk is a box of the slot that has the key's own number. Empty: every key means its
  // number.
  std::span<const i32> meaning{};

  bool is_box(i64 chunk) const { return !keys || meant(chunk) < 0; }
  // pre: is_box()
  i32 slot(i64 chunk) const {
    i32 means = meant(chunk);
    return means < 0 ? chunks.key(chunk) : means;
  }
  // Whether the chunk is a box that holds the items of another tensor a second time, as a tied weight does.
  // pre: is_box()
  bool repeats(i64 chunk) const { return slot(chunk) != chunks.key(chunk); }
  // pre: not is_box()
  const CheckpointKey& key(i64 chunk) const { return (*keys)[meant(chunk)]; }
  const ModelParameter& parameter(i64 chunk) const { return keys->parameter(key(chunk)); }
  // The items of the chunk in the chunk's own row-major order. Throws what KeyTable::runs() throws.
  std::vector<ItemRun> runs(i64 chunk) const;

 private:
  i32 meant(i64 chunk) const {
    i32 k = chunks.key(chunk);
    return meaning.empty() ? k : meaning[k];
  }
};

}  // namespace mckpt::impl
