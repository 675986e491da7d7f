// The pictures of split rules, as text for a terminal and as SVG. They are drawn by mappings/picture; here
// one is chosen and printed.
#pragma once

#include <string>

namespace mckpt::impl {

class Output;
struct GlobalFlags;

// `name`: a rule with all its pictures, or one picture; "" lists them. `svg` takes one picture.
// Throws kUsage.
void draw_rules(Output& out, const GlobalFlags& flags, const std::string& name, bool svg);

}  // namespace mckpt::impl
