// The flag --base: the model that an adapter changes. With it a path may be the folder of an adapter (PEFT),
// and is then read as that model with the adapter in it.
//
//   mckpt inspect checkpoint-500 --base Qwen3-0.6B
#pragma once

#include <span>
#include <string>

#include "mckpt/options.h"

namespace mckpt::impl {

class CommandLine;

// After parse(): the line's opening() has the base, if one is given. Throws kUsage if no path has an adapter.
void settle_base(CommandLine& line, const mckpt::OpenOptions& given, std::span<const std::string> paths);

// For commands whose only field of a struct it is.
class BaseFlag {
 public:
  void declare(CommandLine& line);
  void settle(CommandLine& line, std::span<const std::string> paths) const {
    settle_base(line, given_, paths);
  }

 private:
  mckpt::OpenOptions given_;
};

}  // namespace mckpt::impl
