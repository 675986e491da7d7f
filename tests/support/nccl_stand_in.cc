// Stands in for NCCL, for tests: a library that is loaded before it (LD_PRELOAD), over which ranks that share
// a GPU are joined. NCCL itself wants a GPU for each, so that grids of more ranks than a machine has GPUs
// could not be tried there at all. Every rank's GPU gets an identity of its own.
//
// Bytes go through memory that the processes share, past the host, and the caller waits until they are there:
// what order calls and streams must have is kept, the speed is nothing to measure. Not stood in for: that
// calls return before they are done, faults, and more than one host. The ranks use one of MCKPT_TEST_GPUS
// GPUs after the other.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kPiece = 512 << 10;

// The bytes that one rank has for another.
struct Mailbox {
  std::atomic<std::size_t> bytes;  // 0: empty
  alignas(64) unsigned char data[kPiece];
};

struct Shared {
  std::atomic<int> arrived;
  alignas(64) Mailbox boxes[];  // of sender and receiver
};

struct Communicator {
  int rank, ranks;
  Shared* shared;
  std::size_t bytes;
  Mailbox& box(int from, int to) { return shared->boxes[from * ranks + to]; }
};

struct Transfer {
  Communicator* comm;
  int peer;
  bool is_send;
  unsigned char* data;
  std::size_t left;
  cudaStream_t stream;
};

thread_local std::vector<Transfer> group;
thread_local bool in_group = false;

// Moves what can be moved now of the first transfer with this peer in this direction. False: an error of
// CUDA.
bool step(Transfer& t) {
  Communicator& c = *t.comm;
  Mailbox& box = t.is_send ? c.box(c.rank, t.peer) : c.box(t.peer, c.rank);
  std::size_t waiting = box.bytes.load(std::memory_order_acquire);
  if ((waiting == 0) != t.is_send) return true;
  std::size_t moved = t.is_send ? std::min(t.left, kPiece) : waiting;
  if (moved > t.left) return false;  // the two sides disagree about how much there is
  void* to = t.is_send ? box.data : t.data;
  const void* from = t.is_send ? t.data : box.data;
  cudaMemcpyKind kind = t.is_send ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  if (cudaMemcpyAsync(to, from, moved, kind, t.stream) != cudaSuccess) return false;
  if (cudaStreamSynchronize(t.stream) != cudaSuccess) return false;
  box.bytes.store(t.is_send ? moved : 0, std::memory_order_release);
  t.data += moved;
  t.left -= moved;
  return true;
}

ncclResult_t carry_out(std::vector<Transfer>& transfers) {
  for (bool moved = true; !transfers.empty();) {
    if (!moved) std::this_thread::yield();
    moved = false;
    std::vector<bool> seen(static_cast<std::size_t>(2 * transfers.front().comm->ranks));
    for (Transfer& t : transfers) {
      auto lane = static_cast<std::size_t>(2 * t.peer + t.is_send);
      if (seen[lane]) continue;  // what goes to a peer goes in order
      seen[lane] = true;
      std::size_t before = t.left;
      if (!step(t)) return ncclUnhandledCudaError;
      moved |= t.left != before;
    }
    std::erase_if(transfers, [](const Transfer& t) { return t.left == 0; });
  }
  return ncclSuccess;
}

ncclResult_t add(Transfer t) {
  if (t.left > 0) group.push_back(t);
  return in_group ? ncclSuccess : ncclGroupEnd();
}

int own_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank ? std::atoi(rank) : 0;
}

// Before the program looks for GPUs.
[[gnu::constructor]] void take_gpu() {
  const char* gpus = std::getenv("MCKPT_TEST_GPUS");
  if (gpus && std::atoi(gpus) > 0)
    setenv("CUDA_VISIBLE_DEVICES", std::to_string(own_rank() % std::atoi(gpus)).c_str(), 1);
}

std::string name_of(const ncclUniqueId& id) { return std::string("/mckpt_nccl_") + id.internal; }

using DriverUuid = int (*)(unsigned char*, int device);
DriverUuid driver_uuid = nullptr;

int uuid_of_rank(unsigned char* sixteen, int device) {
  int result = driver_uuid(sixteen, device);
  sixteen[0] = static_cast<unsigned char>(sixteen[0] ^ own_rank());
  return result;
}

}  // namespace

extern "C" {

// The program looks up the driver's functions by name. Ranks on one GPU each see another one: the identity
// that the driver gives is changed by the rank.
void* dlsym(void* handle, const char* name) {
  using Fn = void* (*)(void*, const char*);
  static const Fn real = reinterpret_cast<Fn>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  void* found = real(handle, name);
  if (!found || std::string_view(name) != "cuDeviceGetUuid_v2") return found;
  driver_uuid = reinterpret_cast<DriverUuid>(found);
  return reinterpret_cast<void*>(&uuid_of_rank);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> made = 0;
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "%d_%d", getpid(), made++);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t*) {
  auto count = static_cast<std::size_t>(ranks);
  std::size_t bytes = sizeof(Shared) + count * count * sizeof(Mailbox);
  std::string name = name_of(id);
  int fd = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return ncclSystemError;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return ncclSystemError;
  auto* shared = static_cast<Shared*>(at);
  if (shared->arrived.fetch_add(1) + 1 == ranks) shm_unlink(name.c_str());
  *comm = reinterpret_cast<ncclComm_t>(new Communicator{rank, ranks, shared, bytes});
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  auto* bytes = static_cast<unsigned char*>(const_cast<void*>(data));
  return add({reinterpret_cast<Communicator*>(comm), peer, true, bytes, count, stream});
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(
      {reinterpret_cast<Communicator*>(comm), peer, false, static_cast<unsigned char*>(data), count, stream});
}

ncclResult_t ncclGroupStart() {
  in_group = true;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  in_group = false;
  std::vector<Transfer> transfers = std::move(group);
  group.clear();
  return carry_out(transfers);
}

ncclResult_t ncclAllGather(const void* mine, void* all, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const auto& c = *reinterpret_cast<Communicator*>(comm);
  auto* out = static_cast<unsigned char*>(all);
  ncclGroupStart();
  for (int peer = 0; peer < c.ranks; peer++) {
    ncclSend(mine, count, type, peer, comm, stream);
    ncclRecv(out + static_cast<std::size_t>(peer) * count, count, type, peer, comm, stream);
  }
  return ncclGroupEnd();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  auto* c = reinterpret_cast<Communicator*>(comm);
  munmap(c->shared, c->bytes);
  delete c;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }
}
