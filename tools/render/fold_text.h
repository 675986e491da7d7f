// Breaks lines that are longer than the terminal at blanks, so that what belongs together stays in sight:
//
//   plan    45 in -> 41 out: 39 copied, 2 fused; dropped 0,
//           invented 0
//
// The next lines begin below the text, where a line has a label and two blanks, and else a little further
// right than the line itself. A word is never cut: names and paths that are longer than the terminal can be
// copied as they are. Colour codes take no room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mckpt::impl {

// `hang`: the columns of blanks before the next lines.
std::string folded_line(std::string_view line, std::size_t width, std::size_t hang);
// Each line of the text.
std::string folded_text(std::string_view text, std::size_t width);

}  // namespace mckpt::impl
