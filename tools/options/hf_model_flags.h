// The flags that say how to read a Hugging Face model: --expert-layout and --map-file.
#pragma once

#include "mckpt/options.h"

namespace mckpt::impl {

class CommandLine;
struct HfModelOptions;
struct OpenOptions;

// For every command that opens a Hugging Face model, also as the --assets of a checkpoint.
class HfModelFlags {
 public:
  void declare(CommandLine& line);
  HfModelOptions options() const;  // pre: declare() was called; its command line lives

 private:
  ModelOptions given_;
  const OpenOptions* opening_ = nullptr;  // of the command line
};

}  // namespace mckpt::impl
