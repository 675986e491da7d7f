// Reads and judges the marks of an unfinished folder (io/output/staging_marks.h).
#include "io/output/unfinished.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/error.h"
#include "io/file/retried.h"
#include "io/output/plan_identity.h"
#include "io/output/staging_marks.h"

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

}  // namespace

bool is_of_plan(const std::string& folder, const std::string& plan) {
  return !plan.empty() && plan != kNotResumed && read_mark(folder, kPlanMark) == plan;
}

bool is_of_other_plan(const std::string& folder, const std::string& plan) {
  std::string begun = read_mark(folder, kPlanMark);
  return !begun.empty() && begun != kNotResumed && begun != plan;
}

void refuse_other_plan(const std::string& staging, const std::string& plan, Choices choices) {
  std::vector<std::string> differ;
  if (!plan.empty() && plan != kNotResumed) differ = plan_differences(read_mark(staging, kPlanMark), plan);
  throw Error(Code::kOtherPlan,
              "an interrupted run left an unfinished output of this name, which it began with other options, "
              "from another source or by another version")
      .file(staging)
      .each_note(differ)
      .help(cat("to go on with it, repeat the first command",
                choices.resumes ? ": `resume` needs the same options and the same source"
                                : " with the same options and the same source",
                "; to throw it away and begin anew, ", choices.anew));
}

// Errors of the input end with a status of their own. Some of these have nothing to do with the source.
bool can_go_on_after(const Error& error) {
  if (code_info(error.code()).exit != Exit::kInput) return true;
  switch (error.code()) {
    case Code::kOutOfMemory:
    case Code::kRanksFailed:
      return true;
    case Code::kReadFailed:  // with a number or a help the file is not what it was
      return error.expected().empty() && error.help().empty();
    default:
      return false;
  }
}

int note_boot(const std::string& folder) {
  if (!read_mark(folder, kBootMark).empty()) return 0;
  return write_mark(folder, kBootMark, cat(boot_id(), "\n"), false);
}

int drop_lost_log(const std::string& folder) {
  std::string begun = read_mark(folder, kBootMark), now = boot_id();
  if (begun.empty() || (!now.empty() && begun == cat(now, "\n"))) return 0;
  for (std::string_view name : {kDoneMark, kBootMark})
    if (::unlink(cat(folder, "/", name).c_str()) != 0 && errno != ENOENT) return errno;
  return 0;
}

}  // namespace mckpt::impl
