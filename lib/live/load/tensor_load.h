// TensorLoad: tensors of a checkpoint that are wanted in the memory of one device, for whoever computes
// there. It is planned from headers; load_tensors() then reads everything at once.
//
//   plan_tensors   every tensor of a store, whole             embed_tokens.weight [151936, 1024], norm.weight [1024]
//   plan_rank      the tensors of one rank of a Megatron run  decoder.layers.0.self_attention.linear_qkv.weight [2048, 1024]
//
//   block 0, about 1 GiB   | embed_tokens.weight | norm.weight | ...       every tensor begins at a multiple of 256 bytes
//
// A tensor is somewhere in a block of device memory, and the block is freed when nobody uses any of its
// tensors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/hybrid/spellings.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/copy/counts.h"
#include "io/copy/job.h"

namespace mckpt::impl {

class Device;
class Store;
struct BlockLoadOptions;
struct Grid;
struct HfModel;
struct LayerPattern;
struct ValueOptions;

// The tensors to load, and their places. Movable; refers to the store or model that it was planned for.
struct TensorLoad {
  struct Tensor {
    std::string name;
    DType dtype;
    Shape shape;
    i64 bytes;
    i32 block;   // -1: the tensor has no items
    i64 offset;  // in the block
  };
  std::vector<Tensor> tensors;
  std::vector<i64> block_bytes;
  i64 bytes = 0;                        // of all tensors
  std::unique_ptr<CopyJob> job;         // writes block b as its file b
  std::shared_ptr<const void> owned{};  // what the job refers to
};

// The chosen tensors, in that order. `dtype`: the type of the floating-point tensors of 16 bits and more, on
// the device; others keep theirs. Throws what TensorCopy throws. The store outlives the result.
TensorLoad plan_tensors(const Store& store, std::span<const i64> tensors, std::optional<DType> dtype);

// A rank of a training run. The pattern outlives the plan.
struct RankToLoad {
  const Grid& grid;
  i64 rank = 0;
  const ValueOptions& values;
  Spelling spelling{};
  const LayerPattern* groups = nullptr;
};
// The parameters that the rank has at run time, under their names there, gathered from a Hugging Face model.
// Throws kNotFound for a folder without weights, kBadRank, and what ModelMap::parameters() and import_job()
// throw. The model outlives the result.
TensorLoad plan_rank(const HfModel& model, const RankToLoad& rank);

// Loaded tensors. Each block is freed with its last pointer, and lives longer than this if somebody keeps
// one.
struct LoadedTensors {
  std::vector<TensorLoad::Tensor> tensors;
  std::vector<std::shared_ptr<u8>> blocks;  // in the device's memory
  CopyCounts counts;

  // Null: the tensor has no items.
  std::shared_ptr<u8> data(const TensorLoad::Tensor& t) const {
    return t.block < 0 ? nullptr : std::shared_ptr<u8>(blocks[t.block], blocks[t.block].get() + t.offset);
  }
};

// Allocates the blocks and fills them. Throws kOutOfMemory, kReadFailed, kInterrupted, kRanksFailed; nothing
// is kept then.
LoadedTensors load_tensors(TensorLoad load, const std::shared_ptr<Device>& device,
                           const BlockLoadOptions& options);

}  // namespace mckpt::impl
