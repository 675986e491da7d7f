// Conditions that are checked before a run writes anything. Rank 0 checks for all ranks. The place of the
// result is checked once more when the result is staged, because another program may change a folder in
// between.
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "convert/run/staged_result.h"
#include "core/base/error.h"
#include "io/file/file_names.h"
#include "io/file/parallel.h"
#include "io/file/place.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staging_marks.h"
#include "io/safetensors/two_models.h"
#include "io/store/open/two_formats.h"
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

// Refuses a file of weights beside which the files of its folder are another model: no command would read the
// folder, and programs would load one or the other. The name that programs load first is none.
void refuse_second_model(const std::string& path) {
  const std::string folder = parent_folder(path), name = path.substr(path.rfind('/') + 1);
  if (!is_folder(folder, {})) return;
  const Folder place(folder);
  NameSet<std::string> names = file_names(place);
  // Where config.json names the file of the weights, all readers take that file.
  const bool torch = has_weights_entry(place) || is_beside_torch(names), formats = are_two_formats(names);
  names.insert(name);
  const bool beside_torch = !torch && is_beside_torch(names),
             two_formats = !formats && are_two_formats(names);
  if (!beside_torch && !two_formats) return;
  Error e(Code::kOutputExists,
          "the folder of the result would then hold two models, and no command would read it");
  e.file(path);
  if (two_formats) e.found("a save of torch DCP, and config.json");
  const bool safetensors = beside_torch && name.ends_with(".safetensors");
  if (beside_torch)
    e.found(cat("the folder has ", safetensors ? first_weights(names) : "files of safetensors"));
  throw e.help(safetensors ? cat("name the result ", kSingleFile, ", which programs load before ",
                                 first_weights(names), ", or choose another folder")
                           : std::string("choose another folder"));
}

}  // namespace

// A single file may be made in a folder that is read, so each file of the source counts as one that the user
// named.
OutputRules output_rules(const Conversion& conversion) {
  std::vector<std::string> named = conversion.sources, read;
  // A file that makes sense only with its folder, such as .metadata, means the folder.
  if (conversion.single_file && conversion.store && is_folder(conversion.store->root(), {}) &&
      !is_folder(conversion.sources[0], {}))
    named.insert(named.begin(), conversion.store->root());
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
    refuse_second_model(conversion.path);
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
