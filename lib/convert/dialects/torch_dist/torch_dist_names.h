// Where torch_dist stores a parameter. Layers that are alike are one tensor, all experts of a layer another,
// and versions of Megatron name the layers of MTP differently:
//
//   decoder.layers.3.mlp.experts.linear_fc1.weight7
//       decoder.layers.mlp.experts.experts.linear_fc1.weight      at [3, 7]     stacked layers
//       decoder.layers.3.mlp.experts.experts.linear_fc1.weight    at [7]        layers by number
//       decoder.layers.3.mlp.experts.experts.7.linear_fc1.weight                experts by number, too
//
// Readers look at all places, a writer takes one of them: the names of torch_dist are in this file alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

// A tensor, and the indices along its first dimensions at which the parameter is.
struct TorchDistPlace {
  std::string name;
  std::vector<i64> at;
};

// All places of a parameter, or of a part of one, in the order in which a reader looks at them.
std::vector<TorchDistPlace> torch_dist_places(std::string_view name);
// The place that Megatron writes. `stacked`: the layers of the parameter's block are one tensor. MTP has the
// name "transformer_layer" (core/hybrid/mtp_names.h), experts are always one tensor, and the convolutions of
// Mamba have the name with a dot.
TorchDistPlace torch_dist_place(std::string_view name, bool stacked);

// The name under which Megatron's own modules save the norm in front of experts, as if it were fused:
// "...mlp.linear_fc1.layer_norm_weight" of "...pre_mlp_layernorm.weight". Nothing for another parameter.
std::optional<std::string> own_norm_of_experts(std::string_view name);

}  // namespace mckpt::impl
