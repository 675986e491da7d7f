// Reads and judges the marks of an unfinished folder (io/output/staging_marks.h).
#include "io/output/unfinished.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/file/retried.h"
#include "io/output/plan_identity.h"
#include "io/output/published.h"
#include "io/output/staging_marks.h"
#include "runtime/system/folder_names.h"

namespace mckpt::impl {
namespace {

// A text that the system makes new at each start, in one line; "" where it does not say.
std::string boot_id() {
  char text[64];
  int fd = retried([] { return ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return "";
  ssize_t n = retried([&] { return ::read(fd, text, sizeof text); });
  ::close(fd);
  std::string id(text, static_cast<std::size_t>(n < 0 ? 0 : n));
  return id.substr(0, id.find('\n'));
}

// Whether anything but folders is in the folder. A folder that cannot be listed is reported where it is
// opened.
bool has_files(const std::string& folder) {
  bool found = false;
  walk_folder(folder, [&](const std::string&, EntryKind kind) {
    found = kind != EntryKind::kFolder;
    return !found;
  });
  return found;
}

}  // namespace

bool is_of_plan(const std::string& folder, const std::string& plan) {
  return !plan.empty() && plan != kNotResumed && plan_of(read_mark(folder, kPlanMark)) == plan;
}

bool is_of_other_plan(const std::string& folder, const std::string& plan) {
  const std::string text = read_mark(folder, kPlanMark);
  const std::string_view begun = plan_of(text);
  return !begun.empty() && begun != kNotResumed && begun != plan;
}

void refuse_other_plan(const std::string& staging, const std::string& plan, Choices choices) {
  const std::string text = read_mark(staging, kPlanMark);
  const std::string_view begun = plan_of(text);
  std::vector<std::string> differ;
  if (!plan.empty() && plan != kNotResumed) differ = plan_differences(begun, plan);
  if (!differ.empty() && only_times_differ(begun, plan))
    throw Error(
        Code::kOtherPlan,
        "an interrupted run left an unfinished output of this name, and only the time of the last change (ctime) of its source's files is another one: chmod, chown, a link or a new name changes it, and so does another file in their place")
        .file(staging)
        .each_note(differ)
        .help(cat(
            "nobody can set that time back, so the unfinished output is not gone on with: to throw it away and "
            "begin anew, ",
            choices.anew));
  throw Error(
      Code::kOtherPlan,
      "an interrupted run left an unfinished output of this name, which it began with other options, from another source or by another version")
      .file(staging)
      .each_note(differ)
      .help(cat("to go on with it, repeat the first command",
                choices.resumes ? ": `resume` needs the same options and the same source"
                                : " with the same options and the same source",
                "; to throw it away and begin anew, ", choices.anew));
}

int mark_given_up(const std::string& folder) {
  if (replace_plan(folder, kNotResumed, false) == 0) return 0;
  // On a full disk: an empty mark is of no plan either. No other name of the file loses its content.
  const std::string path = cat(folder, "/", kPlanMark);
  struct stat st;
  const bool own = ::lstat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
  if (own && ::truncate(path.c_str(), 0) == 0) return 0;
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? 0 : errno;
}

void refuse_foreign_staging(const StagedNames& names) {
  auto refuse = [](const std::string& path, const char* what) {
    throw Error(Code::kOutputExists, what)
        .file(path)
        .help("move it away, or choose another name for the result");
  };
  auto was_replaced = [&](const std::string& folder) {
    const std::string identity = folder_identity(folder);
    return !identity.empty() && (identity == read_mark(names.path, kReplacesMark) ||
                                 identity == read_mark(names.staging, kReplacesMark));
  };
  struct stat st;
  if (::lstat(names.staging.c_str(), &st) == 0) {
    if (!S_ISDIR(st.st_mode))
      refuse(names.staging, "the result is made in a hidden folder, whose name a file or a link has");
    const std::string identity = folder_identity(names.staging);
    const bool own = !has_files(names.staging) || has_mark(names.staging) || was_replaced(names.staging);
    // Another program may just have given it the name of its result.
    if (!own && folder_identity(names.staging) == identity)
      refuse(names.staging,
             "the result is made in a hidden folder, and one of its name is here that mckpt did not make");
  }
  const bool both = ::lstat(names.old.c_str(), &st) == 0 && ::lstat(names.path.c_str(), &st) == 0;
  if (both && !was_replaced(names.old))
    refuse(names.old,
           "what a result replaces gets a hidden name, and something that mckpt did not make has it");
}

// Errors of the input end with a status of their own. Some of these have nothing to do with the source.
bool can_go_on_after(const Error& error) {
  if (code_info(error.code()).exit != Exit::kInput) return true;
  switch (error.code()) {
    case Code::kOutOfMemory:
    case Code::kRanksFailed:
      return true;
    case Code::kReadFailed:  // otherwise the file is not what it was, or nobody may read it
      return error.is_of_the_moment();
    default:
      return false;
  }
}

int note_boot(const std::string& folder) {
  if (!read_mark(folder, kBootMark).empty()) return 0;
  return write_mark(folder, kBootMark, cat(boot_id(), "\n"), false);
}

bool is_of_another_start(const std::string& folder) {
  const std::string begun = read_mark(folder, kBootMark), now = boot_id();
  return !begun.empty() && (now.empty() || begun != cat(now, "\n"));
}

int drop_lost_log(const std::string& folder) {
  if (!is_of_another_start(folder)) return 0;
  for (std::string_view name : {kDoneMark, kBootMark})
    if (::unlink(cat(folder, "/", name).c_str()) != 0 && errno != ENOENT) return errno;
  return 0;
}

}  // namespace mckpt::impl
