// Runs mckpt-hdf5 with the file, or a request in memory, as its standard input, and reads its standard output
// through a pipe:
//
//   file --stdin--> mckpt-hdf5 SUPERBLOCK CPU_MS --stdout--> at most so many bytes, within so many seconds
//
// Its environment is empty but for the place of libraries, and its messages go nowhere: it can be made to
// write anything by the file that it reads.
#include "io/hdf5/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/hdf5/wire.h"
#include "runtime/system/module_folders.h"

namespace mckpt::impl {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kName = "mckpt-hdf5";
// The most bytes of the answer; the answer for 100,000 datasets has about 20 MB, and their file more.
constexpr i64 kLeastAnswerBytes = i64{1} << 20, kMostAnswerBytes = i64{512} << 20, kAnswerPerByte = 8;
// Processor time in milliseconds, which grows with the file up to a bound: together with the start of the
// program less than a second, and another for each MiB.
constexpr i64 kLeastMs = 850, kMostMs = 300'000, kMsPerMiB = 850;
// Laying out an object takes a fraction of a millisecond.
constexpr i64 kMsPerObject = 5;
// Waiting is allowed to take longer than computing, in seconds: a machine may be busy, and a disk slow.
constexpr i64 kPatience = 4, kPatienceSeconds = 60;

Error failed(std::string message) { return Error(Code::kHelperFailed, std::move(message)); }

// A started program. Its destructor ends the program if it still runs, so no error leaves one behind.
class Process {
 public:
  Process(const std::string& program, const std::vector<std::string>& arguments, int input) {
    std::array<int, 2> ends;
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw failed(cat("cannot create a pipe: ", errno_text(errno)));
    output_ = ends[0];
    int error = spawn(program, arguments, input, ends[1]);
    ::close(ends[1]);
    if (error != 0) {
      ::close(output_);
      throw failed("mckpt-hdf5 cannot be started").file(program).found(errno_text(error));
    }
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    ::close(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int output() const { return output_; }

  // The status when it has ended, or -1 at the deadline.
  int wait_until(Clock::time_point deadline) {
    for (int status = 0; Clock::now() < deadline;) {
      pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      } else if (ended == pid_ || errno == ECHILD) {
        // Where children are not waited for (SIGCHLD is ignored), an answer that is whole has to do.
        pid_ = -1;
        return status;
      }
    }
    return -1;
  }

 private:
  // Returns 0 or the error number. Only LD_LIBRARY_PATH of our environment is passed on: HDF5 would load
  // drivers and plug-ins that other variables name.
  int spawn(const std::string& program, const std::vector<std::string>& arguments, int input, int output) {
    std::vector<char*> list = {const_cast<char*>(program.c_str())};
    for (const std::string& a : arguments) list.push_back(const_cast<char*>(a.c_str()));
    list.push_back(nullptr);
    const char* libraries = std::getenv("LD_LIBRARY_PATH");
    std::string variable = cat("LD_LIBRARY_PATH=", libraries ? libraries : "");
    std::array<char*, 2> environment = {libraries ? variable.data() : nullptr, nullptr};
    posix_spawn_file_actions_t actions;
    if (int error = ::posix_spawn_file_actions_init(&actions)) return error;
    ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    // Its words there could be a file's words to a terminal.
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, list.data(), environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) pid_ = -1;
    return error;
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

Error too_slow(i64 seconds) {
  return failed(cat("mckpt-hdf5 did not answer within ", seconds, " seconds"))
      .help("the file is damaged in a way that keeps the HDF5 library busy, or is on a very slow disk");
}

// Whether something can be read, or the other end is closed.
bool wait_for_output(int fd, Clock::time_point deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd wanted{fd, POLLIN, 0};
    int n = ::poll(&wanted, 1, static_cast<int>(std::min<long>(left, 1000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) throw failed(cat("poll: ", errno_text(errno)));
  }
}

// Reads up to the end of the output. Throws kHelperFailed beyond a limit.
std::vector<u8> read_all(int fd, const HelperLimits& limits, Clock::time_point deadline) {
  constexpr std::size_t kStep = std::size_t{256} << 10;
  std::vector<u8> out;
  while (true) {
    if (!wait_for_output(fd, deadline)) throw too_slow(limits.seconds);
    std::size_t have = out.size();
    out.resize(have + kStep);
    ssize_t n = ::read(fd, out.data() + have, kStep);
    int error = errno;
    out.resize(have + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n == 0) return out;
    if (n < 0 && error != EINTR) throw failed(cat("read: ", errno_text(error)));
    if (static_cast<i64>(out.size()) > limits.most_bytes)
      throw failed("the answer of mckpt-hdf5 is too long")
          .expected(cat("at most ", limits.most_bytes, " bytes"));
  }
}

// The meaning of the signal that ended the program.
std::string_view ended_by(int signal) {
  switch (signal) {
    case SIGSYS:
      return "the sandbox ended the program: it tried something that is forbidden";
    case SIGKILL:
    case SIGPROF:
      return "the program needed more processor time than its limit";
    default:
      return "the HDF5 library crashed";
  }
}

// pre: the program did not end with status 0.
Error bad_end(int status, std::string_view output) {
  Error e = failed("mckpt-hdf5 failed");
  if (WIFSIGNALED(status)) {
    e.found(cat(ended_by(WTERMSIG(status)), " (signal ", WTERMSIG(status), ")"));
    return e.help("the file is damaged in a way that the HDF5 library does not withstand");
  }
  if (WEXITSTATUS(status) == hdf5_wire::kExitNoSandbox)
    return e.found(cat("this system does not allow its sandbox: ", escaped(output)))
        .help("allow seccomp filters: mckpt opens HDF5 files only in a sandbox");
  return e.found(cat("exit status ", WEXITSTATUS(status)))
      .help("`mckpt env` shows whether mckpt-hdf5 works here; it must be of the same build as mckpt");
}

// Throws kModuleMissing, with the reason why the program is wanted.
std::string found_helper(std::span<const std::string> folders, std::string_view why) {
  std::string program = find_hdf5_helper(folders);
  if (!program.empty()) return program;
  throw Error(Code::kModuleMissing,
              cat(why, ", and the program that opens and lays out such files, mckpt-hdf5, was not found"))
      .expected(cat(kName, " in one of: ", listed(module_folders(folders))))
      .help(kHdf5HelperHelp);
}

// A file without a name that has these bytes, as the program reads its input.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("mckpt-hdf5 request", MFD_CLOEXEC)) {
    if (fd_ < 0) throw failed(cat("cannot create a file in memory: ", errno_text(errno)));
    while (!bytes.empty()) {
      ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        int error = errno;
        ::close(fd_);
        throw failed(cat("cannot write a file in memory: ", errno_text(error)));
      }
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string find_hdf5_helper(std::span<const std::string> folders) {
  for (const std::string& folder : module_folders(folders))
    if (std::string path = cat(folder, kName); ::access(path.c_str(), X_OK) == 0) return path;
  return "";
}

std::vector<u8> helper_output(const std::string& program, const std::vector<std::string>& arguments,
                              int input, const HelperLimits& limits) {
  Clock::time_point deadline = Clock::now() + std::chrono::seconds(limits.seconds);
  Process process(program, arguments, input);
  std::vector<u8> out = read_all(process.output(), limits, deadline);
  int status = process.wait_until(deadline);
  if (status < 0) throw too_slow(limits.seconds);
  if (status != 0) throw bad_end(status, {reinterpret_cast<const char*>(out.data()), out.size()});
  return out;
}

std::string hdf5_helper_version(const std::string& program) {
  InputFile nothing(program);  // something to be its standard input
  std::vector<u8> out = helper_output(program, {"version"}, nothing.fd(), {1 << 10, kPatienceSeconds});
  return escaped({reinterpret_cast<const char*>(out.data()), out.size()});
}

std::vector<u8> ask_hdf5_helper(const InputFile& file, i64 superblock, std::span<const std::string> folders) {
  if (file.fd() < 0)
    throw Error(Code::kUnsupportedHdf5, "an HDF5 file inside an archive, which HDF5 cannot open")
        .help("`mckpt convert from-hdf5` makes the files of the archive again");
  std::string program = found_helper(folders, "this is an HDF5 file");
  i64 cpu_ms = std::min(kMostMs, kLeastMs + (file.size() >> 10) * kMsPerMiB / 1024);
  i64 answer = kLeastAnswerBytes + kAnswerPerByte * std::min(file.size(), kMostAnswerBytes);
  return helper_output(program, {cat(superblock), cat(cpu_ms)}, file.fd(),
                       {std::min(kMostAnswerBytes, answer), kPatienceSeconds + kPatience * cpu_ms / 1000});
}

std::vector<u8> ask_hdf5_composer(const std::string& request, i64 objects,
                                  std::span<const std::string> folders) {
  std::string program = found_helper(folders, "the result is an HDF5 file");
  MemoryFile input(request);
  i64 cpu_ms = std::min(kMostMs, kLeastMs + objects * kMsPerObject);
  return helper_output(program, {"compose", cat(cpu_ms)}, input.fd(),
                       {kMostAnswerBytes, kPatienceSeconds + kPatience * cpu_ms / 1000});
}

}  // namespace mckpt::impl
