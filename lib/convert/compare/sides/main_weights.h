// The main weights that a conversion makes: a training run needs them in fp32 beside the moments, and where a
// checkpoint has none, convert to-mcore makes them of its weights. So a comparison with that checkpoint takes
// its weights a second time:
//
//   tested   optimizer.state...linear_proj.weight.param          source   model.module...linear_proj.weight
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/store/store_view.h"

namespace mckpt::impl {

class CheckpointModel;

// The source with tensors behind its own that are its weights under the names of main weights: of those that
// the tested side has, and the source has not. Has no data of its own. The source outlives it.
class WithMainWeights final : public StoreView {
 public:
  WithMainWeights(const CheckpointModel& model, const Store& tested);

  i64 made() const { return std::ssize(made_); }

  i64 tensor_count() const override { return source().tensor_count() + made(); }
  std::string_view name(i64 t) const override { return is_made(t) ? made_[place(t)].name : source().name(t); }
  DType dtype(i64 t) const override { return source().dtype(of(t)); }
  std::span<const i64> dims(i64 t) const override { return source().dims(of(t)); }
  i64 chunk_count(i64 t) const override { return source().chunk_count(of(t)); }
  Chunk chunk(i64 t, i64 index) const override { return source().chunk(of(t), index); }
  ChunkData resolve(i64 t, i64 index) const override;
  // A comparison of checkpoints reads the sums in the headers of chunks.
  void each_checksum(const std::function<void(const Checksum&)>&) const override {}

 private:
  struct Made {
    std::string name;
    i64 weight;  // of the source
  };
  bool is_made(i64 t) const { return t >= source().tensor_count(); }
  i64 place(i64 t) const { return t - source().tensor_count(); }
  i64 of(i64 t) const { return is_made(t) ? made_[place(t)].weight : t; }

  std::vector<Made> made_;
};

}  // namespace mckpt::impl
