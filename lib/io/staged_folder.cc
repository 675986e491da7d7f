#include "io/staged_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "io/file.h"
#include "io/place.h"

namespace mckpt {
namespace {

constexpr const char* kPlanName = ".plan";
constexpr const char* kLogName = ".done";

// What --overwrite may replace is empty or a checkpoint: nobody loses a home folder to a slip of the finger.
void refuse_foreign(const std::string& path) {
  bool empty = true;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    std::string name = entry.path().filename();
    if (name == ".metadata" || name == "config.json" || name.ends_with(".safetensors") ||
        name.ends_with(".distcp"))
      return;
    empty = false;
  }
  if (empty) return;
  throw Error(Code::kOutputExists, "the folder that would be replaced is no checkpoint")
      .file(path)
      .expected("an empty folder, or one with .metadata, config.json or safetensors files")
      .help("choose another name, or remove the folder first");
}

void check_folder(const std::string& path, const StagedFolder::Options& options) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0) return;
  bool folder = S_ISDIR(st.st_mode);
  if (folder && options.replace) return refuse_foreign(path);
  throw Error(Code::kOutputExists, folder ? "the output folder is already there"
                                          : "something other than a folder has the name of the output")
      .file(path)
      .help(folder ? cat("choose another name, or ", options.instead) : "choose another name");
}

void remove_all(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

void StagedFolder::check(const std::string& path, Options options, i64 bytes, i64 files) {
  check_folder(path, options);
  // What an interrupted run has reserved is there already.
  if (!options.resume) check_room(path, bytes, files);
}

StagedFolder::StagedFolder(std::string path, Options options, std::string plan)
    : path_(std::move(path)), options_(options) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  parent_ = parent_folder(path_);
  name_ = path_.substr(path_.rfind('/') + 1);
  if (name_.empty() || name_ == "." || name_ == "..") fail("this is not the name of a folder", EISDIR);
  staging_ = staging_path(path_);
  check_folder(path_, options_);
  std::error_code made;
  std::filesystem::create_directories(parent_, made);
  if (made) fail("cannot create the folder above", made.value());
  open_staging();
  try {
    resumes_ = begin_plan(plan);
  } catch (...) {
    ::close(fd_);  // and with it the lock
    throw;
  }
}

StagedFolder::~StagedFolder() {
  if (fd_ >= 0) ::close(fd_);
}

std::string StagedFolder::staging_path(const std::string& path) {
  std::string_view name = path;
  while (name.size() > 1 && name.back() == '/') name.remove_suffix(1);
  std::string whole(name);
  return cat(parent_folder(whole), "/.", name.substr(name.rfind('/') + 1), ".mckpt-tmp");
}

bool StagedFolder::is_begun(const std::string& path) {
  return ::access(cat(staging_path(path), "/", kPlanName).c_str(), F_OK) == 0;
}

std::string StagedFolder::log_path(const std::string& folder) { return cat(folder, "/", kLogName); }

bool StagedFolder::is_own(std::string_view name) { return name == kPlanName || name == kLogName; }

void StagedFolder::open_staging() {
  for (int attempt = 0; attempt < 10; attempt++) {
    if (::mkdir(staging_.c_str(), 0777) != 0 && errno != EEXIST) fail("cannot create the folder", errno);
    fd_ = ::open(staging_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd_ < 0 && errno == ENOENT) continue;  // its owner has just published it
    if (fd_ < 0) fail("cannot use the folder in which the output is to be made", errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      int error = errno;
      ::close(std::exchange(fd_, -1));
      if (error != EWOULDBLOCK) fail("cannot lock the folder in which the output is to be made", error);
      throw Error(Code::kOutputBusy, "another program is writing this folder").file(path_);
    }
    if (leads_to(fd_, staging_)) return;
    ::close(std::exchange(fd_, -1));
  }
  throw Error(Code::kOutputBusy, "other programs keep writing this folder").file(path_);
}

// Whether there is something to go on with. What was begun and is not wanted is thrown away.
bool StagedFolder::begin_plan(const std::string& plan) {
  std::string file = cat(staging_, "/", kPlanName), begun;
  if (std::FILE* f = std::fopen(file.c_str(), "re")) {
    char buffer[4096];
    begun.assign(buffer, std::fread(buffer, 1, sizeof buffer, f));
    std::fclose(f);
  }
  if (options_.resume && !begun.empty()) {
    if (begun == plan) return true;
    throw Error(Code::kOtherPlan,
                "what was begun here was begun with other options, another source or another version")
        .file(staging_)
        .expected(plan)
        .found(escaped(begun))
        .help("repeat the first command with --resume, or start anew with --overwrite");
  }
  for (const auto& entry : std::filesystem::directory_iterator(staging_)) remove_all(entry.path());
  std::FILE* f = std::fopen(file.c_str(), "wxe");
  if (!f) fail("cannot create a file in the folder", errno);
  bool written = std::fwrite(plan.data(), 1, plan.size(), f) == plan.size() && std::fflush(f) == 0;
  int error = errno;
  std::fclose(f);
  if (!written) fail("cannot write the plan of the output", error);
  return false;
}

void StagedFolder::fail(const char* what, int error) const {
  throw Error(Code::kWriteFailed, cat(what, ": ", errno_text(error))).file(path_);
}

void StagedFolder::rename_into_place() const {
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0) return;
  int error = errno;
  check_folder(path_, options_);
  struct stat st;
  if (::lstat(path_.c_str(), &st) != 0) {
    // Not every file system can rename without replacing; a folder that is not empty is not replaced anyway.
    if (error != EINVAL && error != ENOSYS) fail("publishing the folder failed", error);
    if (::rename(staging_.c_str(), path_.c_str()) != 0) fail("publishing the folder failed", errno);
    return;
  }
  if (::renameat2(AT_FDCWD, staging_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0)
    return remove_all(staging_);  // what is called so now is the old one
  std::string old = cat(parent_, "/.", name_, ".mckpt-old");
  remove_all(old);
  if (::rename(path_.c_str(), old.c_str()) != 0) fail("putting the old folder aside failed", errno);
  if (::rename(staging_.c_str(), path_.c_str()) != 0) {
    error = errno;
    ::rename(old.c_str(), path_.c_str());
    fail("publishing the folder failed", error);
  }
  remove_all(old);
}

void StagedFolder::publish() {
  for (const char* own : {kLogName, kPlanName}) ::unlinkat(fd_, own, 0);
  if (options_.durable && ::fsync(fd_) != 0) fail("making the folder durable failed", errno);
  rename_into_place();
  if (int error = options_.durable ? sync_folder(parent_) : 0; error != 0)
    fail("making the folder's name durable failed", error);
}

}  // namespace mckpt
