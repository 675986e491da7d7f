// Bytes at offsets: what parsers, readers and copies read from. A parser takes a ByteSource and so runs on a
// file, on a part of one (the archive that is one chunk in a .distcp file) and on memory (tests, fuzzing).
//
//   InputFile     an open file          |
//   RangeSource   a part of any source  |  each is a ByteSource: size(), read(offset, to)
//   MemorySource  bytes of the caller   |
//
// A read gives all bytes that were asked for, or throws kReadFailed. Files are never read through a mapping:
// a file that shrinks while it is read gives an error, not a signal.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/file/open_options.h"
#include "io/file/source_stamps.h"

namespace mckpt::impl {

class Container;  // io/file/container.h

// A fixed number of bytes. Reads are thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  i64 size() const { return size_; }
  // Fills `to` with the bytes from `offset` on. Throws kReadFailed, also when the range passes the end.
  void read(i64 offset, std::span<u8> to) const;
  // read() for large blocks that are read once: bytes that are not in the page cache may be read from the
  // disk past the cache. pre: the offset and the address are multiples of kPage, and memory behind `to` up to
  // the next such multiple may be written too.
  static constexpr i64 kPage = 4096;
  void read_block(i64 offset, std::span<u8> to) const;
  // Returns the bytes in a new buffer, which is allocated only after the range was checked.
  std::vector<u8> read(i64 offset, i64 bytes) const;

 protected:
  explicit ByteSource(i64 size) : size_(size) {}
  ByteSource(const ByteSource&) = default;
  ByteSource& operator=(const ByteSource&) = default;

  i64 size_;

 private:
  // pre: the range is inside [0, size()).
  virtual void read_inside(i64 offset, std::span<u8> to) const = 0;
  virtual void read_block_inside(i64 offset, std::span<u8> to) const { read_inside(offset, to); }
  void check_range(i64 offset, i64 bytes) const;
};

// Bytes in memory, which the caller owns and keeps.
class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const u8> bytes)
      : ByteSource(static_cast<i64>(bytes.size())), bytes_(bytes) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override;
  std::span<const u8> bytes_;
};

// Throws kReadFailed if the part is not inside `whole`.
void check_inside(const ByteSource& whole, i64 offset, i64 bytes);

// A part of another source, which must outlive it. The constructor throws kReadFailed if the part is not
// inside.
class RangeSource final : public ByteSource {
 public:
  RangeSource(const ByteSource& whole, i64 offset, i64 bytes);

 private:
  void read_inside(i64 offset, std::span<u8> to) const override;
  const ByteSource& whole_;
  i64 offset_;
};

// An open regular file, read only; owns the descriptor. Movable.
class InputFile final : public ByteSource {
 public:
  // Opens a path that the user gave, or that Folder::inside() did; links are followed, and the path may lead
  // into a container. The stamps of `opening` note the file; without them nobody looks whether it changes, as
  // with a file of the result, which the program itself writes. Throws kNotFound, kNotAFile, kReadFailed.
  explicit InputFile(const std::string& path, const OpenOptions& opening = {});
  // A file in a container; `path` is for messages.
  InputFile(std::shared_ptr<const Container> container, i64 file, std::string path);
  // Takes over `fd`, which was opened O_NONBLOCK so that a pipe could not block; `path` is for messages.
  InputFile(int fd, std::string path, const OpenOptions& opening = {});
  ~InputFile() override;
  InputFile(InputFile&& from) noexcept;
  InputFile& operator=(InputFile&& from) noexcept;

  int fd() const { return fd_; }  // -1: a file in a container
  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }
  // Throws kReadFailed if the open file (a file in a container: one that has its bytes) is not as it was.
  void check_unchanged() const;
  // Throws kReadFailed: for a caller that finds other bytes in the file than before.
  [[noreturn]] void throw_changed() const;

 private:
  static InputFile opened(const std::string& path, const OpenOptions& opening);
  void read_inside(i64 offset, std::span<u8> to) const override;
  void read_block_inside(i64 offset, std::span<u8> to) const override;

  int fd_ = -1;
  std::shared_ptr<const Container> container_;  // whose file this is, by number; null: a file by itself
  i64 number_ = 0;
  std::string path_;
  FileStamp stamp_;
};

// The system's text of an errno, such as "No such file or directory".
std::string errno_text(int error);

// Throws kNotFound if the name leads nowhere, otherwise kReadFailed, with the path and the system's text.
[[noreturn]] void throw_open_failed(const std::string& path, int error);

}  // namespace mckpt::impl
