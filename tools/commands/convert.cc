// mckpt convert MODE SRC DST: one table of modes. A mode declares its own options and does the work.
//
//   mckpt convert --color never hf-to-fsdp Qwen3-0.6B ckpt --tp 2
//                               '-- the first word that is not an option chooses the row of kModes;
//                                   the line is then that of the command "convert hf-to-fsdp"
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
#include <iterator>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "runtime/job/job.h"
#include "tools/commands/command_table.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/process/job.h"

namespace mckpt::impl {
namespace {

// A row of the table. The name is what the user types; the summary is shown in the list of modes and as the
// title of the mode's help page.
struct Mode {
  std::string_view name, summary;
  Exit (*run)(CommandLine&);
  bool shares_work = false;  // among ranks; the others run in rank 0 alone
};

constexpr Mode kModes[] = {
    {"hf-to-fsdp", "make the checkpoint of a Megatron-FSDP run of any grid from a Hugging Face model",
     convert_hf_to_fsdp, true},
    {"fsdp-to-hf", "make a Hugging Face folder, as `mckpt export` does", convert_fsdp_to_hf, true},
    {"to-mcore", "make the torch_dist checkpoint of any Megatron run", convert_to_mcore, true},
    {"reshard", "write a checkpoint for another grid, in its own format", convert_reshard, true},
    {"ungroup", "remove the groups of hybrid layers: [*-]M becomes *-M", convert_ungroup, true},
    {"group", "group the layers of a hybrid checkpoint: *-M becomes [*-]M", convert_group, true},
    {"hybrid-to-gpt", "make a GPT model's checkpoint from a hybrid one",
     convert_hybrid_to_gpt, true},
    {"gpt-to-hybrid", "make a hybrid model's checkpoint from that of a GPT model", convert_gpt_to_hybrid,
     true},
    {"pt-to-safetensors", "copy the tensors of a .pt file into a safetensors file",
     convert_pt_to_safetensors},
    {"safetensors-to-pt", "copy the tensors of safetensors files into a .pt file", convert_safetensors_to_pt},
    {"to-safetensors", "make one safetensors file of an FSDP2, verl or ZeRO model",
     convert_to_safetensors, true},
    {"to-fsdp", "make a Megatron-FSDP checkpoint from any other", convert_hf_to_fsdp, true},
    {"to-pt", "write files of Megatron's ranks (mp_rank_*), weights only", convert_to_pt, true},
    {"dequantize", "write the values of a model in FP8, MXFP4, NVFP4 or INT4", convert_dequantize, true},
    {"quantize", "write a model in blocks of FP8, in MXFP4, or as another one", convert_quantize, true},
    {"to-dcp", "make a torch DCP folder of a model or another DCP folder", convert_to_dcp, true},
    {"to-hdf5", "archive any checkpoint in HDF5; h5py sees whole tensors", convert_to_hdf5, true},
    {"from-hdf5", "write the files that an archive was made of", convert_from_hdf5, true},
};

bool is_mode(std::string_view name) {
  return std::ranges::find(kModes, name, &Mode::name) != std::end(kModes);
}

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
    {"huggingface", "hf"}, {"hugging-face", "hf"},    {"fsdp2", "fsdp"},       {"fsdp-dtensor", "fsdp"},
    {"megatron", "fsdp"},  {"megatron-fsdp", "fsdp"}, {"torch-dist", "mcore"}, {"megatron-core", "mcore"},
    {"distcp", "dcp"},     {"torch", "pt"},           {"pth", "pt"},           {"bin", "pt"},
    {"st", "safetensors"},  {"h5", "hdf5"},           {"archive", "hdf5"},
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

// An unknown mode, or none: lists the modes and names the nearest one.
[[noreturn]] void throw_unknown_mode(std::string_view name) {
  const std::vector<std::string> names = convert_modes();
  std::error_code failed;
  bool path = !name.empty() && std::filesystem::exists(std::string(name), failed);
  Error e(Code::kUsage,
          name.empty() ? "MODE is missing, the word that says what is made"
          : path       ? cat("MODE is missing in front of '", escaped(name, 4096), "'")
                       : cat("there is no mode '", escaped(name), "'"));
  e.expected(listed(names, 20));
  if (path)
    throw e.help(cat("mckpt convert hf-to-fsdp ", as_argument(std::string(name)), " DST   for a Hugging Face model"));
  std::string meant = convert_mode_meant(name);
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
  for (const Mode& m : kModes) names.emplace_back(m.name);
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
  for (const Mode& m : kModes) {
    if (m.name != name) continue;
    if (this_job().rank() != 0 && !m.shares_work) return Exit::kOk;
    line.enter(at, std::string(m.summary));
    return m.run(line);
  }
  if (!name.empty()) throw_unknown_mode(name);
  for (const Mode& m : kModes) line.described(std::string(m.name), std::string(m.summary));
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
