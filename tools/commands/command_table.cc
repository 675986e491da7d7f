// Every command with the line that the help page has of it.
#include "tools/commands/command_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/base/error.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/help/help_text.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

constexpr Command kCommands[] = {
    {"Look", "inspect", "PATH...", "show format, tensors, layout and objects", inspect_command},
    {"Look", "ls", "PATH... [GLOB]", "list the tensors, one on a line, from headers", ls_command},
    {"Look", "stats", "PATH... [GLOB]", "print value statistics and histograms (reads data)", stats_command},
    {"Look", "cat", "PATH NAME[SLICE]", "print values of one tensor, as in 'lm_head.weight[0:4, :8]'",
     cat_command},
    {"Look", "pattern", "PATTERN", "explain a HybridStack layer pattern", pattern_command},
    {"Look", "layout", "MODEL|SHAPE...", "show how Megatron-FSDP packs a model, or parameters of shapes",
     layout_command},
    {"Look", "plot", "PATH [GLOB] -o FILE", "draw shards, sizes and values as one HTML page or SVG",
     plot_command},
    {"Check", "verify", "PATH...", "check that it is whole, and equal to its source (--against)",
     verify_command},
    {"Check", "diff", "A B [GLOB]", "show what is different in two checkpoints", diff_command},
    {"Make", "convert", "MODE SRC DST", "convert into another format; --help lists the modes",
     convert_command, true, true},
    {"Make", "export", "SRC DST", "make a Hugging Face folder of a checkpoint", export_command, true},
    {"Make", "roundtrip", "HF_DIR", "load into a live sharded model, export and compare", roundtrip_command,
     true},
    {"Help", "example", "DIR", "write a tiny model, to try commands on", example_command},
    {"Help", "env", "", "print what mckpt runs on, and its modules", env_command, true},
    {"Help", "explain", "[CODE]", "explain an error code", explain_command},
    {"Help", "formats", "", "list the file formats and data types that mckpt knows", formats_command},
    {"Help", "mappings", "[list|show|draft|check|draw]", "show the tables of the model families",
     mappings_command},
    {"Help", "completions", "SHELL", "print the script by which bash, zsh or fish completes",
     completions_command},
    {"Help", "man", "[COMMAND [MODE]]", "print the man page of mckpt, or of one command", man_command},
    {"Help", "help", "[COMMAND [MODE]]", "print this page, or that of one command", help_command},
};

// Words that people try first, spelt with hyphens, and the command that does it. Modes of convert are
// answered with the mode.
struct Instead {
  std::string_view word, command;
};
constexpr Instead kInstead[] = {
    {"info", "inspect PATH"},
    {"show", "inspect PATH"},
    {"dump", "inspect PATH"},
    {"summary", "inspect PATH"},
    {"list", "ls PATH"},
    {"check", "verify PATH"},
    {"compare", "diff A B"},
    {"cmp", "diff A B"},
    {"import", "convert hf-to-fsdp SRC DST"},
    {"convert-hf", "convert hf-to-fsdp SRC DST"},
    {"shard", "convert hf-to-fsdp SRC DST"},
    {"merge", "export SRC DST"},
    {"merge-weights", "export SRC DST"},
    {"merge-fsdp-weights", "export SRC DST"},
    {"model-merger", "export SRC DST"},
    {"consolidate", "export SRC DST"},
    {"unshard", "export SRC DST"},
    {"zero-to-fp32", "export SRC DST --dtype fp32"},
    {"validate", "verify PATH"},
    {"tree", "inspect PATH --tree"},
    {"draw", "plot PATH -o FILE.html"},
    {"picture", "plot PATH -o FILE.html"},
    {"html", "plot PATH -o FILE.html"},
    {"completion", "completions SHELL"},
    {"version", "--version"},
    {"print", "cat PATH NAME"},
    {"merge-lora", "export ADAPTER DST --base HF_DIR"},
    {"load", "inspect PATH"},
};

}  // namespace

std::string command_for(std::string_view word) {
  if (std::string mode = convert_mode_meant(word); !mode.empty()) return command_of_mode(mode);
  std::string spelt(word);
  std::ranges::replace(spelt, '_', '-');
  // Names of scripts: convert.py, zero_to_fp32.py.
  if (spelt.ends_with(".py")) spelt.resize(spelt.size() - 3);
  auto row = std::ranges::find(kInstead, std::string_view(spelt), &Instead::word);
  return row != std::end(kInstead) ? std::string(row->command) : "";
}

HelpPage page_of(std::string_view command, std::string_view mode) {
  const Command& found = find_command(command);
  if (!mode.empty() && !found.has_modes)
    throw Error(Code::kUsage, cat("unexpected argument '", escaped(mode), "'"))
        .note(cat("the command ", found.name, " has no modes"));
  std::vector<std::string> args;
  if (!mode.empty()) args.emplace_back(mode);
  HelpPage page;
  CommandLine line(std::string(found.name), std::string(found.summary), args);
  line.take_page(page);
  try {
    found.run(line);
  } catch (const HelpShown&) {
  }
  return page;
}

std::vector<HelpPage> all_pages() {
  std::vector<HelpPage> pages;
  for (const Command& c : kCommands) {
    pages.push_back(page_of(c.name, ""));
    if (!c.has_modes) continue;
    for (const std::string& mode : convert_modes()) pages.push_back(page_of(c.name, mode));
  }
  return pages;
}

std::span<const Command> all_commands() { return kCommands; }

std::string_view exit_statuses() {
  return "0 done, equal or healthy; 1 the answer is no; 2 usage; 3 input missing, corrupt or unsupported; 4 refused before writing; 5 writing failed; 130 interrupted (143 by SIGTERM, 129 by SIGHUP)";
}

// `formats` has no others.
std::vector<HelpPage::Row> global_options() {
  std::vector<HelpPage::Row> out;
  for (const HelpPage::Row& row : page_of("formats", "").rows)
    if (row.global()) out.push_back(row);
  return out;
}

std::string main_help() {
  std::vector<HelpRow> rows;
  for (const Command& c : kCommands)
    rows.push_back({std::string(c.group), cat(c.name, c.arguments.empty() ? "" : " ", c.arguments),
                    std::string(c.summary)});
  for (const HelpPage::Row& row : global_options()) rows.push_back({row.heading, row.left(), row.help});
  rows.push_back({kGlobalHeading, "-V, --version", "print the version"});
  std::size_t width = help_width();
  return cat(title_text("mckpt", kProgramSummary, "Usage: mckpt [OPTIONS] COMMAND [ARGS]", width),
             rows_text(rows, width), "\n", wrapped(cat("Exit status: ", exit_statuses()), width, 0, 0), "\n");
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
  if (name == "download")
    throw e.help(
        "mckpt downloads nothing: fetch a model from a hub first, for example with `hf download NAME`");
  std::string command = command_for(name);
  if (command.empty()) command = nearest(name, names);
  if (command.empty()) throw e.help("mckpt --help lists the commands");
  throw e.note("mckpt --help lists the commands").help(cat("did you mean `mckpt ", command, "`?"));
}

}  // namespace mckpt::impl
