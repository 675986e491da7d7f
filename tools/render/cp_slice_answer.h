// `mckpt pattern --cp-slice`: the rows of one context-parallel rank.
#pragma once

#include "tools/options/command_line.h"

namespace mckpt {

// The paragraphs of the help page about the kinds and their sizes.
void describe_cp_slice(CommandLine& line);

// Answers a question like "mamba:d_inner=16,nheads=4,ngroups=2,d_state=3,cp=4,rank=1". Throws kUsage where it
// cannot be read, and what core/hybrid/cp_slice.h throws for sizes that make no sense; sizes that do not divide are
// an answer.
Exit answer_cp_slice(Output& out, std::string_view question);

}  // namespace mckpt
