// Declares options with CLI11, turns its errors into Error, and prints the help page.
//
//   argument         as CLI11 sees it     why
//   --dry_run        --dry-run            both spellings of every long option are accepted
//   [*-]M            \x01[*-]M            CLI11 takes brackets for a list; the mark is removed again
//   --map=GLOB       --map                CLI11 has no option with an optional value: the value is taken out
//
// Help is made of our own table (tools/help/help_page.h); names that are not options get the nearest
//spelling.
#include "tools/options/command_line.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "core/base/error.h"
#include "io/file/model_files.h"
#include "io/file/source_stamps.h"
#include "options/fields.h"
#include "tools/help/help_text.h"
#include "tools/options/field_flags.h"
#include "tools/options/other_names.h"
#include "tools/process/module_path.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

constexpr char kShield = '\x01';  // CLI11 drops the brackets of "[a,b]" and "{}", but not behind this byte
constexpr std::string_view kShielded = "[{\x01";
constexpr const char* kHelpAll = "--help-all";

std::string unshielded(const std::string& arg) { return arg.starts_with(kShield) ? arg.substr(1) : arg; }

// The argument as CLI11 receives it. `options_end`: a lone -- was before it, so it is not an option.
std::string prepared(std::string arg, bool options_end) {
  std::size_t value = 0;
  if (!options_end && arg.starts_with("--")) {
    auto name_end = std::find(arg.begin(), arg.end(), '=');
    std::replace(arg.begin(), name_end, '_', '-');
    value = static_cast<std::size_t>(name_end - arg.begin()) + 1;
  }
  if (value < arg.size() && kShielded.find(arg[value]) != kShielded.npos) arg.insert(value, 1, kShield);
  return arg;
}

// A callback that stores the values of a positional or of a repeatable option in a command's own variable.
template <typename Value>
CLI::callback_t into(Value& value) {
  return [&value](const std::vector<std::string>& v) {
    if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      for (const std::string& one : v) value.push_back(unshielded(one));
    else
      value = unshielded(v.at(0));
    return true;
  };
}

}  // namespace

bool asks_for_help(std::span<const std::string> args) {
  auto end = std::find(args.begin(), args.end(), "--");
  return std::any_of(args.begin(), end,
                     [](const std::string& a) { return a == "-h" || a == "--help" || a == kHelpAll; });
}

// The part that needs CLI11. Declarations add to the CLI::App and to the help page at once, so the two cannot
// differ.
struct CommandLine::Impl {
  CLI::App app;
  std::string heading = "Options", unknown_option_note;
  HelpPage page;
  HelpPage* taken = nullptr;  // see take_page()
  std::vector<std::string> spellings;
  std::string companion;  // the option that those declared now need; see only_with()
  std::vector<std::pair<CLI::Option*, const HelpPage::Row*>> dependents;
  std::optional<Progress> waiting;      // from the end of parse() on
  std::vector<const CLI::Option*> own;  // all that the command declared; parse() adds the options of every
                                        // command

