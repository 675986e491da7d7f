// Reads files by pread, so that threads share a descriptor without a position, and decides for large blocks
// whether the page cache is worth its cost.
//
//   the block is in the page cache    pread: one copy, as fast as memory
//   it is not                         pread through a descriptor with O_DIRECT: the disk writes into the
//                                     caller's buffer, without processor time, and nothing is evicted
//
// Whether a block is cached is asked of the kernel first by cachestat (Linux 6.5), then by mincore on a
// mapping that is never touched. A file system without O_DIRECT, and the end of a file that is not a whole
// page, are read through the cache. A file that turns out shorter than its size at opening is kReadFailed.
#include "io/file/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "io/file/container.h"
#include "io/file/denied.h"
#include "io/file/retried.h"

namespace mckpt::impl {
namespace {

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr i64 kMostPerCall = i64{1} << 30;

// Asks cachestat, at next to no cost. False also if the system does not know: a kernel before Linux 6.5, or a
// file that overlayfs shows.
bool is_counted_as_cached(int fd, i64 offset, i64 bytes) {
#ifdef SYS_cachestat
  constexpr long kCachestat = SYS_cachestat;
#else
  constexpr long kCachestat = 451;  // everywhere but on Alpha
#endif
  struct {
    u64 offset, bytes;
  } range{static_cast<u64>(offset), static_cast<u64>(bytes)};
  struct {
    u64 cached, dirty, written_back, evicted, evicted_lately;
  } pages{};
  if (::syscall(kCachestat, fd, &range, &pages, 0) != 0) return false;
  return pages.cached >= static_cast<u64>(ceil_div(bytes, ByteSource::kPage));
}

// Asks mincore, on any Linux, in a tenth of the time that reading cached bytes takes. True also if the system
// gives no answer: then the block is read the usual way.
bool is_mapped_from_cache(int fd, i64 offset, i64 bytes) {
  std::size_t size = static_cast<std::size_t>(bytes);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, offset);
  if (mapped == MAP_FAILED) return true;
  std::vector<u8> pages(static_cast<std::size_t>(ceil_div(bytes, ByteSource::kPage)));
  bool known = ::mincore(mapped, size, pages.data()) == 0;
  ::munmap(mapped, size);
  return !known || std::ranges::all_of(pages, [](u8 page) { return (page & 1) != 0; });
}

// Whether all of a stretch is in the page cache. (A read with RWF_NOWAIT cannot answer that: it starts
// reading ahead.)
bool is_cached(int fd, i64 offset, i64 bytes) {
  return is_counted_as_cached(fd, offset, bytes) || is_mapped_from_cache(fd, offset, bytes);
}

const char* kind_of(const struct stat& st) {
  if (S_ISDIR(st.st_mode)) return "a folder";
  if (S_ISFIFO(st.st_mode)) return "a pipe";
  if (S_ISSOCK(st.st_mode)) return "a socket";
  return "a device";
}

}  // namespace

std::string errno_text(int error) {
  char buffer[256];
  return ::strerror_r(error, buffer, sizeof buffer);  // the GNU form, which returns the text
}

void throw_open_failed(const std::string& path, int error) {
  Code code = error == ENOENT || error == ENOTDIR ? Code::kNotFound : Code::kReadFailed;
  Error e(code, cat("cannot open the file: ", errno_text(error)));
  explain_denied(e, path, error);
  throw e.file(path).of_the_moment(code == Code::kReadFailed && !is_about_rights(error));
}

void ByteSource::check_range(i64 offset, i64 bytes) const {
  if (offset >= 0 && bytes >= 0 && offset <= size_ && bytes <= size_ - offset) return;
  throw Error(Code::kReadFailed, "a read would pass the end of the file")
      .offset(offset)
      .expected(cat("at most ", size_, " bytes"))
      .found(cat("bytes ", offset, " to ", offset, " + ", bytes));
}

void ByteSource::read(i64 offset, std::span<u8> to) const {
  check_range(offset, static_cast<i64>(to.size()));
  if (!to.empty()) read_inside(offset, to);
}

void ByteSource::read_block(i64 offset, std::span<u8> to) const {
  check_range(offset, static_cast<i64>(to.size()));
  if (!to.empty()) read_block_inside(offset, to);
}

std::vector<u8> ByteSource::read(i64 offset, i64 bytes) const {
  check_range(offset, bytes);
  std::vector<u8> out(static_cast<std::size_t>(bytes));
  if (!out.empty()) read_inside(offset, out);
  return out;
}

void MemorySource::read_inside(i64 offset, std::span<u8> to) const {
  std::memcpy(to.data(), bytes_.data() + offset, to.size());
}

