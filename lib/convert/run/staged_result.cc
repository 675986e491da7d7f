// The tracker is written as the last step of publishing, so that a run that resumes completes the tracker
// too.
#include "convert/run/staged_result.h"

#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "io/output/output_files.h"

namespace mckpt::impl {
namespace {

// Another program may write the tracker of the same training run at the same moment: waits for it up to 10
// seconds.
void write_tracker(const Tracker& tracker, bool durable) {
  StagedFile staged(tracker.path, {.durable = durable, .replace = true, .wait = std::chrono::seconds(10)});
  OutputFiles out(staged.folder(), {{staged.name(), std::ssize(tracker.text)}});
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(tracker.text.data()), tracker.text.size()));
  staged.publish(out);
}

}  // namespace

StagedFolder::Options folder_staging(const Conversion& conversion, const RunOptions& options) {
  StagedFolder::Options staging{
      .durable = options.durable, .replace = options.overwrite, .resume = options.resume};
  if (!options.can_overwrite) staging.instead = "remove this one", staging.anew = "remove it";
  staging.copied = conversion.beside.names();
  return staging;
}

StagedFile::Options file_staging(const RunOptions& options) {
  return {.durable = options.durable, .replace = options.overwrite, .make_folders = true};
}

std::string staging_path(const Conversion& conversion) {
  return conversion.single_file ? StagedFile::staging_path(conversion.path)
                                : StagedFolder::staging_path(conversion.path);
}

std::vector<OutputFile> staged_files(const Conversion& conversion) {
  if (!conversion.single_file) return conversion.files;
  return {{StagedFile::staged_name(conversion.path), conversion.files[0].bytes}};
}

StagedResult::StagedResult(const Conversion& conversion, const RunOptions& options)
    : conversion_(conversion), durable_(options.durable) {
  if (conversion.single_file)
    file_.emplace(conversion.path, file_staging(options));
  else
    folder_.emplace(conversion.path, folder_staging(conversion, options), conversion.identity);
}

void StagedResult::publish(OutputFiles* out) {
  if (file_) return file_->publish(*out);
  folder_->publish([&] {
    if (conversion_.tracker) write_tracker(*conversion_.tracker, durable_);
  });
}

}  // namespace mckpt::impl
