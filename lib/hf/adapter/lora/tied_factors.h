// Two pairs of factors that PEFT keeps as one, for an embedding and for the output layer that is tied to it
// (ensure_weight_tying). A file has both:
//
//   model.embed_tokens.lora_embedding_A [r, rows] = lm_head.lora_B.weight [rows, r], transposed
//   model.embed_tokens.lora_embedding_B [columns, r] = lm_head.lora_A.weight [r, columns], transposed
//
// The model computes with W + s (B A) in both places, so the product belongs into the tied tensor once. PEFT
// loses the tie in training where the base is in bfloat16: each of the two then has values of its own.
#pragma once

namespace mckpt::impl {

class Store;
struct AdaptedFactors;

// Throws kUnsupportedTensor unless both have the same product, bit for bit. Tensors are read in windows.
void require_one_pair(const Store& adapter, const AdaptedFactors& one, const AdaptedFactors& other);

}  // namespace mckpt::impl
