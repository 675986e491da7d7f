// mckpt man [COMMAND [MODE]]: the man page of mckpt, or of one command, in roff.
//
//   mckpt man verify            on a terminal through `man -l -`, where man is installed; else the text itself
//
// With --output DIR, all pages as files of a folder: mckpt.1, mckpt-verify.1, mckpt-convert-reshard.1, ...
#include "tools/help/man_page.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>

#include "core/base/error.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"
#include "tools/commands/command_table.h"
#include "tools/commands/commands.h"
#include "tools/commands/convert_modes.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"

#ifndef MCKPT_VERSION
#error "the build sets MCKPT_VERSION"
#endif

namespace mckpt::impl {
namespace {

// Shows a page as man does. False where man cannot be started: the text is printed then.
bool show(const std::string& text) {
  if (!::isatty(STDOUT_FILENO)) return false;
  const auto before = std::signal(SIGPIPE, SIG_IGN);  // the reader may leave before it has all
  std::FILE* man = ::popen("command -v man >/dev/null 2>&1 && exec man -l -", "w");
  const bool written = man && std::fwrite(text.data(), 1, text.size(), man) == text.size();
  const int status = man ? ::pclose(man) : -1;
  std::signal(SIGPIPE, before);
  return written && status == 0;
}

ManualText manual() { return {MCKPT_VERSION, kProgramSummary, exit_statuses()}; }

// Throws kOutputExists if a file that is not a page of mckpt has the name.
void refuse_other_than_page(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, failed))) return;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  if (line.starts_with(".TH ") && line.ends_with("\"mckpt manual\"")) return;
  throw Error(Code::kOutputExists, "a file that is not a page of mckpt has the name of one")
      .file(path.string())
      .help("choose another folder, or remove the file");
}

constexpr StagedFile::Options kStaging{.durable = false, .replace = true};

void write_file(const std::string& path, std::string_view text) {
  StagedFile file(path, kStaging);
  OutputFiles out(file.folder(), {{file.name(), std::ssize(text)}});
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  file.publish(out);
}

void write_all(const std::string& folder) {
  refuse_empty_path(folder, "the folder");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw Error(Code::kWriteFailed, cat("cannot make a folder: ", failed.message())).file(folder);
  std::vector<HelpPage> pages = all_pages();
  std::filesystem::path in = folder;
  std::map<std::string, std::string> texts = {{"mckpt.1", man_page_of_program(pages, manual())}};
  for (const HelpPage& page : pages) texts.emplace(cat(man_name(page), ".1"), man_page(page, manual()));
  for (const auto& [name, text] : texts) {
    refuse_other_than_page(in / name);
    StagedFile::check(in / name, kStaging, std::ssize(text));
  }
  for (const auto& [name, text] : texts) write_file(in / name, text);
}

}  // namespace

Exit man_command(CommandLine& line) {
  std::vector<std::string> names;
  for (const Command& c : all_commands()) names.emplace_back(c.name);
  std::optional<std::string> command, mode, folder;
  line.positional("COMMAND", command, "a command; without COMMAND, the page is that of mckpt")
      .words(std::move(names));
  line.positional("MODE", mode, "a mode of the command, if the command has modes").words(convert_modes());
  line.option("--output DIR", folder, "write all pages into DIR, as mckpt.1, mckpt-verify.1 and so on")
      .common();
  line.description(
      "Shows a man page by man on a terminal, and prints it in roff elsewhere. An installed mckpt has its pages where man finds them.");
  line.example("mckpt man verify");
  line.example("mckpt man convert reshard > mckpt-convert-reshard.1");
  line.example("mckpt man --output ~/.local/share/man/man1");
  line.parse();
  if (folder && command) throw Error(Code::kUsage, "--output writes all pages, and a COMMAND is given too");
  Output out(line.flags());
  out.keep_lines();
  std::string name = "mckpt", text;
  if (folder) {
    write_all(*folder);
  } else if (command) {
    HelpPage page = page_of(*command, mode.value_or(""));
    name = man_name(page), text = man_page(page, manual());
  } else {
    text = man_page_of_program(all_pages(), manual());
  }
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("man", true);
    folder ? json.field("output", *folder) : json.null_field("output");
    folder ? json.null_field("name") : json.field("name", name);
    folder ? json.null_field("text") : json.field("text", text);
    json.end_answer();
  } else {
    if (folder || !show(text)) out.write(folder ? cat(*folder, "\n") : text);
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
