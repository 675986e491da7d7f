// Faults inside NCCL, for tests: a library that is loaded before NCCL (LD_PRELOAD, NCCL's own behind it) and
// stands in front of the functions that lib/live calls. MCKPT_TEST_NCCL_FAULT=KIND:RANK:CALL makes this
// rank's work number CALL, counted from 1, fail:
//
//   refused   the call itself fails
//   later     the call is taken, and the communicator's state tells of the failure afterwards
//   lost      the call is taken and nothing is done, so that the other ranks wait for ever
//
// MCKPT_TEST_NCCL_LOG is a file that gets a line "fault SECONDS" then, and "count CALLS" from rank 0 at the
// end.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

enum Result : int { kSuccess = 0, kSystemError = 2, kRemoteError = 6 };

struct Fault {
  std::string kind;
  int rank = -1;
  long call = 0;
};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

int own_rank() { return std::atoi(variable("OMPI_COMM_WORLD_RANK").c_str()); }

Fault wanted() {
  char kind[16] = {};
  Fault fault;
  if (std::sscanf(variable("MCKPT_TEST_NCCL_FAULT").c_str(), "%15[a-z]:%d:%ld", kind, &fault.rank,
                  &fault.call) == 3)
    fault.kind = kind;
  return fault;
}

void tell(const char* what, double number) {
  std::FILE* log = std::fopen(variable("MCKPT_TEST_NCCL_LOG").c_str(), "a");
  if (!log) return;
  std::fprintf(log, "%s %.3f\n", what, number);
  std::fclose(log);
}

std::atomic<long> calls = 0;
std::atomic<bool> failed_later = false;

struct TellCount {
  ~TellCount() {
    if (calls > 0 && own_rank() == 0) tell("count", static_cast<double>(calls));
  }
} tell_count;

template <typename Fn>
Fn next(const char* name) {
  return reinterpret_cast<Fn>(dlsym(RTLD_NEXT, name));
}

// Carries out a piece of work, or what is wanted in its stead.
template <typename Work>
int work(Work&& carry_out) {
  static const Fault fault = wanted();
  if (++calls != fault.call || own_rank() != fault.rank) return carry_out();
  std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  tell("fault", now.count());
  if (fault.kind == "refused") return kSystemError;
  if (fault.kind == "lost") return kSuccess;
  failed_later = true;
  return carry_out();
}

thread_local bool leave_out = false;  // the sends and receives of a group that is lost

}  // namespace

extern "C" {

int ncclAllGather(const void* mine, void* all, std::size_t count, int type, void* comm, void* stream) {
  using Fn = int (*)(const void*, void*, std::size_t, int, void*, void*);
  return work([&] { return next<Fn>("ncclAllGather")(mine, all, count, type, comm, stream); });
}

// A group counts once, when it begins.
int ncclGroupStart() {
  leave_out = true;
  return work([] {
    leave_out = false;
    return next<int (*)()>("ncclGroupStart")();
  });
}

int ncclSend(const void* data, std::size_t count, int type, int peer, void* comm, void* stream) {
  using Fn = int (*)(const void*, std::size_t, int, int, void*, void*);
  return leave_out ? kSuccess : next<Fn>("ncclSend")(data, count, type, peer, comm, stream);
}

int ncclRecv(void* data, std::size_t count, int type, int peer, void* comm, void* stream) {
  using Fn = int (*)(void*, std::size_t, int, int, void*, void*);
  return leave_out ? kSuccess : next<Fn>("ncclRecv")(data, count, type, peer, comm, stream);
}

int ncclGroupEnd() { return leave_out ? kSuccess : next<int (*)()>("ncclGroupEnd")(); }

int ncclCommGetAsyncError(void* comm, int* state) {
  int result = next<int (*)(void*, int*)>("ncclCommGetAsyncError")(comm, state);
  if (failed_later && result == kSuccess) *state = kRemoteError;
  return result;
}
}
