// An argument with a character that a shell might not leave as it is gets single quotes.
#include "tools/options/as_given.h"

#include "core/base/text.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";

std::string shell_word(std::string_view arg) {
  if (!arg.empty() && arg.find_first_not_of(kPlain) == arg.npos) return std::string(arg);
  std::string out = "'";
  for (char c : arg) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string as_given(const CommandLine& line) {
  std::string out = cat("mckpt ", line.command());
  for (const std::string& arg : line.args()) out += cat(" ", shell_word(arg));
  return out;
}

}  // namespace mckpt::impl
