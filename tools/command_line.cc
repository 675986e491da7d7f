#include "tools/command_line.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <CLI/CLI.hpp>

namespace mckpt {
namespace {

std::string join_lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& l : lines) out += cat("  ", l, "\n");
  return out;
}

// Megatron writes tensor_model_parallel_size, Hugging Face dry-run: both spellings of every long option are
// taken.
std::string hyphenated(std::string arg) {
  if (arg.starts_with("--"))
    std::replace(arg.begin(), std::min(arg.end(), std::find(arg.begin(), arg.end(), '=')), '_', '-');
  return arg;
}

[[noreturn]] void bad_number(std::string_view text, std::string_view option, const char* wanted) {
  throw Error(Code::kUsage, cat(option, ": not ", wanted)).found(cat("'", escaped(text), "'"));
}

}  // namespace

i64 parse_i64(std::string_view text, std::string_view option) {
  i64 v = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec == std::errc::result_out_of_range)
    throw Error(Code::kSizeOverflow, cat(option, ": the number does not fit 63 bits")).found(escaped(text));
  if (ec != std::errc{} || end != text.data() + text.size()) bad_number(text, option, "a whole number");
  return v;
}

i64 parse_bytes(std::string_view text, std::string_view option) {
  struct Unit {
    std::string_view name;
    i64 bytes;
  };
  static constexpr Unit kUnits[] = {{"", 1},
                                    {"b", 1},
                                    {"k", 1000},
                                    {"kb", 1000},
                                    {"kib", 1ll << 10},
                                    {"m", 1000000},
                                    {"mb", 1000000},
                                    {"mib", 1ll << 20},
                                    {"g", 1000000000},
                                    {"gb", 1000000000},
                                    {"gib", 1ll << 30},
                                    {"t", 1000000000000},
                                    {"tb", 1000000000000},
                                    {"tib", 1ll << 40}};
  double number = 0;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& u : kUnits)
    if (u.name == unit && ec == std::errc{} && number >= 0 && number * static_cast<double>(u.bytes) < 9e18)
      return static_cast<i64>(number * static_cast<double>(u.bytes));
  bad_number(text, option, "a size such as 5GB, 512MiB or 1048576");
}

struct CommandLine::Impl {
  struct Row {
    std::string heading, left, help;
  };

  CLI::App app;
  std::string summary, heading = "Options", usage;
  std::vector<std::string> description, examples;
  std::vector<Row> rows;
  bool help = false;

  // "-n,--dry-run|--plan" and a value's name -> CLI11's name list; the row of the help page is noted.
  std::string declare(const std::string& names, const std::string& value, const std::string& text) {
    std::string shown = names.substr(0, names.find('|')), all = names;
    std::replace(all.begin(), all.end(), '|', ',');
    std::string left = shown.starts_with("--") ? "    " : "";
    for (char c : shown) left += c == ',' ? std::string(", ") : std::string(1, c);
    rows.push_back({heading, cat(left, value), text});
    return all;
  }
  template <typename Fn>
  CLI::Option* valued(const std::string& names, const char* value, const std::string& text, Fn&& take) {
    std::string shown = names.substr(0, names.find('|'));
    std::string label = shown.substr(shown.rfind(',') == std::string::npos ? 0 : shown.rfind(',') + 1);
    return app.add_option_function<std::string>(
        declare(names, value, text), [take, label](const std::string& v) { take(v, label); }, text);
  }
};

CommandLine::CommandLine(std::string command, std::string summary, std::vector<std::string> args)
    : command_(std::move(command)), args_(std::move(args)), impl_(std::make_unique<Impl>()) {
  impl_->summary = std::move(summary);
  impl_->app.set_help_flag();
  impl_->app.set_help_all_flag();
  impl_->app.allow_extras(false);
}

CommandLine::~CommandLine() = default;

CommandLine::Option CommandLine::Option::required() {
  option_->required();
  return *this;
}

CommandLine::Option CommandLine::Option::choices(std::vector<std::string> values) {
  option_->check(CLI::Validator(
      [values](std::string& v) -> std::string {
        if (std::find(values.begin(), values.end(), v) != values.end()) return {};
        std::string text = cat("'", escaped(v), "' is not one of ", listed(values, 20));
        if (std::string_view near = nearest(v, values); !near.empty())
          text += cat("; did you mean ", near, "?");
        return text;
      },
      ""));
  return *this;
}

void CommandLine::heading(std::string title) { impl_->heading = std::move(title); }

CommandLine::Option CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  return Option(impl_->app.add_flag(impl_->declare(names, "", help), value, help));
}

CommandLine::Option CommandLine::option(const std::string& names, std::string& value,
                                        const std::string& help) {
  return Option(
      impl_->valued(names, " TEXT", help, [&value](const std::string& v, const std::string&) { value = v; }));
}

CommandLine::Option CommandLine::option(const std::string& names, std::vector<std::string>& values,
                                        const std::string& help) {
  CLI::Option* o = impl_->app.add_option(impl_->declare(names, " TEXT", help), values, help);
  o->take_all()->expected(1)->allow_extra_args(false);
  return Option(o);
}

CommandLine::Option CommandLine::option(const std::string& names, i64& value, const std::string& help) {
  return Option(impl_->valued(
      names, " N", help, [&value](const std::string& v, const std::string& n) { value = parse_i64(v, n); }));
}

