// Says in the help of an error whether the command, repeated, goes on where it stopped.
#include "tools/run/resume_help.h"

#include <unistd.h>

#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "io/output/staged_folder.h"
#include "io/output/unfinished.h"

namespace mckpt::impl {
namespace {

struct Staged {
  std::string path;
  bool published = false;
};

std::mutex mutex;  // the thread that watches other ranks tells their errors
std::optional<Staged> staged;

// The command may be repeated as it is: a signal, a disk, memory, another rank, or a read that the system
// refused. Not so where a name is taken, or values became infinite.
bool may_pass(const Error& e) { return can_go_on_after(e) && code_info(e.code()).exit != Exit::kRefused; }

}  // namespace

void note_staged_output(const std::string& path) {
  std::lock_guard lock(mutex);
  staged = {path};
}

void note_published_output() {
  std::lock_guard lock(mutex);
  if (staged) staged->published = true;
}

void add_resume_help(Error& error) {
  std::lock_guard lock(mutex);
  if (staged && staged->published && error.message().find("is published") == std::string::npos)
    error.note(cat("the result is published as ", escaped(staged->path, 4096)));
  if (!staged) return;
  const bool begun = StagedFolder::is_begun(staged->path);
  if (begun && may_pass(error)) {
    error.help(cat(error.help(), error.help().empty() ? "" : "; ",
                   "repeat the command to continue where it stopped"));
    return;
  }
  std::string left = StagedFolder::staging_path(staged->path);
  if (::access(left.c_str(), F_OK) == 0)
    error.note(cat("the unfinished output is in ", escaped(left, 4096), "; ",
                   begun ? "the same command goes on with it" : "the next run of the command removes it"));
}

}  // namespace mckpt::impl
