// Preloaded into a program, this lets system calls fail the way they do on bad days. FAULTY_IO says which:
//
//   fsync:7:EIO       the 7th call fails, once, with the error of that name
//   pwrite:7:FULL     it fails with ENOSPC, and so does every later one; DEAD: the same with EIO
//   pwrite:7:KILL     the process is killed at it     pwrite:7:TERM   or asked to end, and the call succeeds
//   pwrite:7:STOP     the process is stopped at it, and the call succeeds when it goes on
//   pwrite:7:HANG     the call never returns         pwrite:7:EXIT   the process ends with status 0
//   pwrite:7:SLEEP    the call takes three seconds
//   pwrite:7:SHORT    it moves a part of what it was asked to; pwrite:0:SHORT: every call does
//   pwrite:50:SLOW    every call takes as long as at 50 MB a second
//   exchange:1:EINVAL every call fails, as on a file system that cannot do it
//
// Several are joined by commas. A name stands for a family of calls: "open" is every open(), "create" those that
// may make a file, "rename" every call that renames, "exchange" those that swap two names, "unlink" those that
// remove a file, "stat" all that ask for a stamp but statx(), "changing" every call that changes a file or
// folder, "collective" all calls of MPI in which ranks meet; a failing one gives an error of MPI. A close()
// that fails has closed.
//
// FAULTY_IO_RANK=1: all this in this rank of an mpirun only. FAULTY_IO_LOG=FILE: the name of each call is added
// there, a line each.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
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

bool is_of_this_rank() {
  const char *only = std::getenv("FAULTY_IO_RANK"), *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return !only || std::string_view(only) == (rank ? rank : "");
}

struct Wishes {
  static constexpr int kMost = 4;
  Wish all[kMost];

