// Settings of config.json with which transformers (5.23) makes no model, though all tensors fit:
//
//   {"vocab_size": 100, "pad_token_id": 100}            the embedding has no such row
//   {"num_hidden_layers": 2, "layer_types": ["..."]}    a layer has no type
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

// A sentence for each. Throws kBadJson.
std::vector<std::string> refused_settings(std::string_view config_json);

}  // namespace mckpt::impl
