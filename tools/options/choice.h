// The arguments GLOB and --regex, which choose the tensors that a command is about: ls, stats. Without GLOB
// all tensors are chosen.
#pragma once

#include "io/store/tensor_choice.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

// `choice` is filled when the line is parsed, and must live until then.
void declare_choice(CommandLine& line, TensorChoice& choice);

}  // namespace mckpt::impl
