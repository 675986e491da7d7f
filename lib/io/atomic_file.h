// A file that appears under its name only when it is whole. It is written beside its place, under a hidden
// name that a later run takes over when this one dies, made durable, and renamed; what was there before stays
// until then.
//
//   DIR/.NAME.mckpt-tmp   -- write, fsync, rename, fsync of DIR -->   DIR/NAME
#pragma once

#include <span>
#include <string>

#include "core/int.h"

namespace mckpt {

class AtomicFile {
 public:
  struct Options {
    bool durable = true;   // false: no fsync; for scratch
    bool replace = false;  // a file that is there may be replaced
  };
  // Throws kOutputExists, kOutputBusy when another program writes the same file, kWriteFailed.
  AtomicFile(std::string path, Options options);
  // Removes what was written unless commit() was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Takes the space of the whole file, so that a full disk shows before anything is written.
  void reserve(i64 bytes);
  void write(i64 offset, std::span<const u8> bytes);
  // Publishes the file. Throws kWriteFailed; then nothing has changed under the name.
  void commit();

 private:
  void open_temporary();
  void check_clobber() const;
  [[noreturn]] void fail(const char* what, int error, i64 offset = -1) const;

  std::string path_, folder_, temporary_;
  Options options_;
  int fd_ = -1;
  i64 bytes_ = 0;  // reserved
};

}  // namespace mckpt
