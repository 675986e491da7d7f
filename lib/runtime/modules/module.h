// Finding and loading modules (runtime/modules/module_abi.h), in the folders of
// runtime/system/module_folders.h. A loaded module stays until the process ends: libtorch, CUDA and MPI do
// not survive being unloaded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/modules/module_abi.h"

namespace mckpt::impl {

struct ModuleKind {
  std::string_view name;     // "mpi": the file is libmckpt_mpi.so
  std::string_view purpose;  // "parallel runs over ranks"
  std::string_view get;      // how to get it
};

std::span<const ModuleKind> module_kinds();

struct Module {
  std::string path;
  const MckptModule* table;
};

// The path of a module's file, or "" when no folder has it.
std::string find_module(std::string_view name);

// Loads a module at the first call. Throws Error(kModuleMissing) that says how to get it, or
// Error(kModuleMismatch). pre: `name` is one of module_kinds().
const Module& load_module(std::string_view name);

// The functions of a module, a table that begins with its own struct_size. Throws Error(kModuleMismatch) when
// it has fewer than are wanted.
const void* module_functions(std::string_view name, std::size_t wanted_bytes);
template <typename Table>
const Table& module_functions(std::string_view name) {
  return *static_cast<const Table*>(module_functions(name, sizeof(Table)));
}

// The same for one file that is known.
Module load_module_file(const std::string& path, std::string_view name);

// What a module says about itself, in its order. Throws Error(kModuleMissing) when its library does not work
// here.
std::vector<std::pair<std::string, std::string>> describe_module(const Module& module);

}  // namespace mckpt::impl
