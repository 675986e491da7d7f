// The command line of one command. A command declares its arguments with the variables that receive them and
// calls parse(), which also answers --help. CLI11 is used in command_line.cc only, so that commands compile
// fast.
//
//   std::string path;
//   line.positional("PATH", path, "a checkpoint").required();
//   line.option("--device NAME", device, "the device that holds the model").choices({"cpu", "cuda"}).common();
//   line.example("mckpt inspect ckpt --tree");
//   line.parse();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/file/open_options.h"
#include "mckpt/options.h"
#include "tools/options/declared_option.h"
#include "tools/render/output.h"

namespace mckpt::impl {

// Thrown by parse() when the answer was the help page itself, or when the page was taken.
struct HelpShown {};

// Declarations first, then one call of parse(), which fills the variables; they must live until then. Not
// copied: the options point into it.
class CommandLine {
 public:
  // args: everything after the command's name, the global flags included.
  CommandLine(std::string command, std::string summary, std::vector<std::string> args);
  ~CommandLine();

  // Declarations. `names` is like "-n,--dry-run"; spellings after a '|' are accepted but not shown in the
  // help, as in "--tp|--tensor-model-parallel-size"; a word after a blank is the help's name of the value, as
  // in "--color WHEN", and says what the value is (tools/help/help_page.cc: kValues). The help lists options
  // under the heading() that was declared last before them.
  void heading(std::string title);
  // Options declared after this call are refused where the option `name` is not given.
  void only_with(std::string name);
  using Option = DeclaredOption;
  Option flag(const std::string& names, bool& value, const std::string& help);
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& values,
                const std::string& help);  // repeatable
  Option option(const std::string& names, i64& value, const std::string& help);
  Option option(const std::string& names, std::optional<i64>& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  // Calls `take` with the one value and the option's name. `value`: its name in the help if `names` has none.
  using TakeOne = std::function<void(const std::string& value, const std::string& name)>;
  Option taking_one(const std::string& names, const char* value, TakeOne take, const std::string& help);
  // Calls `take` with all values that were given; `several`: there may be more than one.
  using Take = std::function<void(const std::vector<std::string>&)>;
  Option taking(const std::string& names, Take take, bool several, const std::string& help);
  Option flag(const std::string& names, std::function<void()> take, const std::string& help);
  // Takes an optional value: --map or --map=GLOB.
  Option optional_value(const std::string& names, std::optional<std::string>& value, const std::string& help);
  // -j: 1 to 1024.
  Option threads(int& value, const std::string& help);
  // A number of bytes: 5GB is 5x10^9, 5GiB is 5x2^30.
  Option bytes(const std::string& names, i64& value, const std::string& help);
  Option bytes(const std::string& names, std::optional<i64>& value, const std::string& help);
  Option positional(const std::string& name, std::string& value, const std::string& help);
  Option positional(const std::string& name, std::optional<std::string>& value, const std::string& help);
  Option positional(const std::string& name, std::vector<std::string>& values, const std::string& help);
  // One whole paragraph of the help, below the summary; help() breaks it into lines.
  void description(std::string paragraph);
  // One line of a list in the description: a name and what it is.
  void described(std::string name, std::string text);
  void example(std::string command);  // shown at the end of the help, in order
  // An additional note of the error about an unknown option.
  void on_unknown_option(std::string note);
  // parse() moves the page there, whatever the arguments are, and throws HelpShown. pre: `to` lives until
  // then
  void take_page(HelpPage& to);

  // Fills the variables. Throws Error(kUsage), or HelpShown after printing the help.
  void parse();

  // Whether the option was given. pre: parse() was called, and the option was declared
  bool given(const std::string& name) const;
  // The options that were given, without options of every command, arguments and these names.
  std::vector<std::string> given_except(std::span<const char* const> names) const;
  const GlobalFlags& flags() const { return flags_; }
  // How the command opens files: with --follow-links, and with stamps of its own that note each of them.
  // Complete after parse(); it lives as long as this.
  const OpenOptions& opening() const { return opening_; }
  const mckpt::OpenOptions& files() const { return files_; }  // --follow-links, --model-files
  // The model of adapters, for all that is opened from now on (tools/options/base_flag.h).
  void set_base(std::shared_ptr<const AdapterBase> base) { opening_.base = std::move(base); }
  const std::string& command() const { return command_; }
  // The arguments after the command's name, unparsed: for commands whose first word chooses the options.
  const std::vector<std::string>& args() const { return args_; }
  // Turns this into the command line of the subcommand that args()[at] names.
  void enter(std::size_t at, std::string summary);

 private:
  void declare_globals();

  struct Impl;
  std::string command_;
  std::vector<std::string> args_;
  GlobalFlags flags_;
  std::string color_ = "auto";  // --color
  bool help_ = false;           // answered before the line is parsed
  mckpt::OpenOptions files_;
  OpenOptions opening_;
  std::unique_ptr<Impl> impl_;
};

// True if "-h", "--help" or "--help-all" is given before a lone "--".
bool asks_for_help(std::span<const std::string> args);

}  // namespace mckpt::impl
