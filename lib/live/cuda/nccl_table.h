// The functions of the nccl module behind `MckptModule::functions`: communicators over the GPUs of ranks. No
// function waits: after each one that takes a communicator, `settled` is called until it reports that the
// call has ended, before the next. So a rank that is lost makes an error and not a hang. Streams are CUDA's
// own handles, and the GPU is the calling thread's.
//
//   make_id (rank 0) -> broadcast -> connect, settled? ... -> all_gather, settled? ... -> finish, settled?, release
#pragma once

#include <cstdint>

extern "C" {

enum { kMckptNcclIdBytes = 128 };

// A part of an exchange: the other rank, and memory of the GPU.
struct MckptNcclPart {
  std::int32_t peer;
  void* data;
  std::int64_t bytes;
};

// Communicators are opaque pointers; each ends in release() or in abort().
struct MckptNcclTable {
  std::uint32_t struct_size;
  // The identity of a new communicator: one rank makes it, and all ranks pass it to connect.
  const char* (*make_id)(unsigned char* id);
  const char* (*connect)(const unsigned char* id, std::int32_t ranks, std::int32_t rank, void** comm);
  // Whether the last call has ended. Fails with the first error of any call so far.
  const char* (*settled)(void* comm, bool* settled);
  // `mine` may be the rank's own place in `all`.
  const char* (*all_gather)(void* comm, const void* mine, void* all, std::int64_t bytes, void* stream);
  const char* (*exchange)(void* comm, const MckptNcclPart* sends, std::int32_t send_count,
                          const MckptNcclPart* receives, std::int32_t receive_count, void* stream);
  // The two ways to end a communicator: finish, and release once that has settled; or abort, at any time.
  const char* (*finish)(void* comm);
  const char* (*release)(void* comm);
  const char* (*abort)(void* comm);
};
}
