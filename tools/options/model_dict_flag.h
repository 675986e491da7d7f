// The flag --model-dict: which dict of a save is the model, where several may be.
//
//   mckpt export step-100 policy --model-dict actor --assets Qwen3-0.6B
#pragma once

#include <optional>
#include <string>

namespace mckpt::impl {

class CommandLine;

class ModelDictFlag {
 public:
  void declare(CommandLine& line);
  // After parse(): empty if it is not given. Throws kUsage for an empty name.
  std::string name() const;

 private:
  std::optional<std::string> dict_;
};

}  // namespace mckpt::impl