  Option noted(CLI::Option* option, HelpPage::Row& row) {
    if (!row.needs.empty()) dependents.emplace_back(option, &row);
    return Option(option, row);
  }
  void check_dependents() const {
    for (const auto& [option, row] : dependents)
      if (option->count() > 0 && app.get_option(row->needs)->count() == 0)
        throw Error(Code::kUsage, cat(option->get_name(), " has a meaning only with ", row->needs));
  }
  // "-n,--dry-run|--plan VALUE" -> a row of the page. `value`: the name of the value if there is none after a
  // blank.
  HelpPage::Row& declare(const std::string& names, std::string_view value, const std::string& text) {
    HelpPage::Row& row = page.rows.emplace_back();
    row.heading = heading, row.help = text, row.needs = companion;
    std::size_t blank = names.find(' ');
    row.value = blank == names.npos ? value : names.substr(blank + 1);
    std::string_view all = std::string_view(names).substr(0, blank);
    for (bool shown = true; !all.empty();) {
      std::size_t end = std::min(all.find_first_of(",|"), all.size());
      (shown ? row.names : row.others).emplace_back(all.substr(0, end));
      spellings.emplace_back(all.substr(0, end));
      shown &= end < all.size() && all[end] == ',';
      all.remove_prefix(std::min(end + 1, all.size()));
    }
    return row;
  }
  // "-n,--dry-run,--plan", for CLI11.
  static std::string all_names(const HelpPage::Row& row) {
    std::string out;
    for (const auto* names : {&row.names, &row.others})
      for (const std::string& name : *names) out += cat(out.empty() ? "" : ",", name);
    return out;
  }
  Option flag(const std::string& names, bool& value, const std::string& text) {
    HelpPage::Row& row = declare(names, "", text);
    return noted(app.add_flag(all_names(row), value, text)->disable_flag_override(), row);
  }
  // Without a word an option would be taken for one that is not given. Positional arguments do not come here.
  static std::string word_of(const std::string& given, const std::string& option) {
    std::string word = unshielded(given);
    if (word.empty()) throw Error(Code::kUsage, cat(option, " needs a value that is not empty")).found("''");
    return word;
  }
  // Calls `take` with the one value and with the option's name for messages.
  template <typename Fn>
  Option valued(const std::string& names, const char* value, const std::string& text, Fn&& take) {
    HelpPage::Row& row = declare(names, value, text);
    auto take_one = [take, label = row.names.back()](const std::vector<std::string>& v) {
      if (v.size() != 1) throw Error(Code::kUsage, cat(label, " is given more than once")).found(listed(v));
      take(word_of(v[0], label), label);
      return true;
    };
    return repeatable(row, take_one);
  }
  // pre: `take` is called with every value that was given, at least one, and returns true.
  Option repeatable(HelpPage::Row& row, CLI::callback_t take) {
    CLI::Option* option = app.add_option(all_names(row), std::move(take));
    return noted(option->take_all()->expected(1)->allow_extra_args(false), row);
  }
  Option positional(const std::string& name, const std::string& text, CLI::callback_t take) {
    HelpPage::Row& row = page.rows.emplace_back();
    row.heading = "Arguments", row.help = text, row.value = name;
    return Option(app.add_option(name, std::move(take)), row);
  }

  // The hyphens, which all have, are left out: only the words are compared. "" if none is near.
  std::string nearest_option(std::string_view name) const {
    std::vector<std::string_view> words;
    for (std::string_view s : spellings)
      if (s.starts_with("--")) words.push_back(s.substr(2));
    std::string_view near = nearest(name.substr(std::min(name.find_first_not_of('-'), name.size())), words);
    return near.empty() ? "" : cat("did you mean --", near, "?");
  }

  // An argument that no declaration takes: an option gets the nearest spelling, another argument is one too
  // many.
  Error unexpected(const std::string& arg) const {
    if (!arg.starts_with('-')) return Error(Code::kUsage, cat("unexpected argument '", escaped(arg), "'"));
    std::string name = arg.substr(0, arg.find('='));
    std::string message = cat("there is no option '", escaped(name), "'");
    std::string help = help_for_other_name(prepared(name, false), spellings);
    if (help.empty()) help = nearest_option(name);
    if (!help.empty()) message += cat("; ", help);
    Error e(Code::kUsage, message);
    if (!unknown_option_note.empty()) e.note(unknown_option_note);
    return e;
  }

  // Parses with CLI11 and throws its errors in our words.
  void parse(std::vector<std::string> reversed) {
    try {
      app.parse(reversed);
    } catch (const CLI::ExtrasError&) {
      throw unexpected(unshielded(app.remaining().at(0)));
    } catch (const CLI::RequiredError& e) {
      // A misspelt option comes first: a path beside it would not mend the line.
      for (const std::string& rest : app.remaining())
        if (rest.size() > 1 && rest[0] == '-' && rest != "--") throw unexpected(unshielded(rest));
      Error error(Code::kUsage, escaped(e.what()));
      if (!page.examples.empty()) error.note(cat("as in `", page.examples[0], "`"));
      throw error;
    } catch (const CLI::ArgumentMismatch& e) {
      std::string_view words = e.what(), name = words.substr(0, words.find_first_of(": "));
      if (words.ends_with("missing")) throw Error(Code::kUsage, cat(name, " needs a value"));
      if (words.ends_with("override"))
        throw Error(Code::kUsage, cat(name.size() > 1 ? "--" : "-", name, " takes no value"));
      throw Error(Code::kUsage, escaped(words));
    } catch (const CLI::ParseError& e) {
      throw Error(Code::kUsage, escaped(e.what()));
    }
  }
};

