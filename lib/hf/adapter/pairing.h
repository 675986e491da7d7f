// Which tensors of a base an adapter changes, and by which of its own tensors: pairs are found by names and
// proved by shapes. Each tensor of the adapter is used exactly once, or the adapter is refused.
//
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight [r, in]     both change
//   base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight [out, r]    model.layers.0.self_attn.q_proj.weight
//   base_model.model.lm_head.weight                                            replaces lm_head.weight
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;
struct LoraConfig;

// A tensor of the base that the adapter changes. Tensors are numbers of their stores; -1: there is none.
//
//   value = base or `replaced`, cast to the base's type
//   value += scale * (B A)       item (i, j) of matrix e: sum over k of B[first_row + i, k * experts + e] * A[e * rank + k, j]
//                                turned:                  sum over k of A[e * rank + k, i] * B[j, k * experts + e]
//   value += scale * `added`     of a vector
//   value *= magnitude[i] / norm of row i
struct AdaptedTensor {
  i64 tensor = -1;  // of the base; all others are of the adapter
  i64 replaced = -1;
  i64 a = -1, b = -1;
  i64 added = -1;
  i64 magnitude = -1;
  double scale = 1;
  i64 rank = 0;
  i64 experts = 1;       // matrices in `a` and `b`
  i64 expert = 0;        // the matrix of `a` and `b` that this tensor has
  bool stack = false;    // or it has all of them, one after the other
  i64 first_row = 0;     // of B A, that is the tensor's first
  bool turned = false;   // the tensor has the transpose of B A
  bool rounded = false;  // the product is rounded to the base's type before it is added
};

// In the order of the base. Throws kUnaccounted for tensors without a counterpart, kSourceShape for shapes
// that do not fit, kAmbiguousLayout if shapes do not say which parameter a pair is for, kUnsupportedTensor
// for layers that are not matrices and for a changed embedding of a model that has no output layer of its
// own.
std::vector<AdaptedTensor> pair_adapter(const Store& base, const Store& adapter, const LoraConfig& config);

}  // namespace mckpt::impl
