// Man pages in roff, for man(1): one of mckpt itself and one of each command and mode.
//
//   mckpt-convert-reshard.1    mckpt convert reshard
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mckpt::impl {

struct HelpPage;

// The texts that the pages share.
struct ManualText {
  std::string_view version;
  std::string_view summary;        // of the program
  std::string_view exit_statuses;  // The exit statuses, as the pages print them
};

std::string man_name(const HelpPage& page);  // "mckpt-convert-reshard"
std::string man_page(const HelpPage& page, const ManualText& text);
// mckpt(1): the commands and the options of each of them.
std::string man_page_of_program(std::span<const HelpPage> pages, const ManualText& text);

}  // namespace mckpt::impl
