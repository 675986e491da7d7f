// The arguments GLOB and --regex, which choose the tensors that a command is about: ls, stats. Without GLOB
// all tensors are chosen.
#pragma once

namespace mckpt::impl {

class CommandLine;
struct TensorChoice;

// `choice` is filled when the line is parsed, and must live until then.
void declare_choice(CommandLine& line, TensorChoice& choice);

}  // namespace mckpt::impl
