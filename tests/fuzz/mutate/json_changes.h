// Changes of a JSON tree, for the mutators of JSON and of safetensors headers.
#pragma once

#include "tests/fuzz/mutate/choice.h"
#include "tests/fuzz/mutate/json_tree.h"

namespace mckpt::impl::mutate {

// Changes one thing somewhere in the tree: a number, a text, a name, an entry, a kind. `other`: a tree from
// which values may come, or nullptr.
void change_json(JsonNode& root, const JsonNode* other, Choice& choice);

}  // namespace mckpt::impl::mutate
