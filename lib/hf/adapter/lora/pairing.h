// Which tensors of a base an adapter changes, and by which of its own tensors: pairs are found by names and
// proved by shapes. Each tensor of the adapter is used exactly once, or the adapter is refused.
//
//   base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight [r, in]     both change
//   base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight [out, r]    model.layers.0.self_attn.q_proj.weight
//   base_model.model.lm_head.weight                                            replaces lm_head.weight
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "hf/adapter/lora/base_facts.h"

namespace mckpt::impl {

class Store;
struct LoraConfig;

// A pair of factors, and which part of their product a tensor gets. Tensors are numbers of the adapter.
struct AdaptedFactors {
  i64 a = -1, b = -1;
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

// Rows of the base that a tensor of the adapter replaces by its own, one after the other.
struct AdaptedRows {
  i64 tensor = -1;
  std::vector<i64> rows{};
};

// A tensor of the result that the adapter changes. -1: there is none.
//
//   value = base or `replaced`, cast to the base's type
//   for all `factors`, one after the other, the value rounded to the base's type between them:
//   value += scale * (B A)       item (i, j) of matrix e: sum over k of B[first_row + i, k * experts + e] * A[e * rank + k, j]
//                                turned:                  sum over k of A[e * rank + k, i] * B[j, k * experts + e]
//   value *= magnitude[i] / norm of row i        turned: magnitude[j] / norm of column j
//   value += added_scale * `added`     of a vector
//   for all `tokens`, one after the other: its rows = rows of the adapter
struct AdaptedTensor {
  i64 tensor = -1;     // of the result: the base's, and those that it has not behind them
  i64 from = -1;       // of the base: what the adapter changes
  std::string name{};  // of a tensor that the base has not
  i64 replaced =
      -1;  // of the adapter, as all that follow. With other rows than the base's it says how many there are
  std::vector<AdaptedFactors> factors{};
  i64 added = -1;
  double added_scale = 1;
  std::vector<AdaptedRows>
      tokens{};  // two where the base ties the output layer to the embedding: its own last
};

// The model that an adapter makes of a base.
struct AdaptedModel {
  std::vector<AdaptedTensor> tensors;  // in the order of the base; those that it has not at the end
  bool untied = false;                 // the output layer was the embedding, and now has values of its own
  std::vector<std::string> notes{};
  std::string untouched{};  // a note, too: which modules the config chooses that have no factors; empty: none
};

// In the order of the base. Throws kUnaccounted for tensors without a counterpart, kSourceShape for shapes
// that do not fit, kAmbiguousLayout if shapes do not say which parameter a pair is for, kUnsupportedTensor
// for layers that are not matrices and for a changed embedding of a model that has no output layer of its
// own.
AdaptedModel pair_adapter(const Store& base, const Store& adapter, const LoraConfig& config,
                          const BaseFacts& facts = {});

}  // namespace mckpt::impl
