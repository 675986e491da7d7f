// The YAML is read line by line, which needs no parser: Bridge writes plain values as "  key: 12" below "model:".
#include "io/dcp/run/run_config.h"

#include <algorithm>
#include <span>

#include "core/base/error.h"
#include "core/base/int.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::string run_config_text(const Store& store) {
  constexpr i64 kMostBytes = i64{4} << 20;
  try {
    InputFile file = Folder(store.root(), store.opening()).open_file(std::string(kRunConfigName));
    const std::vector<u8> bytes = file.read(0, std::min<i64>(file.size(), kMostBytes));
    return {bytes.begin(), bytes.end()};
  } catch (const Error&) {
    return "";
  }
}

// A line without indentation begins another section.
std::optional<std::string_view> model_entry(std::string_view text, std::string_view key) {
  bool in_model = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line[0] != ' ' && line[0] != '#' && line[0] != '-') in_model = line == "model:";
    if (!in_model || !line.starts_with("  ")) continue;
    line.remove_prefix(2);
    if (!line.starts_with(key) || !line.substr(key.size()).starts_with(": ")) continue;
    return line.substr(key.size() + 2);
  }
  return std::nullopt;
}

}  // namespace mckpt::impl