CommandLine::Option CommandLine::option(const std::string& names, std::optional<i64>& value,
                                        const std::string& help) {
  return Option(impl_->valued(
      names, " N", help, [&value](const std::string& v, const std::string& n) { value = parse_i64(v, n); }));
}

CommandLine::Option CommandLine::option(const std::string& names, double& value, const std::string& help) {
  return Option(impl_->valued(names, " X", help, [&value](const std::string& v, const std::string& n) {
    auto [end, ec] = std::from_chars(v.data(), v.data() + v.size(), value);
    if (ec != std::errc{} || end != v.data() + v.size()) bad_number(v, n, "a number");
  }));
}

CommandLine::Option CommandLine::optional_value(const std::string& names, std::optional<std::string>& value,
                                                const std::string& help) {
  // Only the form --name=VALUE takes a value, so that a path behind a bare --name stays a path. CLI11 knows
  // no such option: it sees the bare flag, and the valued form is taken out of the arguments here.
  std::string prefix = cat(names.substr(names.rfind("--")), "=");
  std::erase_if(args_, [&](const std::string& arg) {
    if (!arg.starts_with(prefix)) return false;
    value = arg.substr(prefix.size());
    return true;
  });
  return Option(impl_->app.add_flag_function(
      impl_->declare(names, "[=TEXT]", help),
      [&value](std::int64_t) {
        if (!value) value = "";
      },
      help));
}

CommandLine::Option CommandLine::bytes(const std::string& names, i64& value, const std::string& help) {
  return Option(impl_->valued(names, " SIZE", help, [&value](const std::string& v, const std::string& n) {
    value = parse_bytes(v, n);
  }));
}

CommandLine::Option CommandLine::positional(const std::string& name, std::string& value,
                                            const std::string& help) {
  impl_->usage += cat(" ", name);
  impl_->rows.push_back({"Arguments", name, help});
  return Option(impl_->app.add_option(name, value, help));
}

CommandLine::Option CommandLine::positional(const std::string& name, std::vector<std::string>& values,
                                            const std::string& help) {
  impl_->usage += cat(" ", name, "...");
  impl_->rows.push_back({"Arguments", cat(name, "..."), help});
  return Option(impl_->app.add_option(name, values, help));
}

void CommandLine::description(std::string text) { impl_->description.push_back(std::move(text)); }
void CommandLine::example(std::string command) { impl_->examples.push_back(std::move(command)); }

std::string CommandLine::help() const {
  std::string out = cat("mckpt ", command_, " - ", impl_->summary, "\n\nUsage: mckpt ", command_,
                        " [OPTIONS]", impl_->usage, "\n");
  if (!impl_->description.empty()) out += cat("\n", join_lines(impl_->description));
  std::vector<std::string> headings;
  for (const Impl::Row& r : impl_->rows)
    if (std::find(headings.begin(), headings.end(), r.heading) == headings.end())
      headings.push_back(r.heading);
  for (const std::string& heading : headings) {
    std::size_t wide = 0;
    for (const Impl::Row& r : impl_->rows)
      if (r.heading == heading && r.left.size() <= 34) wide = std::max(wide, r.left.size());
    out += cat("\n", heading, "\n");
    for (const Impl::Row& r : impl_->rows)
      if (r.heading == heading)
        out += cat("  ", r.left, std::string(r.left.size() < wide ? wide - r.left.size() : 0, ' '), "  ",
                   r.help, "\n");
  }
  if (!impl_->examples.empty()) out += cat("\nExamples\n", join_lines(impl_->examples));
  return out;
}

void CommandLine::parse() {
  impl_->heading = "Global";
  bool help = false;
  flag("--json", flags_.json, "the answer as one JSON object");
  flag("--jsonl", flags_.jsonl, "long lists as one JSON object a line");
  flag("-q,--quiet", flags_.quiet, "no notes on stderr");
  impl_->app.add_flag(impl_->declare("-v,--verbose", "", "more detail; -vv for all"), flags_.verbose, "");
  option("--progress", flags_.progress, "auto, bar, plain, json or none")
      .choices({"auto", "bar", "plain", "json", "none"});
  std::string color = "auto";
  option("--color", color, "auto, always or never").choices({"auto", "always", "never"});
  flag("--ascii", flags_.ascii, "draw with ASCII characters only");
  flag("-h,--help", help, "this page");
  if (std::vector<std::string> before(args_.begin(), std::find(args_.begin(), args_.end(), "--"));
      std::find_if(before.begin(), before.end(), [](auto& a) { return a == "-h" || a == "--help"; }) !=
      before.end()) {
    Output out(flags_);
    out.write(this->help());
    out.flush();
    throw HelpShown{};
  }
  std::vector<std::string> reversed;  // CLI11 takes them last first
  bool options_end = false;
  for (const std::string& arg : args_) {
    reversed.push_back(options_end ? arg : hyphenated(arg));
    options_end |= arg == "--";
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    impl_->app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    throw Error(Code::kUsage, escaped(e.what())).help(cat("mckpt ", command_, " --help"));
  }
  flags_.color = color == "always" ? When::kAlways : color == "never" ? When::kNever : When::kAuto;
}

}  // namespace mckpt
