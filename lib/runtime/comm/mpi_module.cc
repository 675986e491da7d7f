// The mpi module: MckptCommTable over MPI. It is the one file that includes mpi.h, and is built as
// libmckpt_mpi.so, so that mckpt itself runs on hosts without MPI. Errors of MPI are returned as texts
// (MPI_ERRORS_RETURN) and do not end the process.
#define OMPI_SKIP_MPICXX 1
#include <dlfcn.h>
#include <mpi.h>

#include <stdexcept>

#include "runtime/comm/comm_table.h"
#include "runtime/modules/module_abi.h"
#include "runtime/modules/module_guard.h"

namespace mckpt::impl {
namespace {

// Throws the text of MPI's error.
void check(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw std::runtime_error(length > 0 ? text : "an error without a text");
}

// A handle is a pointer to an MPI_Comm: split() makes it, release() frees it.
MPI_Comm communicator(void* handle) { return *static_cast<MPI_Comm*>(handle); }

int thread_level(MckptThreads threads) {
  switch (threads) {
    case kMckptThreadsSingle:
      return MPI_THREAD_SINGLE;
    case kMckptThreadsFunneled:
      return MPI_THREAD_FUNNELED;
    case kMckptThreadsSerialized:
      return MPI_THREAD_SERIALIZED;
    default:
      return MPI_THREAD_MULTIPLE;
  }
}

// Open MPI loads components of its own that look for its symbols in the global scope. A library that was
// loaded as a dependency of this module is not in that scope, so it is opened once more, globally.
void make_mpi_global() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&MPI_Init_thread), &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

// Does nothing if MPI is initialised already, as in a Python process with mpi4py.
const char* init(MckptThreads threads, void** world) {
  return guarded([&] {
    static MPI_Comm all = MPI_COMM_WORLD;
    int done = 0, level = 0;
    check(MPI_Initialized(&done));
    if (!done) {
      make_mpi_global();
      check(MPI_Init_thread(nullptr, nullptr, thread_level(threads), &level));
      if (level < thread_level(threads))
        throw std::runtime_error("this MPI library does not support calls from several threads");
      check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    }
    *world = &all;
  });
}

const char* rank(void* comm, std::int32_t* rank) {
  return guarded([&] { check(MPI_Comm_rank(communicator(comm), rank)); });
}

const char* size(void* comm, std::int32_t* size) {
  return guarded([&] { check(MPI_Comm_size(communicator(comm), size)); });
}

const char* barrier(void* comm) {
  return guarded([&] { check(MPI_Barrier(communicator(comm))); });
}

const char* broadcast(void* comm, void* data, std::int32_t bytes, std::int32_t root) {
  return guarded([&] { check(MPI_Bcast(data, bytes, MPI_BYTE, root, communicator(comm))); });
}

// MPI forbids one memory for both sides, except by MPI_IN_PLACE.
const char* all_gather(void* comm, const void* mine, std::int32_t bytes, void* all) {
  return guarded([&] {
    int rank = 0;
    check(MPI_Comm_rank(communicator(comm), &rank));
    bool in_place = mine == static_cast<const char*>(all) + static_cast<std::ptrdiff_t>(rank) * bytes;
    check(MPI_Allgather(in_place ? MPI_IN_PLACE : mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE,
                        communicator(comm)));
  });
}

const char* all_gather_v(void* comm, const void* mine, std::int32_t bytes, void* all,
                         const std::int32_t* counts, const std::int32_t* begins) {
  return guarded([&] {
    check(MPI_Allgatherv(mine, bytes, MPI_BYTE, all, counts, begins, MPI_BYTE, communicator(comm)));
  });
}

const char* all_reduce(void* comm, std::int64_t* data, std::int32_t count, MckptReduce op) {
  return guarded([&] {
    check(MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_INT64_T, op == kMckptReduceSum ? MPI_SUM : MPI_MAX,
                        communicator(comm)));
  });
}

// A negative colour takes part and gets no communicator.
const char* split(void* comm, std::int32_t color, std::int32_t key, void** part) {
  return guarded([&] {
    MPI_Comm made = MPI_COMM_NULL;
    check(MPI_Comm_split(communicator(comm), color < 0 ? MPI_UNDEFINED : color, key, &made));
    *part = made == MPI_COMM_NULL ? nullptr : new MPI_Comm(made);
  });
}

// pre: made by split().
void release(void* part) {
  auto* comm = static_cast<MPI_Comm*>(part);
  MPI_Comm_free(comm);
  delete comm;
}

void abort_job(std::int32_t status) { MPI_Abort(MPI_COMM_WORLD, status); }

const char* finalize() {
  return guarded([] {
    int done = 0;
    check(MPI_Finalized(&done));
    if (!done) check(MPI_Finalize());
  });
}

// Every rank sends a part to every rank.
const char* exchange(void* comm, const void* send, const std::int32_t* send_counts,
                     const std::int32_t* send_begins, void* receive, const std::int32_t* receive_counts,
                     const std::int32_t* receive_begins) {
  return guarded([&] {
    check(MPI_Alltoallv(send, send_counts, send_begins, MPI_BYTE, receive, receive_counts, receive_begins,
                        MPI_BYTE, communicator(comm)));
  });
}

// Reports the name and version of the MPI library. May be called before MPI_Init.
const char* describe(MckptFactSink sink, void* context) {
  return guarded([&] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    check(MPI_Get_library_version(text, &length));
    std::string_view version(text, static_cast<std::size_t>(length));
    sink(context, "version", std::string(version.substr(0, version.find_first_of(",\n"))).c_str());
  });
}

// The table that module_functions() returns to mckpt.
constexpr MckptCommTable kFunctions = {
    sizeof(MckptCommTable), init,       rank,  size,    barrier,   broadcast, all_gather,
    all_gather_v,           all_reduce, split, release, abort_job, finalize,  exchange};

constexpr MckptModule kModule = {kMckptModuleAbi, sizeof(MckptModule), "mpi", describe, &kFunctions};

}  // namespace
}  // namespace mckpt::impl

MCKPT_EXPORT_MODULE { return &mckpt::impl::kModule; }
