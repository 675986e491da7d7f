// The stacks of a hybrid model that are FSDP units if the class HybridStack is one. Which they are depends on
// whether the pattern has groups, because Megatron makes a nested stack of every group and then takes only
// nested stacks as units:
//
//   M*-     decoder                        one unit: all layers and the final norm
//           mtp.layers.0.mtp_model_layer   one unit: the layers of an MTP depth
//   [*-]M   decoder.layers.0               one unit: the two members of the group; M, the final norm and MTP
//                                          layers are in none
#pragma once

#include <string_view>
#include <vector>

namespace mckpt::impl {

struct LayerPattern;
struct ModelConfig;
struct ModelParameter;

// The module of a parameter's layer, "decoder.layers.0.layers.1". pre: the parameter is of a layer.
std::string_view layer_name(const ModelParameter& parameter);
// The stack that has the layer: "decoder.layers.0". pre: as for layer_name().
std::string_view stack_name(const ModelParameter& parameter);

// Gives the parameters that are in such a stack its number, the number of its first layer. `groups`: the
// pattern by which they are named; null: none. Nothing is done for a model that is not a hybrid.
void number_stacks(const ModelConfig& model, const LayerPattern* groups,
                   std::vector<ModelParameter>& parameters);

}  // namespace mckpt::impl
