// Two config.json of one model say the same about how it computes. Names and shapes of tensors do not show
// most of it:
//
//   {"hidden_size": 64, "rope_theta": 10000.0}      {"hidden_size": 64, "rope_parameters": {"rope_theta": 1e6}}
//                                      -->  rope_theta: 10000.0 and 1e6
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// An entry with two values, as messages show them.
struct UnlikeSetting {
  std::string key, one, other;
};

// The entries that both configs have, with different values, by their keys. Those that say nothing about what
// the model computes (versions, types of weights, tokens, dropout) are left out, and so is what only one of
// them has: programs leave out what is the default. Throws kBadJson.
std::vector<UnlikeSetting> unlike_settings(std::string_view one, std::string_view other);
// The settings among them that say which tensors a model has and how large they are, in whatever part of the
// config: model_type, hidden_size, text_config.head_dim.
std::vector<UnlikeSetting> unlike_sizes(std::string_view one, std::string_view other);

}  // namespace mckpt::impl