CommandLine::CommandLine(std::string command, std::string summary, std::vector<std::string> args)
    : command_(std::move(command)),
      args_(std::move(args)),
      opening_{.stamps = std::make_shared<SourceStamps>(), .helper_folders = module_path()},
      impl_(std::make_unique<Impl>()) {
  impl_->page.command = command_;
  impl_->page.summary = std::move(summary);
  impl_->app.set_help_flag();
  impl_->app.set_help_all_flag();
  impl_->app.allow_extras(false);
}

CommandLine::~CommandLine() = default;

DeclaredOption DeclaredOption::required() {
  option_->required();
  row_.required = true;
  return *this;
}

DeclaredOption DeclaredOption::choices(std::vector<std::string> values) {
  option_->check(CLI::Validator(
      [values](const std::string& given) -> std::string {
        std::string v = unshielded(given);
        if (std::find(values.begin(), values.end(), v) != values.end()) return {};
        std::string text = cat("'", escaped(v), "' is not one of ", listed(values, 20));
        // Short words are all near each other: "gpu" is not a misspelt "cpu".
        if (std::string_view near = nearest(v, values); near.size() > 3)
          text += cat("; did you mean ", near, "?");
        return text;
      },
      ""));
  return words(std::move(values));
}

void CommandLine::enter(std::size_t at, std::string summary) {
  command_ += cat(" ", args_[at]);
  impl_->page.command = command_;
  impl_->page.summary = std::move(summary);
  args_.erase(args_.begin() + static_cast<std::ptrdiff_t>(at));
}

void CommandLine::heading(std::string title) { impl_->heading = std::move(title); }

void CommandLine::only_with(std::string name) { impl_->companion = std::move(name); }

CommandLine::Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  return impl_->flag(names, value, help);
}

CommandLine::Option CommandLine::taking_one(const std::string& names, const char* value, TakeOne take,
                                            const std::string& help) {
  return impl_->valued(names, value, help, std::move(take));
}

CommandLine::Option CommandLine::taking(const std::string& names, Take take, bool several,
                                        const std::string& help) {
  if (!several)
    return taking_one(
        names, "TEXT", [take](const std::string& v, const std::string&) { take({v}); }, help);
  HelpPage::Row& row = impl_->declare(names, "TEXT", help);
  row.several = true;
  return impl_->repeatable(row, [take, label = row.names.back()](const std::vector<std::string>& values) {
    std::vector<std::string> texts;
    for (const std::string& v : values) texts.push_back(Impl::word_of(v, label));
    take(texts);
    return true;
  });
}

CommandLine::Option CommandLine::flag(const std::string& names, std::function<void()> take,
                                      const std::string& help) {
  HelpPage::Row& row = impl_->declare(names, "", help);
  auto count = [take](std::int64_t times) {
    if (times > 0) take();
  };
  return impl_->noted(
      impl_->app.add_flag_function(Impl::all_names(row), count, help)->disable_flag_override(), row);
}

CommandLine::Option CommandLine::optional_value(const std::string& names, std::optional<std::string>& value,
                                                const std::string& help) {
  // Only the form --name=VALUE takes a value, so that a path after a bare --name stays a path. CLI11 does not
  // have such options: it sees the bare flag, and the form with a value is taken out of the arguments here.
  HelpPage::Row& row = impl_->declare(names, "TEXT", help);
  row.optional_value = true;
  std::string prefix = cat(row.names.back(), "=");
  auto options_end = std::find(args_.begin(), args_.end(), "--");
  auto kept = std::remove_if(args_.begin(), options_end, [&](const std::string& arg) {
    if (!arg.starts_with(prefix)) return false;
    value = arg.substr(prefix.size());
    return true;
  });
  args_.erase(kept, options_end);
  auto take = [&value](std::int64_t) {
    if (!value) value = "";
  };
  return Option(impl_->app.add_flag_function(Impl::all_names(row), take, help), row);
}

