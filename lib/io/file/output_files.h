// OutputFiles: the files of a result while they are written. They are created in a folder that nobody reads
// yet, at their final size, and written at any offset by any thread. However many there are, only some are
// open at a time.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/file/copy_sink.h"

namespace mckpt::impl {

struct OutputFile {
  std::string name;  // relative to the folder
  i64 bytes = 0;
};

class OutputFiles final : public CopySink {
 public:
  static constexpr i64 kMostOpen = 256;

  // kReplace: what a file of the name has is gone.
  enum class Begin { kCreate, kGoOn, kReplace };
  // kDirect: what is aligned as the disk wants it goes there at once, past the page cache, which is what
  // makes durable writing fast; the rest, and all of it where the file system cannot do that, goes the usual
  // way.
  enum class How { kCached, kDirect };

  // Creates every file and reserves its space. pre: the folder exists and has none of the names; with kGoOn
  // it may have them, as an interrupted run left them. Throws kWriteFailed that says what was needed.
  OutputFiles(std::string folder, std::vector<OutputFile> files, Begin begin = Begin::kCreate,
              How how = How::kCached);
  ~OutputFiles() override;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Thread-safe. Throws kWriteFailed.
  void write(i32 file, i64 offset, std::span<const u8> bytes) override;
  // Makes what was written durable. A failure is final: nothing is tried twice.
  void sync();

  const std::vector<OutputFile>& files() const { return files_; }

 private:
  struct Open;
  std::shared_ptr<Open> open(i32 file);
  void write_cached(i32 file, const Open& opened, i64 offset, std::span<const u8> bytes);
  std::span<const u8> write_direct(const Open& opened, i64 offset, std::span<const u8> bytes);
  [[noreturn]] void fail(i32 file, const char* what, i64 offset, int error) const;

  std::string folder_;
  std::vector<OutputFile> files_;
  How how_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Open>> open_;  // by file; null: not open
  std::vector<i32> recent_;                  // the open ones, in the order of opening
};

}  // namespace mckpt::impl
