// The C interface between mckpt and its modules: shared libraries libmckpt_<name>.so, each built against one
// heavy library (MPI, libtorch, CUDA) that mckpt itself never links. A module exports one symbol,
// mckpt_module.
//
// No exception crosses this border. A function that can fail returns null, or a text that describes the error
// and stays valid until the same thread calls into the module again.
//
//   mckpt  --dlopen-->  libmckpt_mpi.so: mckpt_module()  -->  MckptModule { 5, 40, "mpi", describe, functions }
//                                                                                                   |
//                                            MckptCommTable { struct_size, init, rank, size, ... } <-+
#pragma once

#include <cstdint>

extern "C" {

inline constexpr std::uint32_t kMckptModuleAbi = 5;

// Receives one fact of a module's description, such as "version" and "2.11.0".
using MckptFactSink = void (*)(void* context, const char* key, const char* value);

// The one table that every module has. It is a constant of the module.
struct MckptModule {
  std::uint32_t abi_version;  // kMckptModuleAbi of the module's build
  std::uint32_t struct_size;  // sizeof(MckptModule) of that build; newer ones may have more members
  const char* name;           // "mpi"
  const char* (*describe)(MckptFactSink sink, void* context);  // at least "version"
  const void* functions;  // the module's own table, such as MckptCommTable; null if it has none
};

using MckptModuleEntry = const MckptModule* (*)();
}

#define MCKPT_EXPORT_MODULE \
  extern "C" __attribute__((visibility("default"))) const MckptModule* mckpt_module()
