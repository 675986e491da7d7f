// Writes roff. A line that begins with a dot or a quote would be a request, a hyphen of an option would be
// broken or drawn as a dash, and a backslash would begin an escape; text() writes them so that they are
// printed as they are.
#include "tools/help/man_page.h"

#include <algorithm>

#include "core/base/text.h"
#include "tools/help/help_page.h"

namespace mckpt::impl {
namespace {

// Literal text: every hyphen is one that can be copied.
std::string literal(std::string_view words) {
  std::string out;
  for (char c : words)
    out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  return out;
}

// Running text. Only the hyphens of options are literal.
std::string text(std::string_view words) {
  std::string out;
  if (words.starts_with('.') || words.starts_with('\'')) out = "\\&";
  char before = ' ';
  bool option = false;
  for (char c : words) {
    option = c == '-' ? option || before == ' ' || before == '`' || before == '(' : option && c != ' ';
    out += c == '\\' ? std::string("\\e") : c == '-' && option ? std::string("\\-") : std::string(1, c);
    before = c;
  }
  return out;
}

std::string bold(std::string_view words) { return cat("\\fB", literal(words), "\\fR"); }
std::string italic(std::string_view words) { return cat("\\fI", literal(words), "\\fR"); }

std::string header(std::string_view name, std::string_view summary, const ManualText& manual) {
  std::string upper(name);
  for (char& c : upper) c = 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return cat(".TH ", literal(upper), " 1 \"\" \"mckpt ", manual.version, "\" \"mckpt manual\"\n.SH NAME\n",
             literal(name), " \\- ", text(summary), "\n");
}

std::string name_of(const HelpPage::Row& row) {
  std::string out;
  for (const std::string& name : row.names) out += cat(out.empty() ? "" : ", ", bold(name));
  if (row.value.empty()) return out;
  return row.optional_value ? cat(out, "[=", italic(row.value), "]") : cat(out, " ", italic(row.value));
}

// A tagged paragraph.
std::string option_text(const HelpPage::Row& row) {
  std::string out = cat(".TP\n", name_of(row), "\n", text(row.help), ".\n");
  if (!row.needs.empty()) out += cat("Only with ", bold(row.needs), ".\n");
  if (!row.others.empty()) {
    out += "Also accepted as ";
    for (const std::string& name : row.others) out += cat(&name == &row.others[0] ? "" : ", ", bold(name));
    out += ".\n";
  }
  return out;
}

template <typename Wanted>
std::string options_text(const HelpPage& page, Wanted wanted) {
  std::vector<std::string> headings;
  for (const HelpPage::Row* row : page.options())
    if (wanted(*row) && std::ranges::find(headings, row->heading) == headings.end())
      headings.push_back(row->heading);
  std::string out;
  for (const std::string& heading : headings) {
    // Those without a subject follow the title of the section itself.
    if (heading != "Options") out += cat(".SS ", text(heading), "\n");
    for (const HelpPage::Row* row : page.options())
      if (row->heading == heading) out += option_text(*row);
  }
  return out;
}

std::string synopsis(const HelpPage& page) {
  std::string out = cat(".SH SYNOPSIS\n", bold(cat("mckpt ", page.command)), " [", italic("OPTIONS"), "]");
  for (const HelpPage::Row* row : page.arguments()) {
    std::string name = cat(italic(row->value), row->several ? "..." : "");
    out += row->required ? cat(" ", name) : cat(" [", name, "]");
  }
  return out + "\n";
}

std::string description(const HelpPage& page) {
  if (page.description.empty()) return "";
  std::string out = ".SH DESCRIPTION\n";
  for (const HelpPage::Paragraph& p : page.description)
    out += p.name.empty() ? cat(".PP\n", text(p.text), "\n")
                          : cat(".TP\n", bold(p.name), "\n", text(p.text), "\n");
  return out;
}

std::string see_also(std::span<const std::string> names) {
  std::string out = ".SH SEE ALSO\n";
  for (const std::string& name : names)
    out += cat(".BR ", literal(name), " (1)", &name == &names.back() ? "" : ",", "\n");
  return out;
}

std::string exit_text(const ManualText& manual) {
  return cat(".SH EXIT STATUS\n", text(manual.exit_statuses), ".\n");
}

}  // namespace

std::string man_name(const HelpPage& page) {
  std::string out = cat("mckpt-", page.command);
  std::ranges::replace(out, ' ', '-');
  return out;
}

std::string man_page(const HelpPage& page, const ManualText& manual) {
  std::string out = cat(header(man_name(page), page.summary, manual), synopsis(page), description(page));
  if (!page.arguments().empty()) out += ".SH ARGUMENTS\n";
  for (const HelpPage::Row* row : page.arguments())
    out += cat(".TP\n", italic(row->value), row->several ? "..." : "", "\n", text(row->help), ".\n");
  out +=
      cat(".SH OPTIONS\n", options_text(page, [](const HelpPage::Row&) { return true; }), exit_text(manual));
  if (!page.examples.empty()) out += ".SH EXAMPLES\n.EX\n";
  for (const std::string& example : page.examples) out += cat(literal(example), "\n");
  if (!page.examples.empty()) out += ".EE\n";
  std::vector<std::string> others = {"mckpt"};
  if (std::size_t blank = page.command.find(' '); blank != page.command.npos)
    others.push_back(cat("mckpt-", page.command.substr(0, blank)));
  return out + see_also(others);
}

std::string man_page_of_program(std::span<const HelpPage> pages, const ManualText& manual) {
  std::string out =
      cat(header("mckpt", manual.summary, manual), ".SH SYNOPSIS\n", bold("mckpt"), " [", italic("OPTIONS"),
          "] ", italic("COMMAND"), " [", italic("ARGS"), "]\n.SH COMMANDS\n");
  std::vector<std::string> names;
  for (const HelpPage& page : pages) {
    names.push_back(man_name(page));
    out += cat(".TP\n", bold(cat("mckpt ", page.command)), "\n", text(page.summary), ".\n");
  }
  out += ".SH OPTIONS\nThese are options of every command, and may be given before it.\n";
  out += options_text(pages.back(), [](const HelpPage::Row& row) { return row.global(); });
  return cat(out, exit_text(manual), see_also(names));
}

}  // namespace mckpt::impl
