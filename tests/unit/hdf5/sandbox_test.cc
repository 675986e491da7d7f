#include "hdf5/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace mckpt::impl {
namespace {

constexpr SandboxLimits kLimits{1L << 30, 1000};

// How a process ends that enters the sandbox and then does this: "exit 0", "signal 31".
std::string end_of(const std::function<int()>& act) {
  pid_t child = ::fork();
  if (child == 0) {
    // Standard input is a file, standard output a pipe or the like: as mckpt starts the program.
    int file = ::open("/proc/self/exe", O_RDONLY), nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(file, 0);
    ::dup2(nowhere, 1);
    if (enter_sandbox(kLimits)) ::_exit(99);
    ::_exit(act());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

const std::string kEnded = "signal " + std::to_string(SIGSYS);

TEST(Sandbox, LetsTheFileBeReadAndTheAnswerBeWritten) {
  EXPECT_EQ(end_of([] {
              char byte;
              return ::pread(0, &byte, 1, 1) == 1 && ::write(1, &byte, 1) == 1 ? 7 : 8;
            }),
            "exit 7");
}

TEST(Sandbox, GivesMemory) {
  EXPECT_EQ(end_of([] {
              constexpr std::size_t kBytes = std::size_t{8} << 20;
              void* memory =
                  ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return memory != MAP_FAILED && ::munmap(memory, kBytes) == 0 ? 7 : 8;
            }),
            "exit 7");
}

#ifndef __SANITIZE_ADDRESS__  // under which address space is not limited
TEST(Sandbox, GivesNoMoreMemoryThanItsLimit) {
  EXPECT_EQ(end_of([] {
              void* memory =
                  ::mmap(nullptr, std::size_t{2} << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return memory == MAP_FAILED ? 7 : 8;
            }),
            "exit 7");
}

TEST(Sandbox, EndsWhatWritesElsewhere) {
  EXPECT_EQ(end_of([] { return static_cast<int>(::write(2, "", 0)); }), kEnded);
}
#endif

TEST(Sandbox, EndsWhatOpensAFile) {
  EXPECT_EQ(end_of([] { return ::open("/etc/passwd", O_RDONLY); }), kEnded);
  EXPECT_EQ(
      end_of([] { return static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, "/etc/passwd", nullptr, 0)); }),
      kEnded);
}

TEST(Sandbox, EndsWhatStartsAProgramOrAProcess) {
  EXPECT_EQ(end_of([] { return ::execl("/bin/true", "true", nullptr); }), kEnded);
  EXPECT_EQ(end_of([] {
              return static_cast<int>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
            }),
            kEnded);
}

TEST(Sandbox, EndsWhatReachesForTheNetwork) {
  EXPECT_EQ(end_of([] { return ::socket(AF_INET, SOCK_STREAM, 0); }), kEnded);
}

TEST(Sandbox, EndsWhatReadsAnotherDescriptor) {
  EXPECT_EQ(end_of([] {
              char byte;
              return static_cast<int>(::pread(1, &byte, 1, 0));
            }),
            kEnded);
}

TEST(Sandbox, EndsWhatMapsAFileOrMakesMemoryAProgram) {
  EXPECT_EQ(end_of([] { return ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, 0, 0) == MAP_FAILED; }), kEnded);
  EXPECT_EQ(end_of([] {
              return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                     MAP_FAILED;
            }),
            kEnded);
}

TEST(Sandbox, EndsWhatSignalsOrTracesOthers) {
  EXPECT_EQ(end_of([] { return ::kill(1, 0); }), kEnded);
  EXPECT_EQ(end_of([] { return static_cast<int>(::syscall(SYS_ptrace, 0, 0, 0, 0)); }), kEnded);
}

TEST(Sandbox, EndsWhatNeverEnds) {
  std::string end = end_of([] {
    volatile bool forever = true;
    while (forever) {
    }
    return 0;
  });
  EXPECT_EQ(end, "signal " + std::to_string(SIGPROF));
}

}  // namespace
}  // namespace mckpt::impl
