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

class BaseFlag {
 public:
  void declare(CommandLine& line);
  // After parse(): the line's opening() has the base. Throws kUsage if it is given and no path has an
  // adapter.
  void settle(CommandLine& line, std::span<const std::string> paths) const;

 private:
  mckpt::OpenOptions given_;
};

}  // namespace mckpt::impl
