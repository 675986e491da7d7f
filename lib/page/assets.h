// The styles and scripts of pages and drawings, which are files of lib/page/html and lib/page/svg, and text
// in the program: lib/page/CMakeLists.txt has the list.
#pragma once

#include <string_view>

namespace mckpt::impl {

// The text of the file of that name. pre: it is in the list.
std::string_view page_asset(std::string_view name);

}  // namespace mckpt::impl
