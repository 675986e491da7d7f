// The functions of the nccl module behind `MckptModule::functions`: a communicator over the GPUs of ranks.
// None of them waits: after each that takes a communicator, `settled` is asked until it says so, before the
// next. Streams are CUDA's own handles, and the GPU is the calling thread's.
#pragma once

#include <cstdint>

extern "C" {

enum { kMckptNcclIdBytes = 128 };

struct MckptNcclPart {
  std::int32_t peer;
  void* data;
  std::int64_t bytes;
};

struct MckptNcclTable {
  std::uint32_t struct_size;
  // What the ranks of a communicator recognize each other by: one makes it, all are given it.
  const char* (*make_id)(unsigned char* id);
  const char* (*connect)(const unsigned char* id, std::int32_t ranks, std::int32_t rank, void** comm);
  // Whether the last call has come to its end. Fails with what has gone wrong in any call so far.
  const char* (*settled)(void* comm, bool* settled);
  // `mine` may be its own place in `all`.
  const char* (*all_gather)(void* comm, const void* mine, void* all, std::int64_t bytes, void* stream);
  const char* (*exchange)(void* comm, const MckptNcclPart* sends, std::int32_t send_count,
                          const MckptNcclPart* receives, std::int32_t receive_count, void* stream);
  // The two ends of a communicator: after finish, once settled, release; or abort, whatever goes on.
  const char* (*finish)(void* comm);
  const char* (*release)(void* comm);
  const char* (*abort)(void* comm);
};
}
