#include "io/file/remove_tree.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include "core/base/text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

// As if something were mounted on everything of that name.
IsMount mounted_on(const std::string& name) {
  return [name](int fd, int) { return fs::read_symlink(cat("/proc/self/fd/", fd)).filename() == name; };
}

TEST(RemoveTree, RemovesAllThatIsIn) {
  TempFolder temp;
  temp.put("out/a/b/c", "1");
  temp.put("out/.hidden", "2");
  temp.put("kept/x", "3");
  fs::create_symlink(temp.at("kept"), temp.at("out/link"));
  EXPECT_EQ(remove_tree(temp.at("out")).error, 0);
  EXPECT_FALSE(fs::exists(temp.at("out")));
  EXPECT_TRUE(fs::exists(temp.at("kept/x")));
  EXPECT_EQ(remove_tree(temp.at("out")).error, 0);  // not there
}

TEST(RemoveTree, EmptiesAFolderThatStays) {
  TempFolder temp;
  temp.put("out/a/b", "1");
  EXPECT_EQ(empty_tree(temp.at("out")).error, 0);
  EXPECT_TRUE(fs::is_empty(temp.at("out")));
}

// Nothing at all is removed: what is left of a folder without its first files is worth less than all of it.
TEST(RemoveTree, RemovesNothingOfAFolderWithAMount) {
  TempFolder temp;
  temp.put("out/first", "1");
  temp.put("out/sub/hf_assets/model", "2");
  for (bool whole : {true, false}) {
    RemovalFault fault = (whole ? remove_tree : empty_tree)(temp.at("out"), mounted_on("hf_assets"), "");
    EXPECT_EQ(fault.error, EBUSY);
    EXPECT_EQ(fault_text(fault), "Device or resource busy (sub/hf_assets: something is mounted there)");
    EXPECT_TRUE(fs::exists(temp.at("out/first")));
    EXPECT_TRUE(fs::exists(temp.at("out/sub/hf_assets/model")));
  }
  EXPECT_EQ(mounts_below(temp.at("out"), mounted_on("hf_assets")), std::vector<std::string>{"sub/hf_assets"});
  EXPECT_EQ(mounts_below(temp.at("out"), mounted_on("first")),
            std::vector<std::string>{"first"});  // on a file
}

// A mount that came after the first look.
TEST(RemoveTree, IsAskedAtEachFolderThatIsEntered) {
  TempFolder temp;
  temp.put("out/hf_assets/model", "1");
  int asked = 0;
  IsMount late = [&](int fd, int above) { return mounted_on("hf_assets")(fd, above) && ++asked > 1; };
  EXPECT_EQ(remove_tree(temp.at("out"), late).error, EBUSY);
  EXPECT_TRUE(fs::exists(temp.at("out/hf_assets/model")));
}

TEST(RemoveTree, KnowsTheMountsOfThisSystem) {
  // /proc is a mount wherever tests run.
  int root = ::open("/", O_RDONLY | O_DIRECTORY), proc = ::open("/proc", O_RDONLY | O_DIRECTORY),
      self = ::open("/proc/self", O_RDONLY | O_DIRECTORY);
  EXPECT_TRUE(is_other_mount(proc, root));
  EXPECT_FALSE(is_other_mount(self, proc));
  for (int fd : {root, proc, self}) ::close(fd);
}

TEST(RemoveTree, SaysWhatCannotBeRemoved) {
  TempFolder temp;
  temp.put("file", "1");
  EXPECT_EQ(remove_tree(temp.at("file")).error, ENOTDIR);
  EXPECT_EQ(fault_text({ENOTDIR, ""}), "Not a directory");
}

}  // namespace
}  // namespace mckpt::impl
