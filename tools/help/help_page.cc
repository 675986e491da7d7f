// The consequences of a page's rows: how a row is shown, the line of usage, and what kind of value a name
// stands for.
#include "tools/help/help_page.h"

#include <algorithm>
#include <iterator>

#include "core/base/text.h"
#include "options/field.h"

namespace mckpt::impl {
namespace {

// Names of values that are neither words nor paths.
constexpr std::pair<std::string_view, Takes> kValues[] = {
    {"", Takes::kNothing},    {"N", Takes::kNumber},       {"X", Takes::kNumber},
    {"SIZE", Takes::kNumber}, {"SECONDS", Takes::kNumber}, {"ROWS", Takes::kNumber},
};

template <typename Wanted>
std::vector<const HelpPage::Row*> chosen(const std::deque<HelpPage::Row>& rows, Wanted wanted) {
  std::vector<const HelpPage::Row*> out;
  for (const HelpPage::Row& row : rows)
    if (wanted(row)) out.push_back(&row);
  return out;
}

}  // namespace

Takes takes_of(std::string_view value_name) {
  if (const PathKind path = path_kind(value_name); path != PathKind::kNone)
    return path == PathKind::kFolder ? Takes::kFolder : Takes::kPath;
  auto row = std::ranges::find(kValues, value_name, &std::pair<std::string_view, Takes>::first);
  return row == std::end(kValues) ? Takes::kWord : row->second;
}

std::string_view takes_name(Takes takes) {
  constexpr std::string_view kNames[] = {"nothing", "word", "number", "path", "folder"};
  return kNames[static_cast<int>(takes)];
}

std::string HelpPage::Row::left() const {
  if (is_argument()) return cat(value, several ? "..." : "");
  // Long names begin in one column.
  std::string out = names[0].starts_with("--") ? "    " : "";
  for (const std::string& name : names) out += cat(&name == &names[0] ? "" : ", ", name);
  if (optional_value) return cat(out, "[=", value, "]");
  return value.empty() ? out : cat(out, " ", value);
}

std::vector<const HelpPage::Row*> HelpPage::arguments() const {
  return chosen(rows, [](const Row& row) { return row.is_argument(); });
}

std::vector<const HelpPage::Row*> HelpPage::options() const {
  return chosen(rows, [](const Row& row) { return !row.is_argument(); });
}

std::string HelpPage::usage() const {
  std::string out = cat("mckpt ", command, " [OPTIONS]");
  for (const Row* argument : arguments())
    out += argument->required ? cat(" ", argument->left()) : cat(" [", argument->left(), "]");
  for (const Row& row : rows)
    if (row.required && !row.is_argument())
      out += cat(" ", row.names[0], row.value.empty() ? "" : cat(" ", row.value));
  return out;
}

}  // namespace mckpt::impl
