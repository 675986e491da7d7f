// A key of a DCP folder as front, name and tail, so that the name of a parameter can be changed and what
// sections put around it is kept:
//
//   fsdp_dtensor   optimizer.state.module.module.module. | decoder.layers.0.mlp.linear_fc1.weight | .exp_avg
//   torch_dist     optimizer.state.exp_avg.              | decoder.layers.mlp.linear_fc1.weight   |
//                                                          decoder.layers.mlp.linear_fc1._extra_state |
//                                                          /shard_1_2
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/dcp/dialect.h"

namespace mckpt::impl {

// The three parts of one key; front + name + tail is the key. The views point into the key. `name` is empty
// if the key is not that of a parameter.
struct KeySection {
  std::string_view front, name, tail;
  bool optimizer = false;

  bool model() const { return !optimizer && !name.empty(); }
};
// pre: the dialect is fsdp_dtensor or torch_dist.
KeySection key_section(DcpDialect dialect, std::string_view key);

// Which part of an object that many ranks or layers share is stored under a key of torch_dist:
// "/shard_<offset>_<shape>", each with a number a dimension.
struct ObjectShard {
  std::vector<i64> offset, shape;
};
// Nothing if the tail is not of this form.
std::optional<ObjectShard> object_shard(std::string_view tail);
std::string to_string(const ObjectShard& shard);  // "/shard_0.1_2.4"

// The positions of the dots that separate the keys of the nested dictionaries from which an fsdp_dtensor key
// was saved, by the sections that Megatron writes. Other dots are part of a name:
//
//   model.module.decoder.weight               -->  5              {"model": {"module.decoder.weight": ...}}
//   rng_state.0.0                             -->  9 11           {"rng_state": {"0": {"0": ...}}}
std::vector<i32> nesting_dots(std::string_view key);

}  // namespace mckpt::impl
