// Finds a module's file, loads it, and checks that it is of this build before any of its functions is
// called. A module that is missing and one that does not fit are different errors: the first is installed,
// the second built anew.
#include "runtime/modules/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "core/base/error.h"
#include "runtime/system/module_folders.h"

namespace mckpt::impl {
namespace {

// All modules of mckpt, with the way to get each.
constexpr ModuleKind kKinds[] = {
    {"mpi", "runs over several ranks (Open MPI)",
     "apt-get install libopenmpi-dev openmpi-bin, and build with MCKPT_MPI=ON", "runtime/comm/mpi_module.cc"},
    {"torch", "the live sharded model (libtorch on the CPU)",
     "scripts/bootstrap `torch`, and build with MCKPT_TORCH=ON", "live/device/torch_module.cc"},
    {"cuda", "GPUs (NVIDIA's driver)", "build with MCKPT_CUDA=ON; needs NVIDIA's driver where it runs"},
    {"nccl", "the GPUs of several ranks together (NCCL, as it comes with libtorch)",
     "a torch wheel with CUDA 12.8 or newer (scripts/bootstrap `torch`), and build with MCKPT_NCCL=ON",
     "live/cuda/nccl_module.cc"},
};

// "libmckpt_mpi.so".
std::string file_name(std::string_view name) { return cat("libmckpt_", name, ".so"); }

// kModuleMissing with its help.
Error missing(std::string_view name, std::string message) {
  Error e(Code::kModuleMissing, std::move(message));
  e.help(cat(how_to_get(name), "; `mckpt env` shows which modules are here"));
  return e;
}

// kModuleMismatch with its help.
Error mismatch(std::string message) {
  Error e(Code::kModuleMismatch, std::move(message));
  e.help("build mckpt and its modules together: scripts/quickstart");
  return e;
}

// Throws kModuleMismatch unless the table is of this version of the interface and of the module of this name.
void check_table(const MckptModule* table, std::string_view name) {
  if (!table) throw mismatch(cat("the ", name, " module has no table of functions"));
  if (table->abi_version != kMckptModuleAbi)
    throw mismatch(cat("the ", name, " module has another version of the module interface"))
        .expected(kMckptModuleAbi)
        .found(table->abi_version);
  if (table->struct_size < sizeof(MckptModule))
    throw mismatch(cat("the table of the ", name, " module is too small"))
        .expected(cat(sizeof(MckptModule), " bytes or more"))
        .found(table->struct_size);
  if (!table->name || table->name != name)
    throw mismatch("this is another module")
        .expected(name)
        .found(table->name ? escaped(table->name) : "no name");
}

}  // namespace

std::span<const ModuleKind> module_kinds() { return kKinds; }

std::string how_to_get(std::string_view name, std::span<const std::string> folders) {
  for (const ModuleKind& kind : kKinds) {
    if (kind.name != name) continue;
    for (const std::string& folder : module_folders(folders))
      if (!kind.source.empty() && access(cat(folder, "../src/", kind.source).c_str(), R_OK) == 0)
        return cat("python -m mckpt.modules ", name, " builds it for the ", name == "mpi" ? "MPI" : "torch",
                   " of this machine");
    return std::string(kind.get);
  }
  return "mckpt env lists the modules";
}

// The first folder that has the file.
std::string find_module(std::string_view name, std::span<const std::string> folders) {
  for (const std::string& folder : module_folders(folders))
    if (std::string path = folder + file_name(name); access(path.c_str(), R_OK) == 0) return path;
  return "";
}

// RTLD_LOCAL: the symbols of one module's libraries do not reach another module's libraries.
Module load_module_file(const std::string& path, std::string_view name) {
  return with_file(path, [&] {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char* reason = dlerror();
      throw missing(name, cat("the ", name, " module does not load"))
          .note(escaped(reason ? reason : "no reason", 500));
    }
    auto entry = reinterpret_cast<MckptModuleEntry>(dlsym(library, "mckpt_module"));
    if (!entry) throw mismatch("this library is not a module of mckpt").expected("a function mckpt_module");
    const MckptModule* table = entry();
    check_table(table, name);
    return Module{path, table};
  });
}

// Loaded modules are never removed from the map, so references stay valid.
const Module& load_module(std::string_view name, std::span<const std::string> folders) {
  static std::mutex mutex;
  static std::map<std::string, Module, std::less<>> loaded;
  std::lock_guard lock(mutex);
  if (auto known = loaded.find(name); known != loaded.end()) return known->second;
  std::string path = find_module(name, folders);
  if (path.empty())
    throw missing(name, cat("the ", name, " module was not found"))
        .expected(cat(file_name(name), " in one of: ", listed(module_folders(folders))));
  return loaded.emplace(name, load_module_file(path, name)).first->second;
}

// A module of a newer build may have a larger table: functions are only added at its end.
const void* module_functions(std::string_view name, std::size_t wanted_bytes) {
  const Module& module = load_module(name);
  std::uint32_t bytes = 0;
  if (module.table->functions) std::memcpy(&bytes, module.table->functions, sizeof bytes);
  if (bytes < wanted_bytes)
    throw Error(Code::kModuleMismatch, cat("the table of functions of the ", name, " module is too small"))
        .file(module.path)
        .expected(cat(wanted_bytes, " bytes"))
        .found(cat(bytes, " bytes"));
  return module.table->functions;
}

std::vector<std::pair<std::string, std::string>> describe_module(const Module& module) {
  std::vector<std::pair<std::string, std::string>> facts;
  auto sink = [](void* context, const char* key, const char* value) {
    static_cast<decltype(facts)*>(context)->emplace_back(key, value);
  };
  if (const char* error = module.table->describe(sink, &facts))
    throw missing(module.table->name, cat("the ", module.table->name, " module does not work here"))
        .file(module.path)
        .note(escaped(error, 500));
  return facts;
}

}  // namespace mckpt::impl
