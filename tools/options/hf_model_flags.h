// The flags that say how to read a Hugging Face model.
#pragma once

#include <string>

namespace mckpt::impl {

class CommandLine;
struct HfModelOptions;

class HfModelFlags {
 public:
  void declare(CommandLine& line);
  HfModelOptions options() const;

 private:
  std::string expert_layout_ = "auto", map_file_;
};

}  // namespace mckpt::impl
