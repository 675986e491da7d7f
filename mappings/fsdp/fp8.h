// Weights that a run has in 8-bit floats (Megatron's --fp8-param-gather, by recipe). Transformer Engine
// quantises the weights of its linear layers; everything else of a model keeps its type:
//
//   decoder.layers.0.self_attention.linear_qkv.weight             uint8 in the buffer of weights, fp32 in that of main weights
//   decoder.layers.0.self_attention.linear_qkv.layer_norm_weight  bf16, fp32
//   embedding, output layer, router, biases, convolutions         bf16, fp32
//
// So a unit has one more group. Checkpoints have main weights alone, and differ in their boxes.
#pragma once

#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct FsdpSetup;
struct ModelParameter;

// Whether the run has the parameter in 8 bits.
bool is_fp8_weight(const ModelParameter& parameter, const FsdpSetup& setup);
// Whether a matrix of this name, in a layer of the text model or of MTP, is the weight of a linear layer that
// a run with such weights quantises.
bool is_fp8_name(std::string_view name);
// MXFP8 has a scale for so many items of a row, and for so many of a column.
inline constexpr i64 kItemsPerMxfp8Scale = 32;
// The rows of a parameter that v2 never parts: the blocks of MXFP8; 1 for others.
i64 block_rows(const FsdpSetup& setup);
// How often a rank has the weights: MXFP8 has them row by row and column by column.
i64 weight_copies(const FsdpSetup& setup);

// Throws kBadLayout for what Megatron-FSDP, or Transformer Engine, refuses, and for what is not known.
void refuse_fp8(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup);

}  // namespace mckpt::impl
