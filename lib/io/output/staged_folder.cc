// Makes a folder under a hidden name and publishes it. The steps, each of which can be repeated after an
// interruption:
//
//   constructor   refuse what may not be replaced; create and lock .NAME.mckpt-tmp; put .NAME.mckpt-old back
//                 if a run was killed between two renames; empty the folder and write .replaces and .plan,
//                 or go on if its .plan is this plan; refuse a folder that cannot be renamed
//   publish       fsync of all folders inside; .plan says that all is written; rename, in a transaction of its own
//                 on btrfs; fsync of the folder above; last step; remove the replaced folder; remove the marks,
//                 .plan last
//
// .plan is written last and removed last: a folder that has it can be gone on with, was marked as complete
// (io/output/published.h), or as one with which nobody goes on. A hidden folder without any mark is emptied
// by nobody: it is somebody's own.
// The rename is the first of these that the file system can do:
//
//   NAME does not exist   rename that never replaces; plain rename, which replaces at most an empty folder
//   NAME may be replaced  swap of the two names; NAME to .NAME.mckpt-old, then .NAME.mckpt-tmp to NAME
#include "io/output/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/file/remove_tree.h"
#include "io/file/retried.h"
#include "io/output/lower_layer.h"
#include "io/output/published.h"
#include "io/output/replaceable.h"
#include "io/output/staged_content.h"
#include "io/output/staging_marks.h"
#include "io/output/unfinished.h"

