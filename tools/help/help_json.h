// Help as JSON: the answer of `mckpt help --json`, for programs that call mckpt or complete its command line.
#pragma once

#include <span>

namespace mckpt::impl {

class Output;
struct HelpPage;

// One object with a command or mode for each page.
void write_help_json(Output& out, std::span<const HelpPage> pages);

}  // namespace mckpt::impl
