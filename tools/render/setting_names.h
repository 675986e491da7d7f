// Texts of the library name a setting by the field of its options, in backquotes: "`source_tp` gives the
// number". The program shows the flag instead: "--source-tp gives the number". So the library knows no flags,
// callers of the library read the names that they use, and each sentence is written once.
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

// The text with the flag of every setting that it names; other words in backquotes are left as they are.
std::string with_flags(std::string_view text);

}  // namespace mckpt::impl
