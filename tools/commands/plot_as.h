// mckpt plot HF_DIR --as fsdp|torch_dist: the picture of a checkpoint that a training run of a grid would
// save of a Hugging Face model, planned from its config alone.
//
//   $ mckpt plot DeepSeek-V3 --as fsdp --tp 2 --ep 32 --dp 64 -o plan.html
#pragma once

#include <memory>
#include <string>

#include "tools/options/hf_run_flags.h"

namespace mckpt::impl {

class CommandLine;
class Store;

// The options of this form of `plot`.
class PlotAs {
 public:
  void declare(CommandLine& line);
  bool chosen() const { return !as_.empty(); }
  // The planned checkpoint; what was chosen and inferred is noted. pre: chosen(), and the line was parsed.
  std::unique_ptr<Store> plan(const CommandLine& line, const std::string& path, int threads) const;

 private:
  std::string as_;
  HfRunFlags run_{"auto"};
};

}  // namespace mckpt::impl
