// Decides whether --resume can continue after an error, and says so in the help of the error.
#include "tools/run/resume_help.h"

#include <unistd.h>

#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "io/output/staged_folder.h"

namespace mckpt::impl {
namespace {

struct Staged {
  std::string path;
  bool overwrite;
  bool published = false;
};

std::mutex mutex;  // the thread that watches other ranks tells their errors
std::optional<Staged> staged;

// Nothing is wrong with the source: a signal, a disk, memory, another rank, or a read that the system
// refused.
bool may_pass(const Error& e) {
  switch (e.code()) {
    case Code::kInterrupted:
    case Code::kWriteFailed:
    case Code::kOutOfMemory:
    case Code::kRanksFailed:
      return true;
    case Code::kReadFailed:  // with a number or a help the file is not what it was
      return e.expected().empty() && e.help().empty();
    default:
      return false;
  }
}

}  // namespace

void note_staged_output(const std::string& path, bool overwrite) {
  std::lock_guard lock(mutex);
  staged = {path, overwrite};
}

void note_published_output() {
  std::lock_guard lock(mutex);
  if (staged) staged->published = true;
}

void add_resume_help(Error& error) {
  std::lock_guard lock(mutex);
  if (staged && staged->published && error.message().find("is published") == std::string::npos)
    error.note(cat("the result is published as ", escaped(staged->path, 4096)));
  if (!staged || !StagedFolder::is_begun(staged->path)) return;
  if (!may_pass(error)) {
    std::string left = StagedFolder::staging_path(staged->path);
    if (::access(left.c_str(), F_OK) == 0)
      error.note(cat("the unfinished output is in ", escaped(left, 4096),
                     "; the next run of the command removes it"));
    return;
  }
  error.help(cat(error.help(), error.help().empty() ? "" : "; ", "repeat the command with --resume",
                 staged->overwrite ? " in place of --overwrite" : "", " to continue where it stopped"));
}

}  // namespace mckpt::impl
