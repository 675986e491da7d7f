// SourceStamps: checks that the files a command reads do not change until it has read the last of them.
//
//   SourceStamps stamps;         every file that is opened or asked for its size from here on is noted
//   ... open, read ...
//   check_sources_unchanged();   before anything is published or answered
//
// The stamp of a file is taken when its path is first looked at, before anything of it is read. Every later
// look compares, and the check at the end looks at all paths again: so a file that was replaced under its
// name is noticed as well as one that was written to. The time of the last change (ctime) is part of a stamp,
// because programs set the time of the last write (mtime) as they like.
//
// A file system counts times in ticks. A file that was changed within the tick of its first look is not read
// before the tick is over, so that any later change gives another time. Not seen are: changes that the file
// system records no time of (through a shared mapping, until the kernel writes them back; on the disk below
// the file system), those at which the clock was set back to the very time, and those by another host whose
// file server answers from an old state.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/int.h"

namespace mckpt::impl {

class Error;

struct FileStamp {
  u64 device = 0, inode = 0;
  i64 bytes = 0, modified_ns = 0, changed_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

class SourceStamps {
 public:
  SourceStamps();
  ~SourceStamps();
  SourceStamps(const SourceStamps&) = delete;
  SourceStamps& operator=(const SourceStamps&) = delete;

  // Thread-safe. The stamp of the open file that the path leads to. Throws kReadFailed when it is not that of
  // the first look.
  FileStamp look(int fd, const std::string& path);

  // Of the files that are not what they were, the first in the order of their paths; "" where there is none.
  std::string first_changed() const;
  // Throws kReadFailed with that file.
  void check_unchanged() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, FileStamp> stamps_;
  SourceStamps* before_;
};

// What those who open files call: look() of the last SourceStamps that was made and is still there, or the
// stamp alone where there is none. pre: fd is open.
FileStamp look_at_source(int fd, const std::string& path);

// The stamp of an open file; `path` is for messages. Throws kReadFailed.
FileStamp stamp_of_open(int fd, const std::string& path);

// kReadFailed of a file that is not what it was.
Error source_changed(const std::string& path);

// Its check; nothing where there is none. To be called when all was read. Throws kReadFailed.
void check_sources_unchanged();

}  // namespace mckpt::impl
