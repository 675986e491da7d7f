// The flags that say how to read a sharded checkpoint: its model, the ranks that wrote it, and damage that is
// accepted.
//
//   mckpt layout ckpt --assets Qwen3-30B-A3B --source-tp 2 --accept MC1315
//
// A class of flags has the form of all files here: declare() puts the options on a command's line, which
// later fills the members; options() makes the library's struct of them and throws kUsage for values that
// make no sense.
#pragma once

#include "mckpt/options.h"

namespace mckpt::impl {

class CommandLine;
struct CheckpointOptions;
struct OpenOptions;

class CheckpointFlags {
 public:
  void declare(CommandLine& line);
  // Files are opened as the command line says. pre: declare() was called; its command line lives
  CheckpointOptions options() const;

 private:
  SourceOptions given_;
  const OpenOptions* opening_ = nullptr;  // of the command line
};

}  // namespace mckpt::impl
