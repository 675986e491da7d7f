// The functions of the mpi module behind `MckptModule::functions`: a thin C layer over MPI. Each function
// that can fail returns null or the text of the error (runtime/modules/module_abi.h). Counts have MPI's own
// width, 32 bits: comm/mpi.cc cuts what is larger into pieces.
//
// New functions are added at the end of the table; struct_size shows a caller which ones a module has.
#pragma once

#include <cstdint>

extern "C" {

enum MckptThreads {
  kMckptThreadsSingle,
  kMckptThreadsFunneled,
  kMckptThreadsSerialized,
  kMckptThreadsMultiple
};
enum MckptReduce { kMckptReduceSum, kMckptReduceMax };

// Communicators are opaque pointers that the module owns; release() frees those that split() made.
struct MckptCommTable {
  std::uint32_t struct_size;
  // Joins the job, at the first call only, and gives the communicator of all ranks, which belongs to the
  // module.
  const char* (*init)(MckptThreads threads, void** world);
  const char* (*rank)(void* comm, std::int32_t* rank);
  const char* (*size)(void* comm, std::int32_t* size);
  const char* (*barrier)(void* comm);
  const char* (*broadcast)(void* comm, void* data, std::int32_t bytes, std::int32_t root);
  // `mine` may be this rank's place in `all`.
  const char* (*all_gather)(void* comm, const void* mine, std::int32_t bytes, void* all);
  const char* (*all_gather_v)(void* comm, const void* mine, std::int32_t bytes, void* all,
                              const std::int32_t* counts, const std::int32_t* begins);
  const char* (*all_reduce)(void* comm, std::int64_t* data, std::int32_t count, MckptReduce op);
  // Ranks of one colour form a communicator, ordered by key and rank; a rank with a negative colour gets
  // null.
  const char* (*split)(void* comm, std::int32_t color, std::int32_t key, void** part);
  void (*release)(void* part);         // a communicator made by split
  void (*abort)(std::int32_t status);  // ends every rank of the job; returns only if that fails
  const char* (*finalize)();
  // Every rank sends a part to every rank; counts and begins describe the parts in bytes, by rank.
  const char* (*exchange)(void* comm, const void* send, const std::int32_t* send_counts,
                          const std::int32_t* send_begins, void* receive, const std::int32_t* receive_counts,
                          const std::int32_t* receive_begins);
};
}