void check_inside(const ByteSource& whole, i64 offset, i64 bytes) {
  if (offset < 0 || bytes < 0 || offset > whole.size() || bytes > whole.size() - offset)
    throw Error(Code::kReadFailed, "a part of a file is beyond its end")
        .offset(offset)
        .expected(cat("at most ", whole.size(), " bytes"))
        .found(cat("bytes ", offset, " to ", offset, " + ", bytes));
}

RangeSource::RangeSource(const ByteSource& whole, i64 offset, i64 bytes)
    : ByteSource(bytes), whole_(whole), offset_(offset) {
  check_inside(whole, offset, bytes);
}

void RangeSource::read_inside(i64 offset, std::span<u8> to) const { whole_.read(offset_ + offset, to); }

InputFile::InputFile(const std::string& path, const OpenOptions& opening)
    : InputFile(opened(path, opening)) {}

InputFile InputFile::opened(const std::string& path, const OpenOptions& opening) {
  int fd = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) {
    std::optional<PlaceInside> inside = find_inside(path, opening);
    i64 file = inside ? inside->container->find(inside->name) : -1;
    if (file >= 0) return InputFile(std::move(inside->container), file, path);
    errno = ENOENT;
  }
  return InputFile(fd, path, opening);
}

InputFile::InputFile(std::shared_ptr<const Container> container, i64 file, std::string path)
    : ByteSource(container->file_bytes(file)),
      container_(std::move(container)),
      number_(file),
      path_(std::move(path)),
      stamp_(container_->stamp()) {
  stamp_.bytes = size_;
}

InputFile::InputFile(int fd, std::string path, const OpenOptions& opening)
    : ByteSource(0), fd_(fd), path_(std::move(path)) {
  if (fd_ < 0) throw_open_failed(path_, errno);
  try {
    struct stat st;
    if (::fstat(fd_, &st) != 0) throw_open_failed(path_, errno);
    if (!S_ISREG(st.st_mode))
      throw Error(Code::kNotAFile, cat("this is ", kind_of(st), ", not a file")).file(path_);
    stamp_ = opening.stamps ? opening.stamps->look(fd_, path_) : stamp_of_open(fd_, path_);
    size_ = stamp_.bytes;
  } catch (...) {
    ::close(std::exchange(fd_, -1));
    throw;
  }
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

InputFile::InputFile(InputFile&& from) noexcept
    : ByteSource(from),
      fd_(std::exchange(from.fd_, -1)),
      container_(std::move(from.container_)),
      number_(from.number_),
      path_(std::move(from.path_)),
      stamp_(from.stamp_) {}

InputFile& InputFile::operator=(InputFile&& from) noexcept {
  std::swap(size_, from.size_);
  std::swap(fd_, from.fd_);
  std::swap(container_, from.container_);
  std::swap(number_, from.number_);
  std::swap(path_, from.path_);
  std::swap(stamp_, from.stamp_);
  return *this;
}

void InputFile::check_unchanged() const {
  if (container_) return container_->check_unchanged(number_);
  check_stamp(fd_, path_, stamp_);
}

void InputFile::throw_changed() const { throw source_changed(path_); }

void InputFile::read_inside(i64 offset, std::span<u8> to) const {
  if (container_) return container_->read(number_, offset, to);
  while (!to.empty()) {
    std::size_t ask = static_cast<std::size_t>(std::min<i64>(static_cast<i64>(to.size()), kMostPerCall));
    ssize_t n = ::pread(fd_, to.data(), ask, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw Error(Code::kReadFailed, cat("reading failed: ", errno_text(errno)))
          .file(path_)
          .offset(offset)
          .of_the_moment();
    if (n == 0)
      throw Error(Code::kReadFailed, "the file became shorter while it was read")
          .file(path_)
          .offset(offset)
          .expected(cat(size_, " bytes"))
          .found(cat(offset, " bytes"));
    to = to.subspan(static_cast<std::size_t>(n));
    offset += n;
  }
}

// A direct read that fails or ends early is not an error: read_inside() reads the rest, and reports what is
// wrong, if anything is.
void InputFile::read_block_inside(i64 offset, std::span<u8> to) const {
  if (!container_ && !is_cached(fd_, offset, std::ssize(to))) {
    std::string again = cat("/proc/self/fd/", fd_);
    int direct = retried([&] { return ::open(again.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC); });
    if (direct >= 0) {
      std::size_t pages = static_cast<std::size_t>(ceil_div(std::ssize(to), kPage) * kPage);
      ssize_t n = ::pread(direct, to.data(), pages, offset);
      ::close(direct);
      std::size_t done = std::min(static_cast<std::size_t>(std::max<ssize_t>(n, 0)), to.size());
      to = to.subspan(done);
      offset += static_cast<i64>(done);
    }
  }
  if (!to.empty()) read_inside(offset, to);
}

}  // namespace mckpt::impl
