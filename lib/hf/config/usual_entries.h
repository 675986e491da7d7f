// The numbers that most config.json have, by their usual names, and the names that some families give them.
//
//   "hidden_size": 768       most families            "n_embd": 768       GPT-2's
#pragma once

#include <initializer_list>
#include <string_view>

namespace mckpt::impl {

struct UsualEntry {
  std::string_view key;
  std::initializer_list<std::string_view> others;
};

inline const UsualEntry kUsualEntries[] = {
    {"hidden_size", {"n_embd", "d_model", "dim", "model_dim"}},
    {"num_hidden_layers", {"n_layer", "n_layers", "num_layers"}},
    {"num_attention_heads", {"n_head", "n_heads", "num_heads"}},
    {"num_key_value_heads", {"num_kv_heads", "n_kv_heads", "n_head_kv", "num_query_groups"}},
    {"intermediate_size", {"n_inner", "ffn_hidden_size", "ffn_dim", "d_ff", "ffn_hidden_dim"}},
    {"vocab_size", {"padded_vocab_size", "n_vocab"}},
    {"head_dim", {"kv_channels", "attention_head_dim"}},
    {"hidden_act", {"activation_function", "hidden_activation", "hidden_act_fn"}},
    {"moe_intermediate_size", {"expert_intermediate_size", "moe_ffn_hidden_size"}},
};

}  // namespace mckpt::impl
