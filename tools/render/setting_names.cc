// Fields of lib/options are shown by their flags: `source_tp` as --source-tp, `quantize` as --scheme. Other
// words in backquotes, such as commands, are left as they are; an odd backquote ends the search.
#include "tools/render/setting_names.h"

#include <algorithm>

#include "core/base/text.h"
#include "options/field_list.h"

namespace mckpt::impl {
namespace {

// Options that texts of the library name, of commands that take no struct of lib/options.
constexpr std::string_view kSettings[] = {
    "against",  "device", "parts", "pp_size", "rank", "rank_timeout", "phase_timeout", "report",
    "torch",  // of scripts/bootstrap
    "vp_stage",
};

// "" for a word that is neither.
std::string flag_of(std::string_view name) {
  if (std::string flag = flag_of_field(name); !flag.empty()) return flag;
  if (std::ranges::find(kSettings, name) == std::end(kSettings)) return "";
  std::string flag(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

}  // namespace

std::string with_flags(std::string_view text) {
  std::string out;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t open = std::min(text.find('`', from), text.size());
    std::size_t close = open == text.size() ? text.npos : text.find('`', open + 1);
    if (close == text.npos) return cat(out, text.substr(from));
    std::string_view name = text.substr(open + 1, close - open - 1);
    out += text.substr(from, open - from);
    if (std::string flag = flag_of(name); flag.empty()) {
      out += cat('`', name);
      from = close;  // which may open the next name
    } else {
      out += cat("--", flag);
      from = close + 1;
    }
  }
  return out;
}

}  // namespace mckpt::impl
