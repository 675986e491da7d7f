// The flags that say how to read a Hugging Face model: --expert-layout and --map-file.
#pragma once

#include "hf/model.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

// For every command that opens a Hugging Face model, also as the --assets of a checkpoint.
class HfModelFlags {
 public:
  void declare(CommandLine& line);
  HfModelOptions options() const { return {expert_layout_of(expert_layout_), map_file_}; }

 private:
  std::string expert_layout_ = "auto", map_file_;
};

}  // namespace mckpt::impl
