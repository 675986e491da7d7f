// StagedFile: a file that appears under its name only when it is complete. It is written in a hidden folder
// beside its place, made durable, and renamed; an existing file of the name stays until the rename.
//
//   DIR/.NAME.mckpt-tmp/NAME   -- write, fsync, rename, fsync of DIR -->   DIR/NAME
//
// The hidden folder is locked (flock) while it is in use: of two programs that write the same file, the
// second is refused (kOutputBusy) or waits. A killed program loses its lock, so the next one takes the folder
// over and removes what it contains; one that belongs to others is removed, or refused. Unlike a
// StagedFolder, a StagedFile does not resume.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "io/output/host_lock.h"

namespace mckpt::impl {

class OutputFiles;

// One file that is being made; owns the lock and the hidden folder. For one thread.
class StagedFile {
 public:
  struct Options {
    bool durable = true;        // false: no fsync; for scratch
    bool replace = false;       // an existing file may be replaced
    bool make_folders = false;  // those above the file that do not exist yet
    // How long to wait for another program that writes the same file.
    std::chrono::milliseconds wait{0};
  };

  // Refuses what can be refused before anything is written. Throws kOutputExists, kNoRoom if there is no room
  // for `bytes` bytes, and kWriteFailed if the path does not end in a name.
  static void check(const std::string& path, Options options, i64 bytes);

  // The hidden folder in which the file of that path is made, and its name there.
  static std::string staging_path(const std::string& path);
  static std::string staged_name(const std::string& path);

  // Makes and locks the hidden folder. Throws kOutputExists, kOutputBusy if another program writes the same
  // file, kWriteFailed.
  StagedFile(std::string path, Options options);
  // Removes what was written unless publish() was called.
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Where to write the file, and its name there: an empty folder that no other program writes to.
  const std::string& folder() const { return staging_; }
  const std::string& name() const { return name_; }

  // Makes the file durable, gives it its name and removes the hidden folder. pre: `files` is name() in
  // folder(), completely written. Throws kWriteFailed, kOutputExists; then nothing has changed under the
  // name, unless the message says that the result is published.
  void publish(OutputFiles& files);

 private:
  void open_staging();
  bool lock();
  int try_lock();
  bool may_use_staging();
  void remove_staging();
  void rename_into_place() const;
  [[noreturn]] void fail(std::string_view what, int error) const;

  std::string path_, folder_, name_, staging_;
  Options options_;
  int fd_ = -1;     // of the staging folder, locked
  HostLock hosts_;  // where other hosts do not see that lock
};

}  // namespace mckpt::impl
