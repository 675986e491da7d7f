#include "tools/convert_options.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "io/parallel.h"
#include "tools/choice.h"
#include "tools/interrupt.h"
#include "tools/progress.h"

namespace mckpt {
namespace {

// From the root, without links and dots; the last parts need not be there.
std::filesystem::path whole_path(const std::string& path, std::error_code& ec) {
  std::filesystem::path from_here = std::filesystem::absolute(path, ec);
  return ec ? from_here : std::filesystem::weakly_canonical(from_here, ec);
}

// Or is it. pre: both are whole paths.
bool lies_in(const std::filesystem::path& folder, const std::filesystem::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

Error bad_output(const char* message, const std::string& output, const std::string& input) {
  return Error(Code::kOutputExists, message).file(output).found(cat("the source ", escaped(input, 4096)));
}

}  // namespace

ConvertOptions::ConvertOptions() : threads(default_threads()) {}

void ConvertOptions::declare(CommandLine& line, const std::string& source_is, const std::string& target_is) {
  line.positional("SRC", source, source_is).required();
  line.positional("DST", target, target_is).required();
  line.flag("-n,--dry-run", dry_run, "tell what would be done, and write nothing");
  line.flag("--overwrite", overwrite, "replace DST, once the new one is whole");
  line.option("--report FILE", report, "write the account as JSON into this file as well");
  line.flag("--no-sync", no_sync, "do not wait until the disk has it; for scratch");
  line.threads(threads, "threads, by default one a processor");
  line.bytes("--max-memory", memory_bytes, "for buffers, of all threads together; by default 256MiB");
}

void ConvertOptions::declare_choice(CommandLine& line) {
  line.option("--include GLOB", include, "only tensors whose whole name matches; may be given several times");
  line.option("--exclude GLOB", exclude, "no tensors whose whole name matches; may be given several times");
}

void ConvertOptions::declare_resume(CommandLine& line) {
  line.flag("--resume", resume, "go on with what an interrupted run of the same command left");
  ranks.declare(line);
}

void ConvertOptions::declare_casts(CommandLine& line) {
  line.flag("--allow-overflow", allow_overflow,
            "publish the result also where a cast made finite values infinite; without it that is an error");
}

void ConvertOptions::declare_iteration(CommandLine& line, const std::string& otherwise) {
  line.option("--iteration N", iteration, cat("write DST/iter_000000N, N above 0; by default ", otherwise));
}

void ConvertOptions::check() const {
  if (iteration && (*iteration <= 0 || *iteration > 9'999'999))
    throw Error(Code::kUsage,
                "an iteration is a number from 1 to 9999999: Megatron takes 0 for no checkpoint")
        .found(cat("--iteration ", *iteration));
  ranks.check();
  if (resume && overwrite)
    throw Error(Code::kUsage,
                "--resume goes on with what was begun, --overwrite starts anew: give one of them");
}

void ConvertOptions::check_report() const {
  namespace fs = std::filesystem;
  if (!report) return;
  std::error_code ec;
  if (fs::equivalent(*report, source, ec) || whole_path(*report, ec) == whole_path(target, ec))
    throw Error(Code::kUsage, "--report names a file of its own, neither SRC nor DST")
        .found(escaped(*report));
  fs::path folder = whole_path(*report, ec).parent_path();
  if (!fs::is_directory(folder, ec)) {
    bool will_be = lies_in(whole_path(target, ec), folder);
    if (will_be && !dry_run) return;
    throw Error(Code::kNoRoom, "--report: its folder is not there")
        .file(*report)
        .help("make the folder, or name another file");
  }
  try {
    StagedFile::check(*report, {.replace = true}, 0);
  } catch (Error& e) {
    e.prefix("--report: ");
    throw;
  }
}

void ConvertOptions::keep_apart(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ec;
  std::filesystem::path there = whole_path(output, ec);
  if (ec) return;  // checks of the output say what is wrong with it
  for (const std::string& input : inputs) {
    std::filesystem::path read = std::filesystem::canonical(input, ec);
    if (!ec && lies_in(read, there))
      throw bad_output("the result would be written into what it is made from", output, input)
          .help("choose a DST outside of the source");
  }
}

void ConvertOptions::keep(const std::string& output, const std::vector<std::string>& inputs) const {
  std::error_code ec;
  std::filesystem::path there = std::filesystem::canonical(output, ec);
  if (!overwrite || ec) return;
  for (const std::string& input : inputs) {
    std::filesystem::path read = std::filesystem::canonical(input, ec);
    if (!ec && lies_in(there, read))
      throw bad_output("--overwrite would replace what the result is made from", output, input)
          .help("choose another DST");
  }
}

std::vector<i64> ConvertOptions::choose(const Store& store) const {
  std::vector<i64> chosen = natural_order(store);
  auto matching = [&](const std::vector<std::string>& globs) {
    std::unordered_set<i64> tensors;
    for (const std::string& glob : globs)
      for (i64 t : TensorChoice{.pattern = glob}.choose(store)) tensors.insert(t);
    return tensors;
  };
  if (!include.empty()) std::erase_if(chosen, [in = matching(include)](i64 t) { return !in.contains(t); });
  if (!exclude.empty()) std::erase_if(chosen, [out = matching(exclude)](i64 t) { return out.contains(t); });
  if (chosen.empty() && store.tensor_count() > 0)
    throw Error(Code::kNoSuchTensor, "--include and --exclude leave no tensor").file(store.root());
  return chosen;
}

CopyOptions ConvertOptions::copying(Progress& progress) const {
  return {.threads = threads,
          .memory_bytes = memory_bytes,
          .stop = stop_flag(),
          .written_bytes = progress.counter()};
}

}  // namespace mckpt
