// Warnings about a valid layer pattern: checkpoints of such a model may lack layers, or keep two under one
// name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class Dialect : u8;
struct LayerPattern;
struct LayerRange;
struct StageRequest;

// A sentence for a person and a name for scripts; the pattern can be used all the same.
struct PatternWarning {
  std::string_view name;  // for scripts: "duplicate_keys"
  std::string message;
};

// Groups in which two layers share names of parameters, and a last stage without layers.
std::vector<PatternWarning> pattern_warnings(const LayerPattern& pattern);

// Warnings about running one pipeline stage of the pattern, `main` being its part before the first '/'.
// The stage may be valid although the pattern as a whole is not.
std::vector<PatternWarning> stage_warnings(std::string_view main, Dialect dialect,
                                           const StageRequest& request);

// "layers 4 to 8". pre: not empty
std::string range_words(const LayerRange& layers);

}  // namespace mckpt::impl
