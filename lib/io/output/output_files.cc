// Creates the files of a result and writes into them: large aligned parts past the page cache, the rest
// through it in pieces of 64 KiB. A write of 2 MiB at offset 1,000, with How::kDirect:
//
//   1,000      4,096                          2,097,152    2,098,152
//   |-- cache --|-------- O_DIRECT, 511 pages -----|-- cache --|
//
// The address of the aligned part must be aligned as well; the copy engine lays out its arena for that
// (io/copy/worker.cc). Below 256 KiB, waiting for the disk costs more than the copy into the cache. A page
// that two writes may share goes through the cache in both of them: not every file system keeps a direct and
// a cached write of one page in step.
#include "io/output/output_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/file/retried.h"

namespace mckpt::impl {
namespace {

constexpr i64 kDirectUnit = 4096;        // offsets, sizes and addresses that every disk takes
constexpr i64 kLeastDirect = 256 << 10;  // below, waiting for the disk costs more than the cache
// The size of one write through the cache. For a larger one the file system looks for blocks of memory as
// large as the write, and the search costs more than the additional calls (docs/performance.md).
constexpr i64 kCachedPiece = 64 << 10;

}  // namespace

// The descriptors of an open file, closed with the last writer that uses them.
struct OutputFiles::Open {
  int fd, direct_fd;  // direct_fd -1: there is no direct way
  // The kernel lets one thread at a time write into a file through the cache. Threads that take turns at each
  // piece would all read at one time and all write at another; with turns at each stretch one writes while
  // the others read.
  mutable std::mutex turn;
  std::atomic<u64>& unclosed;
  const u64 file;
  Open(int descriptor, int direct, std::atomic<u64>& failures, i32 number)
      : fd(descriptor), direct_fd(direct), unclosed(failures), file(static_cast<u64>(number)) {}
  ~Open() {
    for (int descriptor : {fd, direct_fd})
      if (descriptor >= 0 && ::close(descriptor) != 0 && errno != EINTR)
        unclosed = file << 32 | static_cast<u64>(errno);
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

void OutputFiles::fail(i32 file, const char* what, i64 offset, int error) const {
  const OutputFile& f = files_[file];
  Error e(Code::kWriteFailed, cat(what, ": ", errno_text(error)));
  e.file(cat(folder_, "/", f.name));
  if (offset >= 0) e.offset(offset);
  i64 all = 0;
  for (const OutputFile& each : files_) all += each.bytes;
  if (error == ENOSPC || error == EDQUOT)
    e.note(cat(f.bytes > 0 ? cat("the file needs ", human_bytes(f.bytes), "; ") : "", "the result needs ",
               human_bytes(all)))
        .help("free some space, or write to another disk");
  throw e;
}

OutputFiles::OutputFiles(std::string folder, std::vector<OutputFile> files, Begin begin, How how)
    : folder_(std::move(folder)), files_(std::move(files)), how_(how), open_(files_.size()) {
  int how_begun = begin == Begin::kCreate ? O_EXCL : begin == Begin::kReplace ? O_TRUNC : 0;
  for (std::size_t i = 0; i < files_.size(); i++) {
    i32 file = static_cast<i32>(i);
    std::string path = cat(folder_, "/", files_[i].name);
    if (std::size_t slash = files_[i].name.rfind('/'); slash != files_[i].name.npos)
      if (std::string inner = cat(folder_, "/", files_[i].name.substr(0, slash));
          ::mkdir(inner.c_str(), 0777) != 0 && errno != EEXIST)
        fail(file, "cannot create the folder of the file", -1, errno);
    int fd = retried([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how_begun, 0666); });
    if (fd < 0) fail(file, "cannot create the file", -1, errno);
    Open made(fd, -1, unclosed_, file);
    // Writing into reserved space costs half as much again, but a full disk is found before anything is
    // written. On a file system that cannot reserve, the file gets its size alone.
    if (files_[i].bytes == 0) continue;
    i64 bytes = files_[i].bytes;
    int error = retried([&] { return ::fallocate(fd, 0, 0, bytes); }) == 0 ? 0 : errno;
    if (error == EOPNOTSUPP || error == ENOSYS)
      error = retried([&] { return ::ftruncate(fd, bytes); }) == 0 ? 0 : errno;
    if (error != 0) fail(file, "cannot reserve the space of the file", -1, error);
  }
}

OutputFiles::~OutputFiles() = default;

std::shared_ptr<OutputFiles::Open> OutputFiles::open(i32 file) {
  std::lock_guard lock(mutex_);
  auto& slot = open_[file];
  if (slot) return slot;
  if (static_cast<i64>(recent_.size()) >= kMostOpen) {
    open_[recent_.front()].reset();  // closed when its last writer is done
    recent_.erase(recent_.begin());
  }
  std::string path = cat(folder_, "/", files_[file].name);
  int fd = retried([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); });
  if (fd < 0) fail(file, "cannot open the file that is being written", -1, errno);
  int direct = -1;
  if (how_ == How::kDirect)
    direct = retried([&] { return ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC); });
  slot = std::make_shared<Open>(fd, direct, unclosed_, file);
  recent_.push_back(file);
  return slot;
}

void OutputFiles::write(i32 file, i64 offset, std::span<const u8> bytes) {
  std::shared_ptr<Open> opened = open(file);
  i64 head = (kDirectUnit - offset % kDirectUnit) % kDirectUnit;
  i64 middle = (std::ssize(bytes) - head) / kDirectUnit * kDirectUnit;
  bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data() + head) % kDirectUnit == 0;
  if (opened->direct_fd < 0 || middle < kLeastDirect || !aligned)
    return write_cached(file, *opened, offset, bytes);
  auto part = [&](i64 from, i64 n) {
    return bytes.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(n));
  };
  // The pages at both ends, which another write may share, go through the cache.
  std::span<const u8> rest = write_direct(*opened, offset + head, part(head, middle));
  write_cached(file, *opened, offset, part(0, head));
  i64 done = head + middle - std::ssize(rest);
  write_cached(file, *opened, offset + done, part(done, std::ssize(bytes) - done));
}

// Returns the end of `bytes` that could not be written past the cache.
std::span<const u8> OutputFiles::write_direct(const Open& opened, i64 offset, std::span<const u8> bytes) {
  while (!bytes.empty()) {
    ssize_t n = ::pwrite(opened.direct_fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    // The write through the cache reports what is wrong, if anything is.
    if (n <= 0 || n % kDirectUnit != 0) return bytes;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
  return bytes;
}

void OutputFiles::write_cached(i32 file, const Open& opened, i64 offset, std::span<const u8> bytes) {
  std::lock_guard turn(opened.turn);
  while (!bytes.empty()) {
    i64 piece = std::min<i64>(std::ssize(bytes), kCachedPiece - offset % kCachedPiece);
    ssize_t n = ::pwrite(opened.fd, bytes.data(), static_cast<std::size_t>(piece), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(file, "writing failed", offset, n == 0 ? EIO : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

void OutputFiles::sync() {
  for (i32 file = 0; file < static_cast<i32>(files_.size()); file++)
    if (retried([&] { return ::fsync(open(file)->fd); }) != 0)
      fail(file, "making the file durable failed", -1, errno);
  if (const u64 failure = unclosed_; failure != 0)
    fail(static_cast<i32>(failure >> 32), "closing the file failed", -1,
         static_cast<int>(failure & 0xffffffff));
}

}  // namespace mckpt::impl
