// Sets resource limits and installs the seccomp filter: a small program that the kernel runs at each system
// call.
//
//   architecture as expected?  no -> kill
//   pread64 of descriptor 0, write to descriptor 1, mmap of anonymous memory without PROT_EXEC  -> allow
//   memory, time, futex, exit  -> allow
//   all other calls  -> kill the process (SIGSYS)
//
// Opening files is not allowed, nor are sockets, new processes or changes of the limits.
#include "hdf5/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cstdint>
#include <iterator>

#if defined(__SANITIZE_ADDRESS__)
#define MCKPT_UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MCKPT_UNDER_ASAN 1
#endif
#endif

namespace mckpt::impl {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox of mckpt-hdf5 knows x86-64 and AArch64; configure with MCKPT_HDF5=OFF"
#endif

// One step of the program that the kernel runs at each call. `yes` and `no` count steps to skip.
constexpr sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
constexpr sock_filter unless_equal_skip(std::uint32_t value, std::uint8_t steps) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, steps);
}
constexpr sock_filter if_any_bit_skip(std::uint32_t bits, std::uint8_t steps) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, steps, 0);
}
constexpr sock_filter unless_any_bit_skip(std::uint32_t bits, std::uint8_t steps) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, steps);
}
constexpr sock_filter end_with(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// The low half of an argument; what is compared with it is a descriptor or flags, which fit.
constexpr std::size_t argument(int n) {
  return offsetof(seccomp_data, args) + static_cast<std::size_t>(n) * sizeof(std::uint64_t);
}

// The steps of one call that is allowed, and of one that is allowed on this descriptor.
#define MCKPT_ALLOW(call) unless_equal_skip(call, 1), end_with(SECCOMP_RET_ALLOW)
#define MCKPT_ALLOW_ON(call, descriptor) \
  unless_equal_skip(call, 4), load(argument(0)), unless_equal_skip(descriptor, 1), \
      end_with(SECCOMP_RET_ALLOW), end_with(SECCOMP_RET_KILL_PROCESS)

constexpr sock_filter kProgram[] = {
    load(offsetof(seccomp_data, arch)),
    unless_equal_skip(kArchitecture, 1),
    load(offsetof(seccomp_data, nr)),
    // The comparison below is of the call, or, for a call of another architecture, of that architecture,
    // which equals none.
    MCKPT_ALLOW_ON(__NR_pread64, 0),
#ifdef MCKPT_UNDER_ASAN
    // A sanitizer's report goes to standard error, and needs to know who and where it is.
    MCKPT_ALLOW(__NR_write),
    MCKPT_ALLOW(__NR_getpid),
    MCKPT_ALLOW(__NR_gettid),
    MCKPT_ALLOW(__NR_sigaltstack),
    MCKPT_ALLOW(__NR_sched_yield),
#else
    MCKPT_ALLOW_ON(__NR_write, 1),
#endif
    unless_equal_skip(__NR_mmap, 6),
    load(argument(2)),
    if_any_bit_skip(PROT_EXEC, 3),
    load(argument(3)),
    unless_any_bit_skip(MAP_ANONYMOUS, 1),
    end_with(SECCOMP_RET_ALLOW),
    end_with(SECCOMP_RET_KILL_PROCESS),
    MCKPT_ALLOW(__NR_brk),
    MCKPT_ALLOW(__NR_munmap),
    MCKPT_ALLOW(__NR_mremap),
    MCKPT_ALLOW(__NR_madvise),
    MCKPT_ALLOW(__NR_futex),
    MCKPT_ALLOW(__NR_clock_gettime),
    // The library waits a moment when a checksum is wrong: somebody might be writing.
    MCKPT_ALLOW(__NR_clock_nanosleep),
    MCKPT_ALLOW(__NR_nanosleep),
    MCKPT_ALLOW(__NR_gettimeofday),
    // The C library asks how much memory there is before it sorts a long list.
    MCKPT_ALLOW(__NR_sysinfo),
    MCKPT_ALLOW(__NR_exit),
    MCKPT_ALLOW(__NR_exit_group),
    MCKPT_ALLOW(__NR_rt_sigreturn),
    end_with(SECCOMP_RET_KILL_PROCESS),
};

bool limit(decltype(RLIMIT_AS) what, long value) {
  rlimit both{static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  return ::setrlimit(what, &both) == 0;
}

}  // namespace

const char* enter_sandbox(const SandboxLimits& limits) {
#ifndef MCKPT_UNDER_ASAN  // its shadow alone is terabytes of address space
  if (!limit(RLIMIT_AS, limits.memory_bytes)) return "a limit of memory";
#endif
  // Finer than RLIMIT_CPU, which counts seconds; no call that could take it back is allowed below.
  itimerval time{{}, {limits.cpu_ms / 1000, limits.cpu_ms % 1000 * 1000}};
  if (::signal(SIGPROF, SIG_DFL) == SIG_ERR || ::setitimer(ITIMER_PROF, &time, nullptr) != 0)
    return "a limit of time";
  if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_NOFILE, 0)) return "limits";
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return "PR_SET_DUMPABLE";
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "PR_SET_NO_NEW_PRIVS";
  sock_fprog program{static_cast<unsigned short>(std::size(kProgram)), const_cast<sock_filter*>(kProgram)};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    return "a filter of system calls (seccomp)";
  return nullptr;
}

}  // namespace mckpt::impl
