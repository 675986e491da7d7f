// Makes a folder under a hidden name and publishes it. The steps, each of which can be repeated after an
// interruption:
//
//   constructor   refuse what may not be replaced; create and lock .NAME.mckpt-tmp; put .NAME.mckpt-old back
//                 if a run was killed between two renames; empty the folder and write .replaces and .plan,
//                 or resume if its .plan is this plan
//   publish       fsync of all folders inside; rename; fsync of the folder above; last step; remove the
//                 replaced folder; remove the marks, .plan last
//
// .plan is written last and removed last: a folder that has it is complete or can be resumed, and a folder
// without it can be emptied. The rename is the first of these that the file system can do:
//
//   NAME does not exist   rename that never replaces; plain rename, which replaces at most an empty folder
//   NAME may be replaced  swap of the two names; NAME to .NAME.mckpt-old, then .NAME.mckpt-tmp to NAME
#include "io/output/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/file/retried.h"
#include "io/output/plan_identity.h"
#include "io/output/staging_marks.h"

namespace mckpt::impl {
namespace {

bool is_there(const std::string& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0;
}

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

bool has_plan(const std::string& folder, const std::string& plan) {
  return !plan.empty() && read_mark(folder, kPlanMark) == plan;
}

// True with `overwrite`, or if the run that is resumed had it and the same folder still has the name.
bool may_replace(const std::string& path, const StagedFolder::Options& options, const std::string& plan) {
  if (options.replace) return true;
  std::string staging = StagedFolder::staging_path(path), replaced = read_mark(staging, kReplacesMark);
  return options.resume && has_plan(staging, plan) && !replaced.empty() && replaced == folder_identity(path);
}

std::string help_of(const std::string& path, const StagedFolder::Options& options, bool folder) {
  if (!folder) return "choose another name";
  if (options.resume)
    return "there is nothing to resume: the folder is complete or was made by another command; `overwrite` "
           "replaces it";
  std::string help = cat("choose another name, or ", options.instead);
  if (!read_mark(path, kPlanMark).empty())
    help +=
        "; the command that made the folder was interrupted in its last steps: repeat it with `resume` to "
        "complete them";
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

void check_folder(const std::string& path, const StagedFolder::Options& options, const std::string& plan) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return;
  bool folder = S_ISDIR(st.st_mode);
  if (folder && is_mount_point(path))
    throw Error(Code::kOutputExists, "the output folder is a mount point, which no other folder can replace")
        .file(path)
        .help(cat("name a folder in it, such as ", escaped(path, 4096), "/result"));
  if (folder && options.resume && has_plan(path, plan)) return;
  if (folder && may_replace(path, options, plan)) return refuse_foreign(path, options.copied);
  const bool link = S_ISLNK(st.st_mode);
  throw Error(Code::kOutputExists,
              folder ? "the output folder exists already"
              : link ? "the output is a folder, and a link has its name: a result replaces no link"
                     : "the output is a folder, and a file has its name")
      .file(path)
      .help(help_of(path, options, folder));
}

std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// "DIR/.NAME" + suffix
std::string hidden_beside(const std::string& path, std::string_view suffix) {
  std::string whole = trimmed(path);
  return cat(parent_folder(whole), "/.", whole.substr(whole.rfind('/') + 1), suffix);
}

}  // namespace

void StagedFolder::check(const std::string& path, const Options& options, const std::string& plan, i64 bytes,
                         i64 files) {
  check_folder(trimmed(path), options, plan);
  // An interrupted run has already reserved the space.
  if (!options.resume || !is_begun(path)) check_room(path, bytes, files);
}

StagedFolder::StagedFolder(std::string path, Options options, std::string plan)
    : path_(trimmed(std::move(path))),
      parent_(parent_folder(path_)),
      staging_(staging_path(path_)),
      old_(hidden_beside(path_, ".mckpt-old")),
      plan_(std::move(plan)),
      options_(std::move(options)) {
  std::string name = path_.substr(path_.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") fail("this is not the name of a folder", EISDIR);
  check_folder(path_, options_, plan_);
  if (go_on_with_published()) return;
  if (int error = make_folders(parent_, options_.durable); error != 0)
    fail("cannot create the parent folder", error);
  lock(staging_, true);
  try {
    settle_old();
    check_folder(path_, options_, plan_);
    resumes_ = begin_plan();
  } catch (...) {
    let_go();
    throw;
  }
}

StagedFolder::~StagedFolder() {
  if (fd_ >= 0) let_go();
}

// Closes the folder, and with it gives the lock up.
void StagedFolder::let_go() {
  std::error_code ignored;  // the error that ended the work says more
  if (!options_.resumable && !published_) std::filesystem::remove_all(staging_, ignored);
  ::close(std::exchange(fd_, -1));
}

std::string StagedFolder::staging_path(const std::string& path) {
  return hidden_beside(path, kStagingSuffix);
}

bool StagedFolder::is_begun(const std::string& path) {
  return !read_mark(staging_path(path), kPlanMark).empty() || !read_mark(trimmed(path), kPlanMark).empty();
}

std::string StagedFolder::log_path(const std::string& folder) { return cat(folder, "/", kDoneMark); }

bool StagedFolder::go_on_with_published() {
  if (!options_.resume || !has_plan(path_, plan_)) return false;
  lock(path_, false);
  staging_ = path_;
  return resumes_ = published_ = true;
}

void StagedFolder::lock(const std::string& folder, bool make) {
  for (int attempt = 0; attempt < 10; attempt++) {
    if (make && ::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
      fail("cannot create the folder", errno);
    fd_ = retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
    if (fd_ < 0 && errno == ENOENT && make) continue;  // its owner has just published it
    if (fd_ < 0) fail("cannot open the folder in which the output is made", errno);
    if (retried([&] { return ::flock(fd_, LOCK_EX | LOCK_NB); }) != 0) {
      int error = errno;
      ::close(std::exchange(fd_, -1));
      if (error != EWOULDBLOCK) fail("cannot lock the folder in which the output is made", error);
      throw Error(Code::kOutputBusy, "another program is writing this folder").file(path_);
    }
    if (leads_to(fd_, folder)) return;
    ::close(std::exchange(fd_, -1));
  }
  throw Error(Code::kOutputBusy, "other programs keep writing this folder").file(path_);
}

// After a run that was killed between its two renames or after them: puts the old folder back if no folder
// has its name, otherwise removes it.
void StagedFolder::settle_old() const {
  if (!is_there(old_)) return;
  std::error_code error;
  if (is_there(path_))
    std::filesystem::remove_all(old_, error);
  else if (::rename(old_.c_str(), path_.c_str()) != 0)
    error.assign(errno, std::generic_category());
  if (error) fail("putting the old folder back failed", error.value());
}

// Removes what an interrupted run of another plan left. The iterator is advanced by increment(), because its
// ++ throws std::filesystem_error.
void StagedFolder::empty_folder() const {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(staging_, error), end; !error && entry != end;) {
    std::filesystem::remove_all(entry->path(), error);
    if (!error) entry.increment(error);
  }
  if (error) fail("cannot remove the unfinished output of an interrupted run", error.value());
}

// True if the folder contains an interrupted run of the same plan; otherwise empties it.
bool StagedFolder::begin_plan() {
  std::string begun = read_mark(staging_, kPlanMark);
  if (options_.resume && !begun.empty()) {
    if (begun == plan_) return true;
    throw Error(
        Code::kOtherPlan,
        "the unfinished output was begun with other options, from another source or by another version")
        .file(staging_)
        .each_note(plan_differences(begun, plan_))
        .help("repeat the first command with `resume`, or start again with `overwrite`");
  }
  empty_folder();
  std::string replaced = options_.replace ? folder_identity(path_) : "";
  int error = replaced.empty() ? 0 : write_mark(staging_, kReplacesMark, replaced, options_.durable);
  // .plan last: a folder with .plan can be resumed.
  if (error == 0) error = write_mark(staging_, kPlanMark, plan_, options_.durable);
  if (error != 0) fail("cannot write the plan of the output", error);
  return false;
}

void StagedFolder::fail(const char* what, int error) const {
  throw Error(Code::kWriteFailed, cat(what, ": ", errno_text(error))).file(path_);
}

// Notes which folder is replaced, if that is another one than at the beginning of the work.
void StagedFolder::note_replaced() const {
  std::string replaced = folder_identity(path_);
  if (read_mark(staging_, kReplacesMark) == replaced) return;
  ::unlinkat(fd_, std::string(kReplacesMark).c_str(), 0);
  if (int error = write_mark(staging_, kReplacesMark, replaced, options_.durable); error != 0)
    fail("cannot note which folder is replaced", error);
}

void StagedFolder::rename_into_place() const {
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return;
  int error = errno;
  check_folder(path_, options_, plan_);
  if (!is_there(path_)) {
    // Not every file system can rename without replacing; a plain rename replaces at most an empty folder.
    if (error != EINVAL && error != ENOSYS) fail("publishing the folder failed", error);
    if (::rename(staging_.c_str(), path_.c_str()) != 0) fail("publishing the folder failed", errno);
    return;
  }
  note_replaced();
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail("publishing the folder failed", errno);
  if (::rename(path_.c_str(), old_.c_str()) != 0) fail("putting the old folder aside failed", errno);
  if (::rename(staging_.c_str(), path_.c_str()) != 0) {
    error = errno;
    ::rename(old_.c_str(), path_.c_str());
    fail("publishing the folder failed", error);
  }
}

// The replaced folder has one of two hidden names now. It is recognised by its identity, because another run
// may have made a folder of its own under the first name meanwhile; a folder that is locked is left alone.
void StagedFolder::remove_replaced() const {
  std::string replaced = read_mark(path_, kReplacesMark);
  if (replaced.empty()) return;
  for (const std::string& left : {staging_path(path_), old_}) {
    if (folder_identity(left) != replaced) continue;
    int fd = retried([&] { return ::open(left.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
    if (fd < 0) continue;
    std::error_code error;
    if (retried([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) != 0)
      error.assign(errno == EWOULDBLOCK ? 0 : errno, std::generic_category());
    else if (leads_to(fd, left))
      std::filesystem::remove_all(left, error);
    ::close(fd);
    if (error) fail("removing the replaced folder failed", error.value());
  }
}

void StagedFolder::conclude(const std::function<void()>& last_step) const {
  if (int error = options_.durable ? sync_folder(parent_) : 0; error != 0)
    fail("making the folder's name durable failed", error);
  if (last_step) last_step();
  remove_replaced();
  if (int error = remove_marks(path_); error != 0)
    fail("removing the marker files in the folder failed", error);
}

void StagedFolder::publish(const std::function<void()>& last_step) {
  if (!published_) {
    if (int error = options_.durable ? sync_folders(staging_) : 0; error != 0)
      fail("making the folder durable failed", error);
    rename_into_place();
    published_ = true;
  }
  try {
    conclude(last_step);
  } catch (Error& e) {
    e.prefix(cat("the result is published as ", escaped(path_, 4096), "; a later step failed: "));
    if (code_info(e.code()).exit != Exit::kRefused) throw;
    // The exit status "refused" would say that nothing was written.
    Error failed(Code::kWriteFailed, e.message());
    throw failed.file(e.file()).expected(e.expected()).found(e.found()).help(e.help());
  }
}

}  // namespace mckpt::impl
