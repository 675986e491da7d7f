// The logits of a model and of its export, computed by transformers in a Python of this machine: what a user
// of the export gets. The script is scripts/logits, which travels in the program.
//
//   logits   equal: logits of 16 tokens and all 24 layers, bit for bit
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

struct LogitsOptions {
  std::string python;              // as find_python() returns it
  bool trust_remote_code = false;  // run code that is in the folders
};

// The script's answer about two models.
struct LogitsAnswer {
  bool equal = false;  // every bit of the logits, and of the hidden states behind every layer
  i64 tokens = 0, layers = 0;
  std::optional<i64> first_layer{};  // that differs; -1: the embedding
  // Of the logits; none where they are not finite or of other shapes.
  std::optional<double> largest_difference{}, relative_l2{};
  std::optional<i64> same_next_tokens{};
  std::string line;
};

// Asks whether transformers has a class for the model, and reads no weights. Throws kModuleMissing without
// Python, torch, transformers or such a class. `keep_on`: as of run_python().
void check_logits(const std::string& folder, const LogitsOptions& options,
                  const std::function<bool()>& keep_on);
// Runs both models on the CPU. Throws likewise, and for a model that does not run.
LogitsAnswer compare_logits(const std::string& exported, const std::string& original,
                            const LogitsOptions& options, const std::function<bool()>& keep_on);

}  // namespace mckpt::impl
