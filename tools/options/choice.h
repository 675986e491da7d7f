// The arguments GLOB and --regex, which choose the tensors that a command is about.
#pragma once

#include "io/store/tensor_choice.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {

void declare_choice(CommandLine& line, TensorChoice& choice);

}  // namespace mckpt::impl
