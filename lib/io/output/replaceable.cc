// Judges what has the name of a result. The kind of refusal decides what the user is told to do.
#include "io/output/replaceable.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "io/file/open_options.h"
#include "io/file/place.h"
#include "io/file/remove_tree.h"
#include "io/listing/manifest.h"
#include "io/output/published.h"
#include "io/output/staging_marks.h"
#include "io/output/unfinished.h"

namespace mckpt::impl {
namespace {

// Throws if replacing the folder would remove the user's own files, such as a home folder given by mistake,
// or notes beside a checkpoint.
void refuse_foreign(const std::string& path, const FileNames& copied) {
  std::vector<std::string> foreign = foreign_files(path, copied);
  if (foreign.empty()) return;
  for (std::string& name : foreign) name = escaped(name, 4096);
  throw Error(Code::kOutputExists,
              "the folder to be replaced contains files that are not part of a checkpoint")
      .file(path)
      .each_note(foreign)
      .help("choose another name, or move these files to another folder first");
}

// True with `overwrite`, or if the run that is resumed had it and the same folder still has the name.
bool was_to_replace(const std::string& path, const std::string& plan) {
  std::string staging = StagedFolder::staging_path(path), replaced = read_mark(staging, kReplacesMark);
  return is_of_plan(staging, plan) && !replaced.empty() && replaced == folder_identity(path);
}

std::string help_of(const std::string& path, const StagedFolder::Options& options, const std::string& plan) {
  if (options.resume)
    return "there is nothing to resume: the folder is complete or was made by another command; `overwrite` replaces it";
  if (was_to_replace(path, plan))
    return "an interrupted run of this command was to replace it: repeat it with `overwrite` or `resume`, which go on where it stopped";
  std::string help = cat("choose another name, or ", options.instead);
  if (is_of_other_plan(path, plan) && says_complete(read_mark(path, kPlanMark)))
    help +=
        "; the command that made the folder was interrupted in its last steps: repeat it to complete them";
  return help;
}

// True for a mount point: no other folder can be renamed to its name.
bool is_mount_point(const std::string& path) {
  struct statx st;
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) == 0 &&
      (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
    return (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  struct stat own, above;
  return ::lstat(path.c_str(), &own) == 0 && ::stat(parent_folder(path).c_str(), &above) == 0 &&
         own.st_dev != above.st_dev;
}

// The marks say that a run of this plan was interrupted, and mckpt did not give the folder this name, or it
// has lost files since, or may have.
[[noreturn]] void refuse_moved(const std::string& path, const StagedFolder::Options& options) {
  const std::string staging = StagedFolder::staging_path(path), name = escaped(path, 4096);
  std::string what =
      "the folder is the unfinished output of a run of this command, and was moved to this name";
  std::string choice =
      cat("to go on with it, give it its hidden name back: mv ", name, " ", escaped(staging, 4096), "; ");
  if (was_published_before_start(path)) {
    what =
        "the folder was published by a run of this command that wrote without fsync (`no_sync`), and the machine has started again since: the disk may lack some of it";
    choice = has_manifest(path, OpenOptions{.containers = nullptr})
                 ? cat("mckpt verify ", as_argument(path),
                       " compares it with its manifest: if it is sound, it is the result; ")
                 : "";
  } else if (says_complete(read_mark(path, kPlanMark))) {
    what = "the folder is not as a run of this command published it: it is a copy, or files are gone";
    choice.clear();
  }
  throw Error(Code::kOutputExists, what).file(path).help(cat(choice, "to begin anew, ", options.instead));
}

}  // namespace

void refuse_mounts(const std::string& path) {
  std::vector<std::string> mounts = mounts_below(path);
  if (mounts.empty()) return;
  for (std::string& name : mounts) name = cat(escaped(name, 4096), ": something is mounted there");
  throw Error(Code::kOutputExists, "the folder to be removed contains a mount, which is never entered")
      .file(path)
      .each_note(mounts)
      .help("unmount it first, or choose another name");
}

void refuse_unless_replaceable(const std::string& path, const StagedFolder::Options& options,
                               const std::string& plan) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return;
  bool folder = S_ISDIR(st.st_mode);
  if (folder && is_mount_point(path))
    throw Error(Code::kOutputExists, "the output folder is a mount point, which no other folder can replace")
        .file(path)
        .help(cat("name a folder in it, such as ", escaped(path, 4096), "/result"));
  if (folder && is_published(path, plan)) return;
  if (folder && (options.replace || (options.resume && was_to_replace(path, plan)))) {
    refuse_mounts(path);
    return refuse_foreign(path, options.copied);
  }
  if (folder && is_of_plan(path, plan)) refuse_moved(path, options);
  const bool link = S_ISLNK(st.st_mode);
  throw Error(Code::kOutputExists,
              folder ? "the output folder exists already"
              : link ? "the output is a folder, and a link has its name: a result replaces no link"
                     : "the output is a folder, and a file has its name")
      .file(path)
      .help(folder ? help_of(path, options, plan) : "choose another name");
}

}  // namespace mckpt::impl
