// SourceStamps: checks that the files a command reads do not change until it has read the last of them.
//
//   auto stamps = std::make_shared<SourceStamps>();
//   open_store(path, {.stamps = stamps});     every file that is opened or asked for its size is noted
//   ... read ...
//   stamps->check_unchanged();                before anything is published or answered
//
// The stamp of a file is taken when its path is first looked at, before anything of it is read. Every later
// look compares, and the check at the end looks at all paths again. So both a file that was written to and a
// file that was replaced under its name are noticed. The time of the last change (ctime) is part of a stamp,
// because programs set the time of the last write (mtime) as they like.
//
// A file system counts times in ticks. A file that was changed within the tick of its first look is not read
// before the tick is over, so that any later change gives another time. Four kinds of change are not seen:
// writes through a shared mapping that the kernel has not written back yet; writes to the disk below the file
// system; changes at which the clock was set back to exactly the stamp's time; and changes by another host
// whose file server answers from an old state.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;

// The look of a file at one moment. Two equal stamps: as far as the file system tells, nothing changed.
struct FileStamp {
  u64 device = 0, inode = 0;
  i64 bytes = 0, modified_ns = 0, changed_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// The stamps of all sources of a command. Every InputFile and every Folder that is opened with OpenOptions
// that have them calls look().
class SourceStamps {
 public:
  SourceStamps() = default;
  SourceStamps(const SourceStamps&) = delete;
  SourceStamps& operator=(const SourceStamps&) = delete;

  // The stamp of the open file that the path leads to. Thread-safe; the first look may sleep until a tick is
  // over. Throws kReadFailed if the stamp differs from the first look's.
  FileStamp look(int fd, const std::string& path);

  // The first changed file in the order of the paths; "" if no file changed.
  std::string first_changed() const;
  // Throws kReadFailed with the first changed file.
  void check_unchanged() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, FileStamp> stamps_;
};

// Throws kReadFailed if the open file has another stamp now; `path` is for messages. A file that was removed
// or replaced under its name has one, since the number of its names is among what a change time tells.
void check_stamp(int fd, const std::string& path, const FileStamp& before);

// The stamp of an open file; `path` is for messages. Throws kReadFailed.
FileStamp stamp_of_open(int fd, const std::string& path);

// The error (kReadFailed) about a file that changed.
Error source_changed(const std::string& path);

}  // namespace mckpt::impl