CommandLine::Option CommandLine::positional(const std::string& name, std::string& value,
                                            const std::string& help) {
  return impl_->positional(name, help, into(value));
}

CommandLine::Option CommandLine::positional(const std::string& name, std::optional<std::string>& value,
                                            const std::string& help) {
  return impl_->positional(name, help, into(value));
}

CommandLine::Option CommandLine::positional(const std::string& name, std::vector<std::string>& values,
                                            const std::string& help) {
  Option option = impl_->positional(name, help, into(values));
  impl_->app.get_option(name)->expected(-1)->take_all();
  impl_->page.rows.back().several = true;
  return option;
}

void CommandLine::description(std::string paragraph) {
  impl_->page.description.push_back({"", std::move(paragraph)});
}
void CommandLine::described(std::string name, std::string text) {
  impl_->page.description.push_back({std::move(name), std::move(text)});
}
void CommandLine::example(std::string command) { impl_->page.examples.push_back(std::move(command)); }
void CommandLine::on_unknown_option(std::string note) { impl_->unknown_option_note = std::move(note); }

bool CommandLine::given(const std::string& name) const { return impl_->app.get_option(name)->count() > 0; }

std::vector<std::string> CommandLine::given_except(std::span<const char* const> names) const {
  std::vector<std::string> out;
  for (const CLI::Option* option : impl_->own)
    if (option->count() > 0 && !option->get_positional() &&
        std::ranges::none_of(names, [&](const char* name) { return option->check_name(name); }))
      out.push_back(option->get_name());
  return out;
}

void CommandLine::take_page(HelpPage& to) { impl_->taken = &to; }

// The options of every command, below its own.
void CommandLine::declare_globals() {
  impl_->heading = kGlobalHeading;
  impl_->companion.clear();
  flag("--json", flags_.json, "print the answer as one JSON object").common();
  flag("--jsonl", flags_.jsonl, "print long lists as one JSON object a line");
  flag("-q,--quiet", flags_.quiet, "print no notes on stderr");
  HelpPage::Row& verbose = impl_->declare("-v,--verbose", "", "print more detail; -vv prints all");
  verbose.several = true;
  impl_->app.add_flag(Impl::all_names(verbose), flags_.verbose, "");
  option("--progress HOW", flags_.progress, "how progress is shown: auto, bar, plain, json or none")
      .choices({"auto", "bar", "plain", "json", "none"});
  option("--color WHEN", color_, "when colour is used: auto, always or never")
      .choices({"auto", "always", "never"});
  flag("--ascii", flags_.ascii, "draw with ASCII characters only");
  FieldFlags common(*this);
  common.every_command();
  fields(files_, common);
  flag("-h,--help", help_, "print the options that most people need");
  flag(kHelpAll, help_, "print all options of a command");
}

void CommandLine::parse() {
  impl_->own = std::as_const(impl_->app).get_options();
  declare_globals();
  if (impl_->taken || asks_for_help(args_))
    for (HelpPage::Row& row : impl_->page.rows) row.help = help_with_flags(row.help);
  if (impl_->taken) {
    *impl_->taken = std::move(impl_->page);
    throw HelpShown{};
  }
  if (asks_for_help(args_)) {
    auto end = std::find(args_.begin(), args_.end(), "--");
    bool whole = std::find(args_.begin(), end, kHelpAll) != end;
    Output out(flags_);
    out.keep_lines();
    out.write(whole ? whole_help(impl_->page, help_width()) : short_help(impl_->page, help_width()));
    out.flush();
    throw HelpShown{};
  }
  std::vector<std::string> reversed;  // CLI11 takes them in reverse order
  bool options_end = false;
  for (const std::string& arg : args_) {
    reversed.push_back(prepared(arg, options_end));
    options_end |= arg == "--";
  }
  std::reverse(reversed.begin(), reversed.end());
  impl_->parse(std::move(reversed));
  impl_->check_dependents();
  flags_.color = color_ == "always" ? When::kAlways : color_ == "never" ? When::kNever : When::kAuto;
  opening_.follow_links = files_.follow_links;
  opening_.model_files = model_files_of(files_.model_files).value();  // one of the choices
  impl_->waiting.emplace(flags_, command_, Progress::Waiting{});
}

}  // namespace mckpt::impl
