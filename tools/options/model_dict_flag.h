// The flag --model-dict: which dict of a save is the model, where several may be.
//
//   mckpt export step-100 policy --model-dict actor --assets Qwen3-0.6B
#pragma once

#include <string>

namespace mckpt::impl {

class CommandLine;

class ModelDictFlag {
 public:
  void declare(CommandLine& line);
  // After parse(): empty if it is not given.
  const std::string& name() const { return dict_; }

 private:
  std::string dict_;
};

}  // namespace mckpt::impl
