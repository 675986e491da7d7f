// A row of the table is for all classes with the same names.
#include "hf/adapter/lora/tied_classes.h"

#include <algorithm>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

struct Row {
  std::string_view names;  // of a parameter with '=' between them, parameters with ';'
  bool by_default, fixed;
  std::string_view classes;  // each with a space before and behind it
};
#include "hf/adapter/lora/tied_classes.inc"

std::vector<std::string_view> parts_between(std::string_view text, char mark) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(mark), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace

std::optional<TiedClass> tied_class(std::string_view architecture) {
  const std::string word = cat(" ", architecture, " ");
  for (const Row& row : kRows) {
    if (row.classes.find(word) == row.classes.npos) continue;
    TiedClass out{{}, row.by_default, row.fixed};
    for (std::string_view names : parts_between(row.names, ';'))
      out.parameters.push_back(parts_between(names, '='));
    return out;
  }
  return std::nullopt;
}

}  // namespace mckpt::impl
