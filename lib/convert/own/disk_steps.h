// The changes that transformers makes to the items of tensors when it saves them, step by step: each step
// takes the tensors of the one before, and all are views of the same items.
//
//   attn.q_proj [12, 8], attn.k_proj, attn.v_proj     kRope, then kJoin    wqkv [36, 8]
//   experts.gate_up_proj [4, 20, 12]                  kDivide, kExperts    experts.0.w1 [10, 12], ...
//   gate.weight [6, 8]                                kTranspose           gate.weight [8, 6]
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/boxed_tensor.h"
#include "convert/own/disk_names.h"
#include "hf/config/numbers.h"

namespace mckpt::impl {

enum class StepKind : u8 {
  kDivide,      // equal parts along `dim`: one for each target, or as many as the config says of one target
  kExperts,     // each index of `dim` is a tensor: its number takes the place of * in the name
  kJoin,        // all, one behind the other along `dim`
  kTranspose,   // `dim` and `other` change places
  kInterleave,  // along `dim`, the second half comes between the first
  kRope,        // the same within the rows of each head, of weights and biases whose name has one of `names`
  kTextVision,  // two stacks, of text and of vision, in as many parts as there are targets along `other`:
                // each index of `dim` is a tensor, and the tensors of vision are numbered behind the tensors
                // of text
  kPad,         // zeros behind the rows, up to a number of the config
  kSame,        // stays as it is
  kQueries,     // of [layers, 4, columns] the queries 0 and 3 of every layer, and 1 and 2
  kUnknown,     // not computed
};

struct DiskStep {
  StepKind kind;
  u8 dim = 0, other = 0;
  std::span<const std::string_view> names{};  // empty: all
  std::string_view number = "";               // an entry of the config, "vision_config.num_attention_heads"
  i64 otherwise = 0;                          // where the config has no such entry: transformers' default
};

// A tensor between two steps, and what takes the place of the words by which it was found in the name.
struct StepTensor {
  std::string name;
  BoxedTensor boxes;
};

// The values that the steps are applied to.
struct StepInput {
  std::vector<StepTensor> tensors;  // in the order of the sources
  std::span<const std::string_view> targets;
  const ConfigNumbers& numbers;
  i64 room = kMostModelTensors;  // for so many tensors
};

// Throws kSourceShape for a tensor that a step is not for, and kUnknownModel for a step that is not computed;
// neither says where.
std::vector<StepTensor> apply_steps(StepInput input, std::span<const DiskStep> steps);

}  // namespace mckpt::impl
