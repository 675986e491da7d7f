// The configuration of the model that verl saves beside a run with Megatron, which has no args: the fields of
// Megatron's TransformerConfig as one JSON object.
//
//   actor/transformer_config.json       {"num_layers": 4, "layernorm_zero_centered_gamma": false, ...}
//         dist_ckpt/                    the checkpoint, up to verl 0.8
//         model/dist_ckpt/              the checkpoint, since 0.9; or it is the actor's folder with all its parts
//
// Values that JSON does not have are left out there, such as functions; types and enums are texts.
#pragma once

#include <optional>
#include <string_view>

#include "io/json/json.h"

namespace mckpt::impl {

class Store;

inline constexpr std::string_view kTransformerConfigName = "transformer_config.json";

// The JSON object of the file. Nothing where there is no such file, where it cannot be read, and where it
// lacks the sizes of a model. Throws what an error of the disk at this moment throws.
std::optional<JsonValue> transformer_config_of(const Store& store);

}  // namespace mckpt::impl
