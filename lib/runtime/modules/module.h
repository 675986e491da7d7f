// Finding and loading modules (runtime/modules/module_abi.h) in the folders of
// runtime/system/module_folders.h. A loaded module stays until the process ends: libtorch, CUDA and MPI do
// not survive being unloaded. So a module has one place in a process, which the first load_module() decides:
// a program with folders of its own calls load_module() before the first use.
//
//   module_functions<MckptCommTable>("mpi")    find libmckpt_mpi.so, dlopen, check the versions, return its table
//
// A module is loaded only when a command needs it: loading libtorch takes half a second, reading headers
// takes milliseconds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/modules/module_abi.h"

namespace mckpt::impl {

// A module that mckpt can use, for lists and messages.
struct ModuleKind {
  std::string_view name;      // "mpi": the file is libmckpt_mpi.so
  std::string_view purpose;   // "parallel runs over ranks"
  std::string_view get;       // how to get it in a source tree
  std::string_view source{};  // of a module that a wheel has as a source
};

std::span<const ModuleKind> module_kinds();

// How to get a module here. Beside a wheel's modules are the sources of those that it cannot have inside,
// because each MPI and each libtorch needs another binary; one command builds them.
std::string how_to_get(std::string_view name, std::span<const std::string> folders = {});

// A loaded module: the path of its file, and its table, which is valid until the process ends.
struct Module {
  std::string path;
  const MckptModule* table;
};

// The path of a module's file, or "" when no folder has it. `folders` are searched before the library's own.
std::string find_module(std::string_view name, std::span<const std::string> folders = {});

// Loads a module at the first call, and returns the loaded one later, whatever the folders. Thread-safe.
// Throws Error(kModuleMissing) with a help that names how to get it, or Error(kModuleMismatch). pre: `name`
// is one of module_kinds().
const Module& load_module(std::string_view name, std::span<const std::string> folders = {});

// The functions of a module, a table that begins with its own struct_size. Throws Error(kModuleMismatch) if
// the table is smaller than the wanted one.
const void* module_functions(std::string_view name, std::size_t wanted_bytes);
template <typename Table>
const Table& module_functions(std::string_view name) {
  return *static_cast<const Table*>(module_functions(name, sizeof(Table)));
}

// Loads one file of a known path, every time it is called: for tests and `mckpt env`.
Module load_module_file(const std::string& path, std::string_view name);

// The module's description of itself, as (key, value) pairs in the module's order, such as ("version",
// "2.11.0"). Throws Error(kModuleMissing) if the module's library does not work on this host.
std::vector<std::pair<std::string, std::string>> describe_module(const Module& module);

}  // namespace mckpt::impl