namespace mckpt::impl {
namespace {

constexpr int kMostWaits = 1000;
constexpr std::chrono::milliseconds kWait(5);

bool is_there(const std::string& path) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0;
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

std::string old_path(const std::string& path) { return hidden_beside(path, ".mckpt-old"); }

bool is_locked(const std::string& folder) {
  int fd = retried([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
  if (fd < 0) return false;
  bool locked = retried([&] { return ::flock(fd, LOCK_SH | LOCK_NB); }) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return locked;
}

// The remains of an earlier run are removed, too, or gone on with.
void check_left(const std::string& path, const StagedFolder::Options& options, const std::string& plan) {
  std::string staging = StagedFolder::staging_path(path);
  const std::string old = old_path(path);
  for (const std::string& left : {staging, old}) refuse_mounts(left);
  refuse_foreign_staging({path, staging, old});
  if (options.replace || !is_of_other_plan(staging, plan)) return;
  if (is_locked(staging) || (HostLock::is_needed(path) && HostLock::is_taken(path)))
    throw Error(Code::kOutputBusy, "another program is writing this folder").file(path);
  refuse_other_plan(staging, plan, {.resumes = options.resume, .anew = options.anew});
}

}  // namespace

void StagedFolder::check(const std::string& path, const Options& options, const std::string& plan, i64 bytes,
                         i64 files) {
  const std::string whole = trimmed(path);
  refuse_unless_replaceable(whole, options, plan);
  if (is_published(whole, plan)) return;
  check_left(whole, options, plan);
  // An interrupted run has already reserved the space.
  if (!is_of_plan(staging_path(whole), plan)) check_room(path, bytes, files);
}

StagedFolder::StagedFolder(std::string path, Options options, std::string plan)
    : path_(trimmed(std::move(path))),
      parent_(parent_folder(path_)),
      staging_(staging_path(path_)),
      old_(old_path(path_)),
      plan_(std::move(plan)),
      options_(std::move(options)) {
  std::string name = path_.substr(path_.rfind('/') + 1);
  if (name.empty() || name == "." || name == "..") fail("this is not the name of a folder", EISDIR);
  refuse_unless_replaceable(path_, options_, plan_);
  if (go_on_with_published()) return;
  if (int error = make_folders(parent_, options_.durable); error != 0)
    fail("cannot create the parent folder", error);
  for (const std::string& left : {staging_, old_}) refuse_mounts(left);
  refuse_foreign_staging({path_, staging_, old_});
  lock(staging_, true);
  try {
    for (const std::string& left : {staging_, old_}) refuse_mounts(left);
    settle_old();
    refuse_unless_replaceable(path_, options_, plan_);
    // A run of this plan has published since the first look, and takes its last steps.
    if (!options_.replace && is_published(path_, plan_))
      throw Error(Code::kOutputBusy, "another program is writing this folder").file(path_);
    resumes_ = begin_plan();
    refuse_lower_layer();
  } catch (...) {
    ::rmdir(staging_.c_str());  // if nothing is begun in it
    let_go();
    throw;
  }
}

StagedFolder::~StagedFolder() {
  if (fd_ >= 0) let_go();
}

// Closes the folder, and with it gives the lock up.
void StagedFolder::let_go() {
  // The error that ended the work says more than one of the removal.
  if (!options_.resumable && !published_) remove_tree(staging_, is_other_mount, kPlanMark);
  ::close(std::exchange(fd_, -1));
}

std::string StagedFolder::staging_path(const std::string& path) {
  return hidden_beside(path, kStagingSuffix);
}

bool StagedFolder::is_begun(const std::string& path) {
  // No plan is "": whatever was begun is another one.
  return is_of_other_plan(staging_path(path), "") || is_of_other_plan(trimmed(path), "");
}

std::string StagedFolder::log_path(const std::string& folder) { return cat(folder, "/", kDoneMark); }

int StagedFolder::give_up() {
  if (published_ || fd_ < 0) return 0;
  return mark_given_up(staging_);
}

bool StagedFolder::go_on_with_published() {
  if (!is_published(path_, plan_)) return false;
  lock(path_, false);
  if (!is_published(path_, plan_)) {  // its own run has taken the last steps meanwhile
    ::close(std::exchange(fd_, -1));
    refuse_unless_replaceable(path_, options_, plan_);
    return false;
  }
  staging_ = path_;
  return resumes_ = published_ = true;
}

void StagedFolder::lock(const std::string& folder, bool make) {
  if (int error = HostLock::is_needed(path_) ? hosts_.take(path_) : 0; error == EWOULDBLOCK)
    throw Error(Code::kOutputBusy, "another program is writing this folder").file(path_);
  else if (error != 0)
    fail("cannot lock the output for this host", error);
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
    if (leads_to(fd_, folder)) {
      trust_folder(folder);
      return;
    }
    ::close(std::exchange(fd_, -1));
  }
  throw Error(Code::kOutputBusy, "other programs keep writing this folder").file(path_);
}

void StagedFolder::trust_folder(const std::string& folder) {
  try {
    refuse_of_others(fd_, folder);
    // Another run may have put the folder that it replaces under this name since it was looked at, or have
    // used the folder that was made here.
    if (folder == staging_) refuse_foreign_staging({path_, staging_, old_});
  } catch (...) {
    ::close(std::exchange(fd_, -1));
    throw;
  }
}

// After a run that was killed between its two renames or after them: puts the old folder back if no folder
// has its name, otherwise removes it.
void StagedFolder::settle_old() const {
  if (!is_there(old_)) return;
  if (is_there(path_)) {
    if (RemovalFault fault = remove_tree(old_); fault.error != 0)
      fail("removing a folder that was replaced earlier failed", fault_text(fault));
  } else if (::rename(old_.c_str(), path_.c_str()) != 0) {
    fail("putting the old folder back failed", errno);
  }
}

// Removes what an interrupted run left with which nobody goes on. A run that is killed here leaves a folder
// that is marked so.
void StagedFolder::empty_folder() const {
  if (has_mark(staging_))
    if (int error = mark_given_up(staging_); error != 0)
      fail("cannot remove the unfinished output of an interrupted run", error);
  if (RemovalFault fault = empty_tree(staging_, is_other_mount, kPlanMark); fault.error != 0)
    fail("cannot remove the unfinished output of an interrupted run", fault_text(fault));
}

// The interrupted run was of the same plan: its log is trusted as far as the disk is, and this run may
// replace more than that one. From here on files are written: what was complete is not, until it is again.
void StagedFolder::go_on() const {
  int error =
      says_complete(read_mark(staging_, kPlanMark)) ? mark_begun(staging_, plan_, options_.durable) : 0;
  if (error == 0) error = drop_lost_log(staging_);
  if (error == 0 && !options_.durable) error = note_boot(staging_);
  if (error != 0) fail("cannot go on with the unfinished output of an interrupted run", error);
}

// True if the folder contains an interrupted run of the same plan; otherwise empties it.
bool StagedFolder::begin_plan() {
  if (is_of_plan(staging_, plan_)) {
    go_on();
    return true;
  }
  if (!options_.replace && is_of_other_plan(staging_, plan_))
    refuse_other_plan(staging_, plan_, {.resumes = options_.resume, .anew = options_.anew});
  began_anew_ = !read_mark(staging_, kPlanMark).empty();
  empty_folder();
  std::string replaced = options_.replace ? folder_identity(path_) : "";
  int error = replaced.empty() ? 0 : write_mark(staging_, kReplacesMark, replaced, options_.durable);
  if (error == 0 && !options_.durable) error = note_boot(staging_);
  // .plan last: a folder with .plan can be gone on with.
  if (error == 0) error = write_mark(staging_, kPlanMark, plan_, options_.durable);
  if (error != 0) fail("cannot write the plan of the output", error);
  return false;
}

// The hidden folder has its marks, so that nothing can take its name. A folder that is not begun yet does not
// stay.
void StagedFolder::refuse_lower_layer() {
  if (!is_there(path_) || !is_of_lower_layer(path_, staging_)) return;
  if (!resumes_) {
    give_up();
    remove_tree(staging_);
  }
  throw Error(Code::kOutputExists, std::string(kLowerLayer)).file(path_).help(help_of_lower_layer(path_));
}

void StagedFolder::fail_rename(const char* what, int error) const {
  if (error != EXDEV) fail(what, error);
  throw Error(Code::kWriteFailed, cat(what, ": ", kLowerLayer))
      .file(path_)
      .help(cat(help_of_lower_layer(path_), "; then repeat the command, which goes on where it stopped"));
}

void StagedFolder::fail(const char* what, int error) const { fail(what, errno_text(error)); }

void StagedFolder::fail(const char* what, const std::string& why) const {
  throw Error(Code::kWriteFailed, cat(what, ": ", why)).file(path_);
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
  refuse_unless_replaceable(path_, options_, plan_);
  if (!is_there(path_)) {
    // Not every file system can rename without replacing; a plain rename replaces at most an empty folder.
    if (error != EINVAL && error != ENOSYS) fail("publishing the folder failed", error);
    if (::rename(staging_.c_str(), path_.c_str()) != 0) fail("publishing the folder failed", errno);
    return;
  }
  note_replaced();
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) return;
  if (errno != EINVAL && errno != ENOSYS) fail_rename("publishing the folder failed", errno);
  if (::rename(path_.c_str(), old_.c_str()) != 0) fail_rename("putting the old folder aside failed", errno);
  if (::rename(staging_.c_str(), path_.c_str()) != 0) {
    error = errno;
    ::rename(old_.c_str(), path_.c_str());
    fail("publishing the folder failed", error);
  }
}

// The folder itself, whatever its name: another run may replace it as soon as it has the name of the result.
std::string StagedFolder::own_folder() const {
  std::string by_descriptor = cat("/proc/self/fd/", fd_);
  return leads_to(fd_, path_) || !is_there(by_descriptor) ? path_ : by_descriptor;
}

// The replaced folder has one of two hidden names now. It is recognised by its identity, because another run
// may have made a folder of its own under the first name meanwhile, or may work in the replaced one. A run
// that only looks at it, or takes its last steps there, is waited for.
void StagedFolder::remove_replaced() const {
  std::string replaced = read_mark(own_folder(), kReplacesMark);
  if (replaced.empty()) return;
  for (const std::string& left : {staging_path(path_), old_}) {
    if (folder_identity(left) != replaced) continue;
    int fd = retried([&] { return ::open(left.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW); });
    if (fd < 0) continue;
    RemovalFault fault;
    int locked = -1, failed = EWOULDBLOCK;
    for (int attempt = 0; attempt < kMostWaits && folder_identity(left) == replaced; attempt++) {
      locked = retried([&] { return ::flock(fd, LOCK_EX | LOCK_NB); });
      failed = locked == 0 ? 0 : errno;
      const std::string mark = read_mark(left, kPlanMark);
      const bool is_used_again = !mark.empty() && !says_complete(mark);
      if (locked == 0 || failed != EWOULDBLOCK || is_used_again) break;
      std::this_thread::sleep_for(kWait);
    }
    if (locked != 0)
      fault.error = failed == EWOULDBLOCK ? 0 : failed;
    else if (leads_to(fd, left))
      fault = remove_tree(left);
    ::close(fd);
    if (fault.error != 0) fail("removing the replaced folder failed", fault_text(fault));
  }
}

void StagedFolder::conclude(const std::function<void()>& last_step) const {
  if (int error = options_.durable ? sync_folder(parent_) : 0; error != 0)
    fail("making the folder's name durable failed", error);
  if (last_step) last_step();
  remove_replaced();
  if (int error = remove_marks(own_folder()); error != 0)
    fail("removing the marker files in the folder failed", error);
}

// All files are durable now, also where an earlier run wrote without fsync.
void StagedFolder::mark_published() const {
  int error = 0;
  if (options_.durable && ::unlinkat(fd_, std::string(kBootMark).c_str(), 0) != 0 && errno != ENOENT)
    error = errno;
  if (error == 0) error = mark_complete(staging_, plan_, options_.durable);
  if (error == 0 && options_.durable) error = sync_folder(staging_);
  if (error != 0) fail("noting that the folder is complete failed", error);
}

void StagedFolder::publish(const std::function<void()>& last_step) {
  if (!published_) {
    if (int error = options_.durable ? sync_folders(staging_) : 0; error != 0)
      fail("making the folder durable failed", error);
    mark_published();
    if (options_.durable) end_transaction(staging_);
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
