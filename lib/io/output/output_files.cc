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
#include <utility>

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
// With O_NONBLOCK the opening of a pipe does not wait for a reader.
constexpr int kPlainFile = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;

// Keeps errno.
void close_quietly(int fd) {
  const int error = errno;
  ::close(fd);
  errno = error;
}

int open_folder_in(int above, const std::string& name, bool make) {
  if (make && ::mkdirat(above, name.c_str(), 0777) != 0 && errno != EEXIST) return -1;
  return retried([&] { return ::openat(above, name.c_str(), kFolder); });
}

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
  if (error == EMFILE) e.help("raise the limit of open files, which `ulimit -n` shows");
  throw e;
}

OutputFiles::OutputFiles(std::string folder, std::vector<OutputFile> files, Begin begin, How how)
    : folder_(std::move(folder)), files_(std::move(files)), how_(how), open_(files_.size()) {
  folder_fd_ = retried([&] { return ::open(folder_.c_str(), kFolder); });
  if (folder_fd_ < 0)
    throw Error(Code::kWriteFailed, cat("cannot open the folder of the files: ", errno_text(errno)))
        .file(folder_);
  try {
    for (i32 file = 0; file < std::ssize(files_); file++) make(file, begin);
  } catch (...) {
    ::close(folder_fd_);
    throw;
  }
}

OutputFiles::~OutputFiles() { ::close(folder_fd_); }

// Opens the file where it is, without a link in any part of its name. -1 and errno; EMLINK if another file,
// which may be anybody's, would be written to.
int OutputFiles::open_inside(const std::string& name, int flags) const {
  int folder = folder_fd_;
  std::size_t at = 0;
  for (std::size_t slash; folder >= 0 && (slash = name.find('/', at)) != name.npos; at = slash + 1) {
    const int inner = open_folder_in(folder, name.substr(at, slash - at), (flags & O_CREAT) != 0);
    if (folder != folder_fd_) close_quietly(folder);
    folder = inner;
  }
  if (folder < 0) return -1;
  int fd = retried([&] { return ::openat(folder, name.c_str() + at, flags | kPlainFile, 0666); });
  if (folder != folder_fd_) close_quietly(folder);
  struct stat st;
  if (fd < 0) return -1;
  if (::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink <= 1) return fd;
  ::close(fd);
  errno = EMLINK;
  return -1;
}

// Writing into reserved space costs half as much again, but a full disk is found before anything is written.
// On a file system that cannot reserve, the file gets its size alone.
void OutputFiles::make(i32 file, Begin begin) {
  const i64 bytes = files_[file].bytes;
  const int fd = open_inside(files_[file].name, O_CREAT | (begin == Begin::kCreate ? O_EXCL : 0));
  if (fd < 0) fail(file, "cannot create the file", -1, errno);
  Open made(fd, -1, unclosed_, file);
  // A file that is kept has no byte behind its end, and one that is emptied none at all.
  struct stat st;
  const i64 kept = begin == Begin::kGoOn ? bytes : 0;
  if (::fstat(fd, &st) != 0 || (st.st_size > kept && retried([&] { return ::ftruncate(fd, kept); }) != 0))
    fail(file, "cannot shorten the file", -1, errno);
  if (bytes == 0) return;
  int error = retried([&] { return ::fallocate(fd, 0, 0, bytes); }) == 0 ? 0 : errno;
  if (error == EOPNOTSUPP || error == ENOSYS)
    error = retried([&] { return ::ftruncate(fd, bytes); }) == 0 ? 0 : errno;
  if (error != 0) fail(file, "cannot reserve the space of the file", -1, error);
}

std::shared_ptr<OutputFiles::Open> OutputFiles::open(i32 file) {
  std::lock_guard lock(mutex_);
  auto& slot = open_[file];
  if (slot) return slot;
  if (static_cast<i64>(recent_.size()) >= kMostOpen) {
    open_[recent_.front()].reset();  // closed when its last writer is done
    recent_.erase(recent_.begin());
  }
  int fd = open_inside(files_[file].name, 0);
  if (fd < 0) fail(file, "cannot open the file that is being written", -1, errno);
  int direct = -1;
  if (how_ == How::kDirect) direct = open_inside(files_[file].name, O_DIRECT);
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
