// The tensors of a store as regions of its files, for plans that read whole tensors: most are one region,
// those of sharded files one for every block of rows.
#pragma once

#include "core/items/plan.h"
#include "io/copy/read_sums.h"
#include "io/store/store_files.h"

namespace mckpt {

class TensorRegions {
 public:
  // All outlive this. `sums` receives the records that will be read; null: they are not compared.
  explicit TensorRegions(const Store& store, ReadSums* sums = nullptr) : store_(store), sums_(sums) {}

  // The regions of one plan.
  class InPlan {
   public:
    InPlan(const TensorRegions& regions, Plan& plan) : regions_(regions), plan_(plan) {}
    // Adds a move that reads the tensor `move.slot` in its own row-major order. Throws kUnsupportedTensor
    // where the tensor is not stored in that order.
    void add(i32 destination, Move move);

   private:
    struct Block {
      i64 begin, end;  // items of the tensor
      i32 region;
    };
    const std::vector<Block>& blocks_of(i32 tensor);

    const TensorRegions& regions_;
    Plan& plan_;
    std::vector<std::pair<i32, std::vector<Block>>> tensors_;
  };

 private:
  const Store& store_;
  ReadSums* sums_;
};

// Throws kUnsupportedTensor unless the chunk's items lie row by row, as they are in memory.
void check_plain(const Store& store, i64 tensor, const Chunk& chunk, const ChunkData& data);

}  // namespace mckpt
