#include "runtime/system/module_folders.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// This program contains the library, so the library's folder is the program's.
TEST(ModuleFolders, OfTheCallerComeBeforeThoseOfTheLibrary) {
  std::string own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::vector<std::string> beside = {cat(own, "/"), cat(own, "/mckpt/"), cat(own, "/../lib/mckpt/")};
  EXPECT_EQ(module_folders(), beside);
  std::vector<std::string> folders = {"/site", "/other/"};
  std::vector<std::string> all = {"/site/", "/other/"};
  all.insert(all.end(), beside.begin(), beside.end());
  EXPECT_EQ(module_folders(folders), all);
}

}  // namespace
}  // namespace mckpt::impl
