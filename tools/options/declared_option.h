// An option or argument that was declared, to say more of it:
//
//   line.option("--device NAME", device, "the device that holds the model").choices({"cpu", "cuda"}).common();
//
// command_line.cc has the functions for which CLI11 is needed, because it is used there alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/help/help_page.h"

namespace CLI {
class Option;
}

namespace mckpt::impl {

// pre: the CommandLine lives
class DeclaredOption {
 public:
  DeclaredOption(CLI::Option* option, HelpPage::Row& row) : option_(option), row_(row) {}
  DeclaredOption required();
  // The only values that are taken.
  DeclaredOption choices(std::vector<std::string> values);
  // Values that are known; which others are taken, the command itself decides.
  DeclaredOption words(std::vector<std::string> values) {
    row_.words = std::move(values);
    return *this;
  }
  // All values that are known where the command's first argument is `first`; none where nothing follows it.
  DeclaredOption words_after(std::string first, std::vector<std::string> values) {
    row_.words_after.emplace_back(std::move(first), std::move(values));
    return *this;
  }
  // Marks an option that most people need: shown by --help, where others are shown by --help-all alone. An
  // option that has a meaning only with another is not among them.
  DeclaredOption common() {
    row_.common = row_.needs.empty();
    return *this;
  }

 private:
  CLI::Option* option_;
  HelpPage::Row& row_;
};

}  // namespace mckpt::impl
