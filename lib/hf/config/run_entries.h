// RunEntries: the entries of config.json on which no tensor's shape depends, but which a training run of the
// model must have: the args of a checkpoint state them (convert/facts/megatron_args.h).
//
//   "rope_parameters": {"rope_theta": 500000.0, "rope_type": "llama3", "factor": 8.0}   -->   rope_base 500000
//   "num_experts_per_tok": 8                                                                 top_experts 8
//
// A number that the config does not give is 0, a text is "": the args then leave the field out, or contain
// the constant that the family has. Rotary embeddings have the default of transformers' class, if it is one
// of stretched embeddings or of a part of each head.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ConfigFields;

// The spellings of an entry: the first that the config has is read.
inline constexpr std::string_view kEpsilons[] = {"rms_norm_eps", "layer_norm_epsilon", "norm_eps",
                                                 "layernorm_epsilon", "layer_norm_eps"};
inline constexpr std::string_view kTopExperts[] = {"num_experts_per_tok", "top_k_experts", "moe_top_k"};
// The objects of rotary embeddings: what the second does not say is in the first.
inline constexpr std::string_view kRopeObjects[] = {"rope_scaling", "rope_parameters"};
inline constexpr std::string_view kSarvamYarn = "deepseek_yarn";  // Sarvam's word for "yarn"
// The types of rotary embeddings in any release of transformers: those that stretch nothing, and those that
// do. "mrope", "ernie_3d" and "xdrope" are words for sections of a head, which have positions of their own.
// "su" is an older word for "longrope", "ntk_alpha" HunYuan's for a kind of "dynamic".
inline constexpr std::string_view kPlainRopes[] = {"default", "mrope", "ernie_3d", "xdrope"};
inline constexpr std::string_view kStretchedRopes[] = {"linear",       "dynamic",  "yarn",  "longrope",
                                                       "proportional", "llama3",   "axial", "su",
                                                       kSarvamYarn,    "ntk_alpha"};

// How positions enter the attention: rotary embeddings and the way in which they are stretched.
struct RopeEntries {
  double base = 0, percent = 0;  // percent: the share of a head that is rotated
  std::string type;              // "default", "llama3", "yarn", ...
  double factor = 0, beta_fast = 0, beta_slow = 0, mscale = 0, mscale_all_dim = 0;
  double low_freq_factor = 0, high_freq_factor = 0;  // of "llama3"
  i64 original_positions = 0;
  std::vector<i64> sections;       // of a head: time, height, width
  std::string_view some_layers{};  // "layers without windows": the type is of these alone
  double unread_percent = 0;       // a share that the config gives and the model's class does not read
  std::vector<std::string>
      of_kinds;  // "full_attention: linear": types other than "default" of a kind of layer
};

// How the router chooses experts.
struct RouterEntries {
  i64 top_experts = 0, groups = 0, top_groups = 0;
  double scale = 0;
  std::optional<bool> renormalised;  // the weights of the chosen experts sum to one
};

// The entries of the language model.
struct RunEntries {
  i64 positions = 0;                   // max_position_embeddings
  i64 ffn = 0;                         // intermediate_size, which models without dense layers state too
  i64 head_dim = 0;                    // head_dim, as the config gives it
  std::optional<double> norm_epsilon;  // 0 is a value
  double attention_dropout = 0, hidden_dropout = 0;
  double glu_limit = 0;    // activations of experts are clamped to it
  std::string activation;  // of MLPs, as the config names it; "" if it names none
  RopeEntries rope;
  RouterEntries router;
};

// The object of the language model, which may be in the object of the model that thinks; else `top`.
ConfigFields language_of(const ConfigFields& top);

// `top`: the whole config; entries in "text_config" come first, if there is one. `own_code`: code beside the
// weights, or a map, may read an entry that transformers' class does not. Throws kBadConfig for an entry of
// the wrong type.
RunEntries read_run_entries(const ConfigFields& top, bool own_code);

}  // namespace mckpt::impl
