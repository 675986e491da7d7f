// Conditions that are checked before a run writes anything. Rank 0 checks for all ranks. The place of the
// result is checked once more when the result is staged, because another program may change a folder in
// between.
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "convert/run/staged_result.h"
#include "core/base/error.h"
#include "io/file/parallel.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staging_marks.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/verify/manifest_check.h"

namespace mckpt::impl {
namespace {

i64 total_bytes(const std::vector<OutputFile>& files) {
  i64 bytes = 0;
  for (const OutputFile& f : files) bytes += f.bytes;
  return bytes;
}

}  // namespace

// A single file may be made in a folder that is read, so each file of the source counts as one that the user
// named.
OutputRules output_rules(const Conversion& conversion) {
  std::vector<std::string> named = conversion.sources, read;
  for (i32 f = 0; conversion.store && f < std::ssize(conversion.store->files()); f++)
    (conversion.single_file ? named : read).push_back(file_path(*conversion.store, f));
  return OutputRules(named, read);
}

std::vector<std::string> results_of(const Conversion& conversion) {
  std::vector<std::string> results = {conversion.path};
  if (conversion.tracker) results.push_back(conversion.tracker->path);
  return results;
}

void check_result(const Conversion& conversion, const RunOptions& options) {
  check_threads(options.threads);
  if (options.memory_bytes < 1)
    throw Error(Code::kUsage, "`max_memory` must be at least one byte").found(options.memory_bytes);
  for (const std::string& source : conversion.sources) require_listed_files(source, conversion.opening);
  OutputRules rules = output_rules(conversion);
  if (conversion.single_file) {
    rules.check_file(conversion.path);
    return StagedFile::check(conversion.path, file_staging(options), conversion.files[0].bytes);
  }
  for (const OutputFile& file : conversion.files) refuse_own_name(file.name);
  for (const std::string& name : conversion.beside.names()) refuse_own_name(name);
  rules.check_folder(conversion.path);
  if (conversion.tracker) StagedFile::check(conversion.tracker->path, {.replace = true}, 0);
  // One file more than the conversion has: the manifest.
  StagedFolder::check(conversion.path, folder_staging(conversion, options), conversion.identity,
                      total_bytes(conversion.files) + conversion.beside.bytes(),
                      std::ssize(conversion.files) + 1);
}

}  // namespace mckpt::impl