  Wishes() {
    const char* text = std::getenv("FAULTY_IO");
    if (!text || !is_of_this_rank()) return;
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

Wishes& wishes() {
  static Wishes all;
  return all;
}

bool is_changing(std::string_view name) {
  for (std::string_view one : {"pwrite", "write", "fsync", "fallocate", "ftruncate", "create", "mkdir",
                               "rename", "unlink", "link", "symlink", "chmod", "utime"})
    if (name == one) return true;
  return false;
}

void log(std::string_view name) {
  static const int fd = [] {
    const char* path = std::getenv("FAULTY_IO_LOG");
    return path && is_of_this_rank()
               ? static_cast<int>(syscall(SYS_open, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666))
               : -1;
  }();
  if (fd < 0) return;
  char line[40];
  int n = std::snprintf(line, sizeof line, "%.*s\n", static_cast<int>(name.size()), name.data());
  syscall(SYS_write, fd, line, static_cast<size_t>(n));
}

int error_of(std::string_view what) {
  struct Error {
    std::string_view name;
    int number;
  };
  constexpr Error kErrors[] = {
      {"FULL", ENOSPC},   {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT},   {"EINTR", EINTR},   {"EINVAL", EINVAL},
      {"EAGAIN", EAGAIN}, {"EACCES", EACCES}, {"EMFILE", EMFILE},   {"ENOMEM", ENOMEM}, {"EROFS", EROFS},
      {"ESTALE", ESTALE}, {"ENOENT", ENOENT}, {"ENOTSUP", ENOTSUP}, {"EPERM", EPERM}};
  for (const Error& e : kErrors)
    if (what == e.name) return e.number;
  return EIO;
}

// Whether this call, the next of those that the wish is about, is to fail; errno says how.
bool fails(Wish& w, size_t bytes) {
  std::string_view what = w.what;
  if (what == "SHORT" || w.when == 0) return false;
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
  if (what == "EXIT") _exit(0);
  if (what == "SLEEP") {
    sleep(3);
    return false;
  }
  if (what == "TERM") {
    raise(SIGTERM);
    return false;
  }
  errno = error_of(what);
  return true;
}

// The same for a call of that name, which moves so many bytes.
bool fails(std::string_view name, size_t bytes = 0) {
  log(name);
  if (Wish* w = wishes().find(name); w && fails(*w, bytes)) return true;
  Wish* w = is_changing(name) ? wishes().find("changing") : nullptr;
  return w && fails(*w, bytes);
}

size_t part_of(std::string_view name, size_t n) {
  Wish* w = wishes().find(name);
  if (!w || std::string_view(w->what) != "SHORT" || n < 2) return n;
  return w->when == 0 || ++w->calls == w->when ? n / 2 : n;
}

// The function of MPI that has this name; its library is loaded by a module, so that it is not among the
// libraries that follow this one.
void* of_mpi(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name)) return found;
  for (const char* library : {"libmpi.so.40", "libmpi.so.12", "libmpi.so"})
    if (void* opened = dlopen(library, RTLD_NOLOAD | RTLD_LAZY))
      if (void* found = dlsym(opened, name)) return found;
  std::abort();
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

int rmdir(const char* path) noexcept {
  static auto* real = next(&rmdir, "rmdir");
  return fails("unlink") ? -1 : real(path);
}

int remove(const char* path) noexcept {
  static auto* real = next(&remove, "remove");
  return fails("unlink") ? -1 : real(path);
}

int link(const char* from, const char* to) noexcept {
  static auto* real = next(&link, "link");
  return fails("link") ? -1 : real(from, to);
}

int symlink(const char* to, const char* path) noexcept {
  static auto* real = next(&symlink, "symlink");
  return fails("symlink") ? -1 : real(to, path);
}

int ftruncate(int fd, off_t size) noexcept {
  static auto* real = next(&ftruncate, "ftruncate");
  return fails("ftruncate") ? -1 : real(fd, size);
}

int fchmod(int fd, mode_t mode) noexcept {
  static auto* real = next(&fchmod, "fchmod");
  return fails("chmod") ? -1 : real(fd, mode);
}

int fchmodat(int folder, const char* path, mode_t mode, int flags) noexcept {
  static auto* real = next(&fchmodat, "fchmodat");
  return fails("chmod") ? -1 : real(folder, path, mode, flags);
}

int utimensat(int folder, const char* path, const timespec* times, int flags) noexcept {
  static auto* real = next(&utimensat, "utimensat");
  return fails("utime") ? -1 : real(folder, path, times, flags);
}

int close(int fd) {
  static auto* real = next(&close, "close");
  const int status = real(fd);
  if (fd <= 2 || !fails("close")) return status;
  return -1;
}

int stat(const char* path, struct stat* to) noexcept {
  static auto* real = next<int(const char*, struct stat*)>(nullptr, "stat");
  return fails("stat") ? -1 : real(path, to);
}

int lstat(const char* path, struct stat* to) noexcept {
  static auto* real = next<int(const char*, struct stat*)>(nullptr, "lstat");
  return fails("stat") ? -1 : real(path, to);
}

int fstat(int fd, struct stat* to) noexcept {
  static auto* real = next<int(int, struct stat*)>(nullptr, "fstat");
  return fails("stat") ? -1 : real(fd, to);
}

int fstatat(int folder, const char* path, struct stat* to, int flags) noexcept {
  static auto* real = next<int(int, const char*, struct stat*, int)>(nullptr, "fstatat");
  return fails("stat") ? -1 : real(folder, path, to, flags);
}

int statx(int folder, const char* path, int flags, unsigned mask, struct statx* to) noexcept {
  static auto* real = next<int(int, const char*, int, unsigned, struct statx*)>(nullptr, "statx");
  return fails("statx") ? -1 : real(folder, path, flags, mask, to);
}

int statfs(const char* path, struct statfs* to) noexcept {
  static auto* real = next<int(const char*, struct statfs*)>(nullptr, "statfs");
  return fails("statfs") ? -1 : real(path, to);
}

int statvfs(const char* path, struct statvfs* to) noexcept {
  static auto* real = next<int(const char*, struct statvfs*)>(nullptr, "statvfs");
  return fails("statfs") ? -1 : real(path, to);
}

ssize_t readlink(const char* path, char* to, size_t n) noexcept {
  static auto* real = next(&readlink, "readlink");
  return fails("readlink") ? -1 : real(path, to, n);
}

char* realpath(const char* path, char* to) noexcept {
  static auto* real = next(&realpath, "realpath");
  return fails("realpath") ? nullptr : real(path, to);
}

FILE* fopen(const char* path, const char* mode) {
  static auto* real = next(&fopen, "fopen");
  return fails("fopen") ? nullptr : real(path, mode);
}

// Clones of files.
int ioctl(int fd, unsigned long what, ...) noexcept {
  static auto* real = next<int(int, unsigned long, void*)>(nullptr, "ioctl");
  va_list more;
  va_start(more, what);
  void* argument = va_arg(more, void*);
  va_end(more);
  return fd > 2 && fails("ioctl") ? -1 : real(fd, what, argument);
}

// openat2(), which glibc has no function for.
long syscall(long number, ...) noexcept {
  static auto* real = next<long(long, long, long, long, long, long, long)>(nullptr, "syscall");
  va_list more;
  va_start(more, number);
  long a[6];
  for (long& one : a) one = va_arg(more, long);
  va_end(more);
  if (number == SYS_openat2 && fails("openat")) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t read(int fd, void* data, size_t n) {
  static auto* real = next(&read, "read");
  return fd > 2 && fails("read", n) ? -1 : real(fd, data, part_of("read", n));
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
  if ((flags & O_CREAT) && fails("create")) return -1;
  return fails("openat") ? -1 : real(folder, path, flags, mode);
}

dirent* readdir(DIR* folder) {
  static auto* real = next(&readdir, "readdir");
  return fails("readdir") ? nullptr : real(folder);
}

// Handles of MPI are pointers or integers; both are passed on as they came in their registers.
#define MPI_CALL(function, family) \
  int function(long a, long b, long c, long d, long e, long f, long g, long h, long i) { \
    using Real = int(long, long, long, long, long, long, long, long, long); \
    static auto* real = reinterpret_cast<Real*>(of_mpi(#function)); \
    constexpr int kOtherError = 16; \
    return fails(family) ? kOtherError : real(a, b, c, d, e, f, g, h, i); \
  }
MPI_CALL(MPI_Init_thread, "mpi_init")
MPI_CALL(MPI_Finalize, "mpi_finalize")
MPI_CALL(MPI_Barrier, "collective")
MPI_CALL(MPI_Bcast, "collective")
MPI_CALL(MPI_Allgather, "collective")
MPI_CALL(MPI_Allgatherv, "collective")
MPI_CALL(MPI_Allreduce, "collective")
MPI_CALL(MPI_Alltoallv, "collective")
MPI_CALL(MPI_Comm_split, "collective")
}
