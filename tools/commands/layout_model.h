// mckpt layout MODEL [GLOB...]: all flat buffers of a model under Megatron-FSDP, computed from its config and
// headers.
//
//   $ mckpt layout tiny_qwen3_moe --ep 2 --dp 4
//   group  unit              kind     dtype     params  items  bucket  ranks  shard  csf  holes  padding
//   0      outside units     dense    bfloat16       3  2,064   2,112      4    528   16      0       48
//   1      decoder.layers.0  dense    bfloat16       7  ...
//   2      decoder.layers.0  experts  bfloat16       4  ...
//          layer 1, groups 3-4: as layer 0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "tools/options/checkpoint_flags.h"
#include "tools/options/layout_flags.h"

namespace mckpt::impl {

class CommandLine;

// The options of both forms of `layout`.
struct LayoutFlags {
  std::optional<i64> world, group;
  i64 rank = 0;
  std::optional<std::string> dtype;
  bool regex = false;
  GridFlags grid;
  FsdpFlags fsdp;
  SpellingFlags spelling;
  PatternFlag pattern;
  ValueFlags values{"auto"};
  CheckpointFlags source;

  void declare(CommandLine& line);
  // Throws kUsage for options that have a meaning only for a model.
  void refuse_for_shapes(const CommandLine& line) const;
};

// Whether the word is no shape, and there is a file or folder of that name.
bool names_model(const std::string& word);
// pre: names_model(words[0]); the other words are globs.
Exit answer_model(CommandLine& line, const std::vector<std::string>& words, const LayoutFlags& flags);

}  // namespace mckpt::impl
