// The nccl module: MckptNcclTable over NCCL, with communicators that do not block. It is the one file that
// includes nccl.h.
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "live/cuda/nccl_table.h"
#include "runtime/modules/module_abi.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// Throws NCCL's own words, with the last error of the communicator. A call in progress is not an error.
void check(ncclResult_t result, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  std::string text = ncclGetErrorString(result);
  const char* last = ncclGetLastError(comm);
  if (last && *last) text += std::string(": ") + last;
  throw std::runtime_error(text);
}

ncclComm_t comm_at(void* comm) { return static_cast<ncclComm_t>(comm); }

// The number 22809 is version "2.28.9".
std::string spelled(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

const char* make_id(unsigned char* id) {
  return guarded([&] {
    ncclUniqueId made;
    check(ncclGetUniqueId(&made));
    static_assert(sizeof made == kMckptNcclIdBytes);
    std::memcpy(id, &made, sizeof made);
  });
}

// Starts the connection; settled() reports when all ranks are connected.
const char* connect(const unsigned char* id, std::int32_t ranks, std::int32_t rank, void** comm) {
  return guarded([&] {
    ncclUniqueId made;
    std::memcpy(&made, id, sizeof made);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t connected = nullptr;
    check(ncclCommInitRankConfig(&connected, ranks, made, rank, &config));
    *comm = connected;
  });
}

// The state of the communicator's last call, which NCCL carries out in a thread of its own.
const char* settled(void* comm, bool* settled) {
  return guarded([&] {
    ncclResult_t state = ncclSuccess;
    check(ncclCommGetAsyncError(comm_at(comm), &state), comm_at(comm));
    check(state, comm_at(comm));
    *settled = state == ncclSuccess;
  });
}

const char* all_gather(void* comm, const void* mine, void* all, std::int64_t bytes, void* stream) {
  return guarded([&] {
    check(ncclAllGather(mine, all, static_cast<std::size_t>(bytes), ncclUint8, comm_at(comm),
                        static_cast<cudaStream_t>(stream)),
          comm_at(comm));
  });
}

// Sends and receives of all parts as one group, which NCCL carries out at once and in any order.
const char* exchange(void* comm, const MckptNcclPart* sends, std::int32_t send_count,
                     const MckptNcclPart* receives, std::int32_t receive_count, void* stream) {
  return guarded([&] {
    ncclComm_t c = comm_at(comm);
    auto s = static_cast<cudaStream_t>(stream);
    ncclResult_t first = ncclSuccess;
    auto keep = [&](ncclResult_t result) {
      if (first == ncclSuccess && result != ncclInProgress) first = result;
    };
    // A group that was started is always ended, also after an error in it.
    check(ncclGroupStart(), c);
    for (const MckptNcclPart* p = sends; p != sends + send_count; p++)
      keep(ncclSend(p->data, static_cast<std::size_t>(p->bytes), ncclUint8, p->peer, c, s));
    for (const MckptNcclPart* p = receives; p != receives + receive_count; p++)
      keep(ncclRecv(p->data, static_cast<std::size_t>(p->bytes), ncclUint8, p->peer, c, s));
    keep(ncclGroupEnd());
    check(first, c);
  });
}

const char* finish(void* comm) {
  return guarded([&] { check(ncclCommFinalize(comm_at(comm)), comm_at(comm)); });
}

const char* release(void* comm) {
  return guarded([&] { check(ncclCommDestroy(comm_at(comm))); });
}

const char* abort_calls(void* comm) {
  return guarded([&] { check(ncclCommAbort(comm_at(comm))); });
}

const char* describe(MckptFactSink sink, void* context) {
  return guarded([&] {
    int version = 0;
    check(ncclGetVersion(&version));
    sink(context, "version", spelled(version).c_str());
  });
}

constexpr MckptNcclTable kFunctions = {
    sizeof(MckptNcclTable), make_id, connect, settled, all_gather, exchange, finish, release, abort_calls};

constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "nccl", describe, &kFunctions};

}  // namespace
}  // namespace mckpt::impl

// Turns off NVLink multicast (NVLS), which takes a resource that all jobs of the host share and makes a
// gather hardly faster. A user who wants it sets the variable, which is not overwritten.
MCKPT_EXPORT_MODULE {
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  return &mckpt::impl::kModule;
}
