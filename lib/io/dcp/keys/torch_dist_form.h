// How a torch_dist folder was saved, by its keys alone: versions and settings of Megatron store the same
// model in other tensors.
//
//   decoder.layers.mlp.linear_fc1.weight              layers          one tensor
//   decoder.layers.3.mlp.linear_fc1.weight            layers          a tensor each
//   ...mlp.experts.experts.7.linear_fc1.weight_w      experts         a tensor each (singleton_local_shards)
//   optimizer.state.fp32_param.decoder. ...           optimizer       fully_sharded_model_space
//   optimizer.distributed.dp_group_idx_0. ...         optimizer       dp_reshardable
//   ...linear_qkv.adapter.linear_in.weight            adapter         2 tensors of Megatron-Bridge, not merged
//   (no ..._extra_state/shard_...)                    extra states    none
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// Collects evidence name by name, in any order; then asked for the facts. A fact that the names do not show
// is left out.
class TorchDistForm {
 public:
  void tensor(std::string_view name);
  void object(std::string_view name);
  // Name and value, for people.
  std::vector<std::pair<std::string, std::string>> facts() const;

 private:
  void optimizer(std::string_view name);

  i64 adapter_ = 0;  // tensors
  bool stacked_ = false, indexed_ = false;
  bool experts_stacked_ = false, experts_indexed_ = false;
  bool model_ = false, extra_states_ = false;
  bool main_ = false, momentum_ = false, reshardable_ = false, states_ = false, buckets_ = false,
       gathered_ = false;
};

}  // namespace mckpt::impl
