// Preloaded into a program, this lets system calls fail the way they do on bad days. FAULTY_IO says which:
//
//   fsync:7:EIO       the 7th call fails, once
//   pwrite:7:FULL     it fails with ENOSPC, and so does every later one; DEAD: the same with EIO
//   pwrite:7:KILL     the process is killed at it     pwrite:7:TERM   or asked to end, and the call succeeds
//   pwrite:7:STOP     the process is stopped at it, and the call succeeds when it goes on
//   pwrite:7:HANG     the call never returns
//   pwrite:0:SHORT    every call moves a part of what it was asked to
//   pwrite:50:SLOW    every call takes as long as at 50 MB a second
//   exchange:1:EINVAL every call fails, as on a file system that cannot do it
//
// Several are joined by commas. "open" is every open(), "create" those that may make a file, "rename" every
// call of that family, "exchange" those that swap two names, "unlink" those that remove a file.
// FAULTY_IO_RANK=1: in this rank of an mpirun only.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

struct Wish {
  char call[32] = "", what[16] = "";
  long when = 0;
  std::atomic<long> calls = 0;
};

struct Wishes {
  static constexpr int kMost = 4;
  Wish all[kMost];

  Wishes() {
    const char *text = std::getenv("FAULTY_IO"), *only = std::getenv("FAULTY_IO_RANK"),
               *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    if (!text || (only && std::string_view(only) != (rank ? rank : ""))) return;
    for (int i = 0, read = 0; *text; i++, text += read + (text[read] == ',')) {
      if (i == kMost) std::abort();
      if (std::sscanf(text, "%31[^:]:%ld:%15[^,]%n", all[i].call, &all[i].when, all[i].what, &read) != 3)
        std::abort();
    }
  }
  Wish* find(std::string_view call) {
    for (Wish& w : all)
      if (call == w.call) return &w;
    return nullptr;
  }
};

Wish* wish(std::string_view call) {
  static Wishes wishes;
  return wishes.find(call);
}

// Whether this call of that name, which moves so many bytes, is to fail; errno says how.
bool fails(std::string_view name, size_t bytes = 0) {
  Wish* found = wish(name);
  if (!found || found->when == 0) return false;
  Wish& w = *found;
  std::string_view what = w.what;
  if (what == "SLOW") {
    usleep(static_cast<useconds_t>(bytes / static_cast<size_t>(w.when)));
    return false;
  }
  long call = ++w.calls;
  bool stays = what == "FULL" || what == "DEAD" || what == "EINVAL";
  if (stays ? call < w.when : call != w.when) return false;
  if (what == "KILL") raise(SIGKILL);
  if (what == "STOP") {
    kill(getpid(), SIGSTOP);
    return false;
  }
  while (what == "HANG") pause();
  if (what == "TERM") {
    raise(SIGTERM);
    return false;
  }
  errno = what == "FULL" ? ENOSPC : what == "EINTR" ? EINTR : what == "EINVAL" ? EINVAL : EIO;
  return true;
}

size_t part_of(std::string_view name, size_t n) {
  const Wish* w = wish(name);
  return w && std::string_view(w->what) == "SHORT" && n > 1 ? n / 2 : n;
}

template <typename Fn>
Fn* next(Fn*, const char* name) {
  return reinterpret_cast<Fn*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite(int fd, const void* data, size_t n, off_t at) {
  static auto* real = next(&pwrite, "pwrite");
  return fails("pwrite", n) ? -1 : real(fd, data, part_of("pwrite", n), at);
}

ssize_t pread(int fd, void* data, size_t n, off_t at) {
  static auto* real = next(&pread, "pread");
  return fails("pread", n) ? -1 : real(fd, data, part_of("pread", n), at);
}

int fsync(int fd) {
  static auto* real = next(&fsync, "fsync");
  return fails("fsync") ? -1 : real(fd);
}

int fallocate(int fd, int mode, off_t at, off_t n) {
  static auto* real = next(&fallocate, "fallocate");
  return fails("fallocate") ? -1 : real(fd, mode, at, n);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* real = next(&mkdir, "mkdir");
  return fails("mkdir") ? -1 : real(path, mode);
}

int renameat2(int from_dir, const char* from, int to_dir, const char* to, unsigned flags) noexcept {
  static auto* real = next(&renameat2, "renameat2");
  constexpr unsigned kExchange = 2;
  if ((flags & kExchange) && fails("exchange")) return -1;
  return fails("rename") ? -1 : real(from_dir, from, to_dir, to, flags);
}

int renameat(int from_dir, const char* from, int to_dir, const char* to) noexcept {
  static auto* real = next(&renameat, "renameat");
  return fails("rename") ? -1 : real(from_dir, from, to_dir, to);
}

int rename(const char* from, const char* to) noexcept {
  static auto* real = next(&rename, "rename");
  return fails("rename") ? -1 : real(from, to);
}

int unlink(const char* path) noexcept {
  static auto* real = next(&unlink, "unlink");
  return fails("unlink") ? -1 : real(path);
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  static auto* real = next(&unlinkat, "unlinkat");
  return fails("unlink") ? -1 : real(folder, path, flags);
}

int flock(int fd, int operation) noexcept {
  static auto* real = next(&flock, "flock");
  return fails("flock") ? -1 : real(fd, operation);
}

ssize_t write(int fd, const void* data, size_t n) {
  static auto* real = next(&write, "write");
  return fd > 2 && fails("write", n) ? -1 : real(fd, data, part_of("write", n));
}

int open(const char* path, int flags, ...) {
  static auto* real = next(&open, "open");
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  if ((flags & O_CREAT) && fails("create")) return -1;
  return fails("open") ? -1 : real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  static auto* real = next(&openat, "openat");
  va_list more;
  va_start(more, flags);
  mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
  va_end(more);
  return fails("openat") ? -1 : real(folder, path, flags, mode);
}

dirent* readdir(DIR* folder) {
  static auto* real = next(&readdir, "readdir");
  return fails("readdir") ? nullptr : real(folder);
}
}
