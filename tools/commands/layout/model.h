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

#include <string>
#include <vector>

#include "core/base/error_code.h"

namespace mckpt::impl {

class CommandLine;
struct LayoutFlags;

// Whether the word is not a shape, and there is a file or folder of that name.
bool names_model(const std::string& word);
// pre: names_model(words[0]); the other words are globs.
Exit answer_model(CommandLine& line, const std::vector<std::string>& words, const LayoutFlags& flags);

}  // namespace mckpt::impl
