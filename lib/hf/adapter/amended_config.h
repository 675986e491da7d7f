// Entries that config.json of a base must say otherwise for the model with an adapter in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

struct SideFiles;

// A value.
struct AmendedConfig {
  std::optional<i64> vocab{};  // vocab_size: the adapter has other rows of the vocabulary
  bool untied = false;         // tie_word_embeddings: the output layer has values of its own
  bool any() const { return vocab || untied; }
};

// The config with what is amended, as text and among the files of a result: every other byte of the text
// stays as it was.
std::string amended(std::string_view config_json, const AmendedConfig& how);
void amend(SideFiles& files, const AmendedConfig& how);

}  // namespace mckpt::impl
