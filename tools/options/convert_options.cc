// Declares the options of conversions and checks them against each other. What depends on files is checked
// twice: before anything is planned, so that a mistake is reported at once, and when the places of the result
// are known.
#include "tools/options/convert_options.h"

#include <filesystem>
#include <functional>

#include "convert/output/fsdp_folder.h"
#include "core/base/error.h"
#include "io/card/card_text.h"
#include "io/file/parallel.h"
#include "io/file/place.h"
#include "io/output/output_rules.h"
#include "io/output/staged_file.h"
#include "tools/options/as_given.h"
#include "tools/options/command_line.h"

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

ConvertOptions::ConvertOptions() : threads(default_threads()) {}

void ConvertOptions::declare(CommandLine& line, const std::string& source_is, const std::string& target_is) {
  line.positional("SRC", source, source_is).required();
  line.positional("DST", target, target_is).required();
  line.flag("-n,--dry-run", dry_run, "show what would be done; write nothing").common();
  line.flag("--overwrite", overwrite, "replace DST when the new result is complete").common();
  line.option(
      "--report FILE", report,
      "also write the account as JSON into FILE, tensor by tensor: what each is made of, and what changed");
  line.option(
      "--card FILE", cards,
      "also write a card of the result: its files and tensors with their SHA-256, for `verify --card`, "
      "sha256sum and signing; .json, .md or .sha256 (repeatable). It takes one more read of the result");
  command = as_given(line);
  line.flag("--no-sync", no_sync, "do not wait until the result is on the disk (for scratch copies)");
  line.threads(threads, "number of threads; by default one for each processor").common();
  line.bytes("--max-memory", memory_bytes,
             "memory for the buffers of all threads together; by default 256MiB");
}

void ConvertOptions::declare_choice(CommandLine& line) {
  line.option("--include GLOB", include, "convert only tensors whose whole name matches (repeatable)")
      .common();
  line.option("--exclude GLOB", exclude, "leave out tensors whose whole name matches (repeatable)").common();
}

void ConvertOptions::declare_resume(CommandLine& line) {
  line.flag("--resume", resume, "continue an interrupted run of the same command").common();
  ranks.declare(line);
}

void ConvertOptions::declare_casts(CommandLine& line) {
  line.flag(
      "--allow-overflow", allow_overflow,
      "publish the result although a cast made finite values infinite; without this option that is an error");
}

void ConvertOptions::declare_iteration(CommandLine& line, const std::string& otherwise) {
  line.option("--iteration N", iteration, cat("write DST/iter_000000N, N above 0; by default ", otherwise));
}

void ConvertOptions::check() const {
  check_iteration(iteration);
  ranks.check();
  if (resume && overwrite)
    throw Error(Code::kUsage,
                "--resume continues an unfinished result and refuses any other, --overwrite replaces what is "
                "there: give "
                "only one of them");
}

// The folder of the file may be the result that is going to be made; whether the file is inside that result
// is checked when its place is known.
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
  for (const std::string& card : cards) {
    check_place("--card", card);
    said_of("--card", [&] { check_card_name(card); });
  }
  std::vector<std::string> written = cards;
  if (report) written.push_back(*report);
  refuse_shared_places(written);
}

void ConvertOptions::check_report(const OutputRules& rules, const std::vector<std::string>& results) const {
  if (report) said_of("--report", [&] { rules.check_report(*report, results); });
  for (const std::string& card : cards) said_of("--card", [&] { rules.check_report(card, results); });
}

}  // namespace mckpt::impl
