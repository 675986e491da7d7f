// mckpt convert MODE SRC DST: finds the kind of conversion that MODE names (options/kinds.h).
//
//   mckpt convert --color never hf-to-fsdp Qwen3-0.6B ckpt --tp 2
//                               '-- the first word that is not an option chooses the kind;
//                                   the line is then the line of the command "convert hf-to-fsdp"
//
// Without a mode, or with --help in its place, the list of modes is printed. Under mpirun, a mode whose work
// cannot be shared runs in rank 0 alone, and the other ranks end at once.
//
// All modes have the same flow, in tools/run/conversion.h and the library:
//
//   options -> plan (headers only) -> proof -> [--dry-run ends here] -> copy -> publish -> report
#include "tools/commands/convert_modes.h"

#include <algorithm>
#include <filesystem>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "options/field.h"
#include "options/kinds.h"
#include "runtime/job/job.h"
#include "tools/commands/command_table.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/process/job.h"

namespace mckpt::impl {
namespace {

bool is_mode(std::string_view name) { return conversion_mode(name) != nullptr; }

// The position of the mode among the arguments: the first word that is not an option. --color and --progress
// have a value, which is skipped. Behind options of the mode, whose values are not known here, the mode is
// the first word that is the name of one: --tp 2 hf-to-fsdp.
std::size_t mode_index(const CommandLine& line) {
  const std::vector<std::string>& args = line.args();
  for (std::size_t i = 0; i < args.size(); i++) {
    if (args[i] == "--color" || args[i] == "--progress") {
      i++;
    } else if (!args[i].starts_with("-")) {
      auto mode = i == 0 || is_mode(args[i]) ? args.end() : std::ranges::find_if(args, is_mode);
      return mode == args.end() ? i : static_cast<std::size_t>(mode - args.begin());
    }
  }
  return args.size();
}

// Words for the two ends of a conversion, and the ends that names of modes have.
constexpr std::pair<std::string_view, std::string_view> kEnds[] = {
    {"huggingface", "hf"},   {"hugging-face", "hf"},
    {"fsdp2", "fsdp"},       {"fsdp-dtensor", "fsdp"},
    {"megatron", "fsdp"},    {"megatron-fsdp", "fsdp"},
    {"torch-dist", "mcore"}, {"megatron-core", "mcore"},
    {"distcp", "dcp"},       {"torch", "pt"},
    {"pth", "pt"},           {"bin", "pt"},
    {"st", "safetensors"},   {"h5", "hdf5"},
    {"archive", "hdf5"},
};

std::string_view end_named(std::string_view word) {
  for (const auto& [other, end] : kEnds)
    if (other == word) return end;
  return word;
}

// Formats that modes named to-... read.
bool is_end(std::string_view word) {
  for (std::string_view end :
       {"hf", "fsdp", "mcore", "pt", "safetensors", "dcp", "verl", "zero", "deepspeed", "torch-save"})
    if (word == end) return true;
  return false;
}

// Behind the mode that a word means: the other one, where the word says Megatron and not which of its
// formats.
std::string_view or_other_format(std::string_view word, std::string_view meant) {
  bool into_megatron = word.ends_with("megatron") && (meant == "to-fsdp" || meant == "hf-to-fsdp");
  return into_megatron ? " It makes what Megatron-FSDP loads; `mckpt convert to-mcore` makes torch_dist."
                       : "";
}

// The mode for a word of C and Python, "ranks"; "" for any other.
std::string mode_of_word(std::string_view word) {
  for (const ConversionKind& kind : conversion_kinds())
    if (!kind.word.empty() && (kind.word == word || std::ranges::count(words_of(kind.others), word) > 0))
      return std::string(kind.name);
  return "";
}

// An unknown mode, or none: lists the modes and names the nearest one.
[[noreturn]] void throw_unknown_mode(std::string_view name) {
  const std::vector<std::string> names = convert_modes();
  std::error_code failed;
  bool path = !name.empty() && std::filesystem::exists(std::string(name), failed);
  Error e(Code::kUsage, name.empty() ? "MODE is missing, the word that says what is made"
                        : path       ? cat("MODE is missing in front of '", escaped(name, 4096), "'")
                                     : cat("there is no mode '", escaped(name), "'"));
  e.expected(listed(names, 20));
  if (path)
    throw e.help(
        cat("mckpt convert hf-to-fsdp ", as_argument(std::string(name)), " DST   for a Hugging Face model"));
  std::string meant = convert_mode_meant(name);
  if (meant.empty()) meant = mode_of_word(name);
  if (meant.empty()) meant = nearest(name, names);
  if (!meant.empty())
    throw e.help(cat("did you mean `mckpt ", command_of_mode(meant), "`?", or_other_format(name, meant)));
  if (is_command(name)) throw e.help(cat("did you mean `mckpt ", name, "`?"));
  if (std::string command = command_for(name); !command.empty())
    throw e.help(cat("did you mean `mckpt ", command, "`?"));
  throw e.help("mckpt convert --help");
}

}  // namespace

std::vector<std::string> convert_modes() {
  std::vector<std::string> names;
  for (const ConversionKind& kind : conversion_kinds()) names.emplace_back(kind.name);
  return names;
}

std::string command_of_mode(std::string_view mode) {
  return mode == "fsdp-to-hf" ? "export SRC DST" : cat("convert ", mode);
}

std::string convert_mode_meant(std::string_view word) {
  std::string name(word);
  for (char& c : name)
    c = c == '_' || c == ' ' ? '-' : 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (name.starts_with("convert-")) name.erase(0, std::string_view("convert-").size());
  if (is_mode(name)) return name;
  // One end alone: the other is the format of training runs.
  if (name.starts_with("to-") && end_named(std::string_view(name).substr(3)) == "hf") return "fsdp-to-hf";
  if (name.starts_with("to-") && end_named(std::string_view(name).substr(3)) == "fsdp") return "to-fsdp";
  if (name.starts_with("from-") && end_named(std::string_view(name).substr(5)) == "hf") return "hf-to-fsdp";
  if (std::string mode =
          cat("to-", name.starts_with("to-") ? end_named(std::string_view(name).substr(3)) : "");
      is_mode(mode))
    return mode;
  for (std::string_view between : {"-to-", "-2-", "2"}) {
    std::size_t at = name.find(between);
    if (at == name.npos) continue;
    std::string_view from = std::string_view(name).substr(0, at);
    std::string_view to = std::string_view(name).substr(at + between.size());
    if (std::string mode = cat(end_named(from), "-to-", end_named(to)); is_mode(mode)) return mode;
    if (from == to && (end_named(to) == "fsdp" || end_named(to) == "mcore")) return "reshard";
    if (std::string mode = cat("to-", end_named(to)); is_mode(mode) && is_end(end_named(from))) return mode;
    if (end_named(to) == "hf" && is_end(end_named(from))) return "fsdp-to-hf";
  }
  return "";
}

Exit convert_command(CommandLine& line) {
  std::size_t at = mode_index(line);
  std::string name = at < line.args().size() ? line.args()[at] : "";
  if (const ConversionKind* kind = conversion_mode(name)) {
    if (this_job().rank() != 0 && !kind->shares_work) return Exit::kOk;
    line.enter(at, std::string(kind->summary));
    return run_mode(line, *kind, "convert");
  }
  if (!name.empty()) throw_unknown_mode(name);
  for (const ConversionKind& kind : conversion_kinds())
    line.described(std::string(kind.name), std::string(kind.summary));
  line.description("`mckpt convert MODE --help` shows the options of a mode.");
  std::string mode, source, target;
  line.positional("MODE", mode, "the conversion to run (listed above)").words(convert_modes());
  line.positional("SRC", source, "a checkpoint");
  line.positional("DST", target, "the file or folder to write");
  line.example("mckpt convert hf-to-fsdp Qwen3-30B-A3B ckpt --tp 2 --ep 4");
  line.example("mckpt convert pt-to-safetensors model.pt model.safetensors");
  line.example("mckpt convert safetensors-to-pt model.safetensors model.pt");
  line.parse();
  throw_unknown_mode("");
}

}  // namespace mckpt::impl
