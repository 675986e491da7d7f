// A file that appears under its name only when it is whole. It is written in a hidden folder beside its
// place, which a later run takes over when this one is killed, made durable, and renamed; what was there
// before stays until then.
//
//   DIR/.NAME.mckpt-tmp/NAME   -- write, fsync, rename, fsync of DIR -->   DIR/NAME
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class OutputFiles;

class StagedFile {
 public:
  struct Options {
    bool durable = true;   // false: no fsync; for scratch
    bool replace = false;  // a file that is there may be replaced
    // How long another program that writes the same file is waited for.
    std::chrono::milliseconds wait{0};
  };

  // What can be known before anything is written. Throws kOutputExists, and kNoRoom when the file system has
  // fewer bytes free.
  static void check(const std::string& path, Options options, i64 bytes);

  // Makes the folder. Throws kOutputExists, kOutputBusy when another program writes the same file,
  // kWriteFailed.
  StagedFile(std::string path, Options options);
  // Removes what was written unless publish() was called.
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // Where the file is to be made, and under which name: an empty folder that no one else writes to.
  const std::string& folder() const { return staging_; }
  const std::string& name() const { return name_; }

  // pre: `files` is name() in folder(), written. Throws kWriteFailed; then nothing has changed under the
  // name, unless the message says that the result is published.
  void publish(OutputFiles& files);

 private:
  void open_staging();
  bool lock() const;
  void remove_staging();
  void rename_into_place() const;
  [[noreturn]] void fail(std::string_view what, int error) const;

  std::string path_, folder_, name_, staging_;
  Options options_;
  int fd_ = -1;  // of the staging folder, locked
};

}  // namespace mckpt::impl
