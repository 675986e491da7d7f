// Declares the options of conversions and checks them against each other. Places of files are checked twice:
// before anything is planned, so that a mistake is reported at once, and when the places of the result are
// known.
#include "tools/options/of_commands/convert_options.h"

#include <filesystem>
#include <functional>

#include "core/base/error.h"
#include "io/card/card_text.h"
#include "io/file/parallel.h"
#include "io/file/place.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"
#include "options/fields.h"
#include "tools/options/as_given.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"

namespace mckpt::impl {
namespace {

// Runs fn; an error of fn gets the option before its message.
void said_of(const std::string& option, const std::function<void()>& fn) {
  try {
    fn();
  } catch (Error& e) {
    e.prefix(cat(option, ": "));
    throw;
  }
}

}  // namespace

ConvertOptions::ConvertOptions() { run.threads = default_threads(); }

void ConvertOptions::declare(CommandLine& line, bool resumes, bool shares_work) {
  auto of_run = [&](std::vector<std::string_view> names) {
    FieldFlags flags(line);
    flags.only(std::move(names));
    fields(run, flags);
  };
  line.flag("-n,--dry-run", dry_run, "show what would be done; write nothing").common();
  of_run({"overwrite"});
  line.option(
      "--report FILE", report,
      "also write the account as JSON into FILE, tensor by tensor: what each is made of, and what changed");
  run.command = as_given(line);
  of_run({"card", "no_sync", "threads", "max_memory"});
  if (resumes) of_run({"resume"});
  if (shares_work) ranks.declare(line);
}

void ConvertOptions::declare_casts(CommandLine& line) {
  FieldFlags flags(line);
  flags.only({"allow_overflow"});
  fields(run, flags);
}

void ConvertOptions::check() const {
  ranks.check();
  if (run.resume && run.overwrite)
    throw Error(
        Code::kUsage,
        "--resume continues an unfinished result and refuses any other, --overwrite replaces what is there: give only one of them");
}

// The file may lie in the folder of a result that is yet to be made; check_report(rules, results) checks that
// later.
void ConvertOptions::check_place(const std::string& option, const std::string& file) const {
  namespace fs = std::filesystem;
  if (file.empty() || file == "-")
    throw Error(Code::kUsage, cat(option, " needs the name of a file; stdout has the answer alone"));
  std::error_code ec;
  if (fs::equivalent(file, source, ec) || same_place(file, target))
    throw Error(Code::kUsage, cat(option, " must name a file that is neither SRC nor DST"))
        .found(escaped(file));
  std::string folder = parent_folder(file);
  bool will_be = !dry_run && !fs::exists(folder, ec) && same_place(folder, target);
  if (!will_be && !fs::is_directory(folder, ec))
    throw Error(Code::kNoRoom, cat("the folder of the ", option, " file does not exist"))
        .file(file)
        .help("create the folder, or name another file");
  said_of(option, [&] {
    OutputRules({source}).check_report(file, {});
    if (!will_be) StagedFile::check(file, {.replace = true}, 0);
  });
}

void ConvertOptions::check_report() const {
  if (report) check_place("--report", *report);
  for (const std::string& card : run.card) {
    check_place("--card", card);
    said_of("--card", [&] { check_card_name(card); });
  }
  std::vector<std::string> written = run.card;
  if (report) written.push_back(*report);
  refuse_shared_places(written);
}

void ConvertOptions::check_report(const OutputRules& rules, const std::vector<std::string>& results) const {
  if (report) said_of("--report", [&] { rules.check_report(*report, results); });
  for (const std::string& card : run.card) said_of("--card", [&] { rules.check_report(card, results); });
}

}  // namespace mckpt::impl
