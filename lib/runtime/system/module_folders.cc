// Finds the place of the library by the link map of the object that contains this function: a shared library has a
// path there, the program itself has none and is found by the link /proc/self/exe.
#include "runtime/system/module_folders.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// The file that contains this code, without links; empty if the system does not say it.
std::filesystem::path own_file() {
  Dl_info info{};
  link_map* object = nullptr;
  std::error_code failed;
  bool shared = ::dladdr1(reinterpret_cast<const void*>(&module_folders), &info,
                          reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0 &&
                object && object->l_name && *object->l_name;
  std::filesystem::path file = std::filesystem::canonical(shared ? object->l_name : "/proc/self/exe", failed);
  return failed ? std::filesystem::path() : file;
}

}  // namespace

std::vector<std::string> module_folders(std::span<const std::string> first) {
  std::vector<std::string> folders;
  for (const std::string& folder : first) folders.push_back(folder.ends_with('/') ? folder : cat(folder, "/"));
  if (std::filesystem::path file = own_file(); !file.empty()) {
    std::string own = cat(file.parent_path().string(), "/");
    for (const char* below : {"", "mckpt/", "../lib/mckpt/"}) folders.push_back(cat(own, below));
  }
  return folders;
}

}  // namespace mckpt::impl
