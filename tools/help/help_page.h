// Everything that one command takes and says of itself, as data. CommandLine fills it while a command
// declares its arguments and options; help pages, completions of shells, man pages and the JSON of `mckpt
// help` are made of it, and of nothing else.
//
//   line.option("--device|--gpu NAME", ...).choices({"cpu", "cuda"}).common()
//
//   names {"--device"}   others {"--gpu"}   value "NAME"   words {"cpu", "cuda"}   common true
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mckpt::impl {

// The heading of the options that every command has.
constexpr const char* kGlobalHeading = "Global";

// The kind of a value, so that a shell can complete it.
enum class Takes { kNothing, kWord, kNumber, kPath, kFolder };

// By the name that the help has for the value: FILE is a path, DIR a folder, N a number. "" is not a value.
Takes takes_of(std::string_view value_name);
std::string_view takes_name(Takes takes);  // "nothing", "word", "number", "path", "folder"

// Rows are in the order of their declaration, and stay where they are.
struct HelpPage {
  struct Paragraph {
    std::string name, text;  // without a name: running text; with one: a line of a list
  };
  // An option, or an argument, which has no names.
  struct Row {
    std::string heading, help;
    std::vector<std::string> names;   // as the help shows them: "-n", "--dry-run"
    std::vector<std::string> others;  // accepted too: "--tensor-model-parallel-size"
    std::string value;                // name of the value, or of the argument; "" for a flag
    std::vector<std::string> words;   // values that are known; there may be others
    // Values of an argument that the first argument decides: by its word, all that are known.
    std::vector<std::pair<std::string, std::vector<std::string>>> words_after;
    std::string needs;            // the option without which this one is refused
    bool optional_value = false;  // --map and --map=GLOB
    bool several = false;         // may be given more than once
    bool required = false;
    bool common = false;  // on the short page too

    bool is_argument() const { return names.empty(); }
    bool global() const { return heading == kGlobalHeading; }
    Takes takes() const { return takes_of(value); }
    std::string left() const;  // "-j, --threads N", "PATH..."
  };

  std::string command;  // "convert reshard"; "" for mckpt itself
  std::string summary;
  std::vector<Paragraph> description;
  std::deque<Row> rows;
  std::vector<std::string> examples;

  std::string usage() const;  // "mckpt ls [OPTIONS] PATH..."
  std::vector<const Row*> arguments() const;
  std::vector<const Row*> options() const;
};

}  // namespace mckpt::impl
