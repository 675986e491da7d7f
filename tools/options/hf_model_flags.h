// The flags that say how to read a Hugging Face model: --expert-layout and --map-file.
#pragma once

#include <string>

namespace mckpt::impl {

class CommandLine;
struct HfModelOptions;

// For every command that opens a Hugging Face model, also as the --assets of a checkpoint.
class HfModelFlags {
 public:
  void declare(CommandLine& line);
  HfModelOptions options() const;

 private:
  std::string expert_layout_ = "auto", map_file_;
};

}  // namespace mckpt::impl
