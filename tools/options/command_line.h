// What a command takes. A command declares its arguments into its own variables and calls parse(); CLI11
// stays behind this interface, so that the commands compile in a moment.
//
//   std::string path;
//   line.positional("PATH", path, "a checkpoint").required();
//   line.example("mckpt inspect ckpt --tree");
//   line.parse();
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "tools/render/output.h"
#include "tools/options/parse_number.h"

namespace CLI {
class Option;
}

namespace mckpt {

// Thrown by parse() when the answer was the help page itself.
struct HelpShown {};

class CommandLine {
 public:
  // args: everything behind the command's name; the global flags among them are understood as well.
  CommandLine(std::string command, std::string summary, std::vector<std::string> args);
  ~CommandLine();

  // Declarations. `names` is like "-n,--dry-run"; spellings behind a '|' are taken too but not shown in the
  // help, as in "--tp|--tensor-model-parallel-size"; behind a blank stands what the help calls the value, as
  // in "--color WHEN". Options declared after heading() stand under it in the help.
  void heading(std::string title);
  // The options declared from here on are refused where the option `name` is not given.
  void only_with(std::string name);
  class Option {
   public:
    explicit Option(CLI::Option* option) : option_(option) {}
    Option required();
    Option choices(std::vector<std::string> values);

   private:
    CLI::Option* option_;
  };
  Option flag(const std::string& names, bool& value, const std::string& help);
  Option option(const std::string& names, std::string& value, const std::string& help);
  Option option(const std::string& names, std::optional<std::string>& value, const std::string& help);
  Option option(const std::string& names, std::vector<std::string>& values,
                const std::string& help);  // repeatable
  Option option(const std::string& names, i64& value, const std::string& help);
  Option option(const std::string& names, std::optional<i64>& value, const std::string& help);
  Option option(const std::string& names, double& value, const std::string& help);
  // Takes an optional value: --map or --map=GLOB.
  Option optional_value(const std::string& names, std::optional<std::string>& value, const std::string& help);
  // -j: 1 to 1024; 0 leaves the value as it is.
  Option threads(int& value, const std::string& help);
  // A number of bytes: 5GB is 5x10^9, 5GiB is 5x2^30.
  Option bytes(const std::string& names, i64& value, const std::string& help);
  Option positional(const std::string& name, std::string& value, const std::string& help);
  Option positional(const std::string& name, std::optional<std::string>& value, const std::string& help);
  Option positional(const std::string& name, std::vector<std::string>& values, const std::string& help);
  void description(std::string text);  // paragraphs below the summary
  void example(std::string command);   // shown at the end of the help, in order
  // What the error about an unknown option says besides.
  void on_unknown_option(std::string note);

  // Fills the variables. Throws Error(kUsage), or HelpShown after printing the help.
  void parse();
  std::string help() const;

  const GlobalFlags& flags() const { return flags_; }
  const std::string& command() const { return command_; }
  // What stands behind the command's name, unparsed: for commands whose first word chooses what they take.
  const std::vector<std::string>& args() const { return args_; }
  // Makes it the command line of the subcommand that is named by args()[at].
  void enter(std::size_t at, std::string summary);

 private:
  struct Impl;
  std::string command_;
  std::vector<std::string> args_;
  GlobalFlags flags_;
  std::unique_ptr<Impl> impl_;
};

// Whether "-h" or "--help" stands before a lone "--".
bool asks_for_help(std::span<const std::string> args);

}  // namespace mckpt
