// Every command with the line that the help page has of it.
#include "tools/command_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace mckpt {
namespace {

constexpr Command kCommands[] = {
    {"Look", "inspect", "PATH...", "what it is: format, tensors, data types, layout, other objects",
     inspect_command},
    {"Look", "ls", "PATH [GLOB]", "one line a tensor: name, dtype, shape, bytes, where", ls_command},
    {"Look", "stats", "PATH [GLOB]", "min max mean std, zeros, NaN, Inf, histogram (reads data)",
     stats_command},
    {"Look", "cat", "PATH NAME[SLICE]", "values of one tensor, as in 'lm_head.weight[0:4, :8]'", cat_command},
    {"Look", "pattern", "PATTERN", "a HybridStack layer pattern explained", pattern_command},
    {"Look", "layout", "SHAPE...", "how Megatron-FSDP packs parameters of these shapes", layout_command},
    {"Check", "verify", "PATH", "files, coverage, checksums, NaN, equal experts; equality with --against",
     verify_command},
    {"Make", "convert", "MODE SRC DST", "a checkpoint in another format; its --help lists the modes",
     convert_command, true, true},
    {"Make", "export", "SRC HF_DIR", "a sharded checkpoint into a Hugging Face folder", export_command, true},
    {"Make", "roundtrip", "HF_DIR", "into a live sharded model over ranks and back, every bit compared",
     roundtrip_command, true},
    {"Help", "env", "", "what mckpt runs on, and its modules", env_command, true},
    {"Help", "explain", "[CODE]", "what an error code means", explain_command},
    {"Help", "formats", "", "the file formats and data types mckpt knows", formats_command},
    {"Help", "mappings", "[list|show|check|draw]", "the tables of the model families", mappings_command},
    {"Help", "help", "[COMMAND [MODE]]", "this page, or that of one command", help_command},
};

struct HelpRow {
  std::string left;
  std::string_view right;
};

const HelpRow kGlobalRows[] = {
    {"--json, --jsonl", "the answer as JSON: one object, or one a line"},
    {"-q, -v", "fewer or more words on stderr"},
    {"--progress HOW", "auto, bar, plain, json or none"},
    {"--color WHEN, --ascii", "colour: auto, always or never; draw with ASCII only"},
    {"--follow-links", "follow links that lead out of the folder of a checkpoint"},
    {"-h, --help", "this page, or that of the command"},
    {"-V, --version", "the version"},
};

}  // namespace

std::string main_help() {
  std::string out =
      "mckpt - convert, inspect and prove LLM checkpoints\n"
      "\n"
      "Usage: mckpt [OPTIONS] COMMAND [ARGS]\n";
  std::vector<HelpRow> rows;
  for (const Command& c : kCommands)
    rows.push_back({cat(c.name, c.arguments.empty() ? "" : " ", c.arguments), c.summary});
  rows.insert(rows.end(), std::begin(kGlobalRows), std::end(kGlobalRows));
  std::size_t width = 0;
  for (const HelpRow& row : rows) width = std::max(width, row.left.size());
  std::string_view group;
  for (std::size_t i = 0; i < rows.size(); i++) {
    std::string_view of_row = i < std::size(kCommands) ? kCommands[i].group : "Global";
    if (of_row != group) out += cat("\n", group = of_row, "\n");
    out += cat("  ", rows[i].left, std::string(width - rows[i].left.size() + 2, ' '), rows[i].right, "\n");
  }
  out +=
      "\n"
      "Exit status: 0 done, equal or healthy; 1 the answer is no; 2 usage; 3 input missing, corrupt or\n"
      "unsupported; 4 refused before writing; 5 writing failed; 130 interrupted (143 by SIGTERM, 129 by "
      "SIGHUP)\n";
  return out;
}

bool is_command(std::string_view name) {
  return std::ranges::find(kCommands, name, &Command::name) != std::end(kCommands);
}

const Command& find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& c : kCommands) {
    if (c.name == name) return c;
    names.push_back(c.name);
  }
  Error e(Code::kUnknownCommand, cat("there is no command '", escaped(name), "'"));
  if (std::string_view near = nearest(name, names); !near.empty())
    e.help(cat("did you mean `mckpt ", near, "`?"));
  throw e.note("mckpt --help lists the commands");
}

}  // namespace mckpt
