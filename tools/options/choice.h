// The arguments GLOB and --regex, which choose the tensors that a command is about.
#pragma once

namespace mckpt::impl {

class CommandLine;
struct TensorChoice;

void declare_choice(CommandLine& line, TensorChoice& choice);

}  // namespace mckpt::impl
