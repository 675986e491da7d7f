// Finds the place of the library by the link map of the object that contains this function: a shared library
// has a path there, the program itself has none and is found by the link /proc/self/exe.
#include "runtime/system/module_folders.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "runtime/system/folder_names.h"

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

// Where pip put the folder mckpt/lib of a wheel whose program it put into `own`, such as
// venv/lib/python3.12/site-packages/mckpt/lib for venv/bin. The version of Python is not known here, so only
// folders that exist are named; sorted.
std::vector<std::string> wheel_folders(const std::string& own) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  std::error_code failed;
  auto add = [&](const fs::path& folder) {
    if (fs::is_directory(folder, failed)) folders.push_back(cat(folder.string(), "/"));
  };
  add(fs::path(cat(own, "../mckpt/lib")));  // a folder of packages, whose programs are in bin/ beside them
  for (const char* lib : {"../lib", "../lib64"}) {
    std::vector<ListedEntry> entries;
    list_folder(cat(own, lib), entries);
    for (const ListedEntry& entry : entries) {
      if (!entry.name.starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"})
        add(fs::path(cat(own, lib)) / entry.name / packages / "mckpt/lib");
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

std::vector<std::string> module_folders(std::span<const std::string> first) {
  std::vector<std::string> folders;
  for (const std::string& folder : first)
    folders.push_back(folder.ends_with('/') ? folder : cat(folder, "/"));
  if (std::filesystem::path file = own_file(); !file.empty()) {
    std::string own = cat(file.parent_path().string(), "/");
    for (const char* below : {"", "mckpt/", "../lib/mckpt/"}) folders.push_back(cat(own, below));
    for (std::string& folder : wheel_folders(own)) folders.push_back(std::move(folder));
  }
  return folders;
}

}  // namespace mckpt::impl
