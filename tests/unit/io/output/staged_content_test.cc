// Hidden folders that somebody else prepared, or changed.
#include "io/output/staged_content.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output/output_files.h"
#include "tests/support/staged.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace staged_content_test {

using namespace staged;

TEST(StagedContent, IsNotOneThatOthersMayWriteInto) {
  TempFolder temp;
  { StagedFolder folder(temp.at("out"), kNew, "plan"); }
  const std::string staging = temp.at(".out.mckpt-tmp");
  fs::permissions(staging, fs::perms::all);
  const std::string advice = advice_of([&] { StagedFolder(temp.at("out"), kNew, "plan"); });
  EXPECT_NE(advice.find("chmod go-w " + staging), std::string::npos) << advice;
  for (const StagedFolder::Options& options : {kNew, kReplace, kResume})
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "plan"); }), "MC3003");
  fs::permissions(staging, fs::perms::owner_all);
  EXPECT_TRUE(StagedFolder(temp.at("out"), kNew, "plan").resumes());
  if (::geteuid() != 0) GTEST_SKIP() << "no other account";
  ASSERT_EQ(::chown(staging.c_str(), 12345, 12345), 0);
  for (const StagedFolder::Options& options : {kNew, kReplace, kResume})
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "plan"); }), "MC3003");
  EXPECT_FALSE(fs::exists(staging + "/.owner"));
}

// A folder that was prepared: links, second names, pipes, and what nobody planned.
TEST(StagedContent, KeepsPlainFilesOfThePlanAlone) {
  TempFolder temp;
  for (const char* name : {".plan", "a", "r0/b", "c", "d", "more", "r1/evil", "elsewhere/x"})
    temp.put(cat("folder/", name), name);
  temp.put("victim", "mine");
  const std::string folder = temp.at("folder");
  for (const char* name : {"c", "d"}) fs::remove(cat(folder, "/", name));
  fs::create_symlink(temp.at("victim"), folder + "/c");
  fs::create_hard_link(temp.at("victim"), folder + "/d");
  fs::create_symlink(temp.at("victim"), folder + "/.done");
  fs::create_directory_symlink(temp.path(), folder + "/r2");
  ASSERT_EQ(::mkfifo((folder + "/e").c_str(), 0600), 0);
  keep_only(folder, {"a", "r0/b", "c", "d", "e", "r1/f", "r2/g"});
  EXPECT_EQ(content(folder), ".plan=.plan a=a r0=/ r1=/");
  EXPECT_EQ(content(folder + "/r0"), "b=r0/b");
  EXPECT_EQ(content(folder + "/r1"), "");
  EXPECT_EQ(content(temp.path()), "folder=/ victim=mine");
}

// Also in the moment after a run looked.
TEST(OutputFiles, FollowNoLink) {
  TempFolder temp;
  temp.put("victim", "mine");
  fs::create_directories(temp.at("out"));
  fs::create_symlink(temp.at("victim"), temp.at("out/link"));
  fs::create_hard_link(temp.at("victim"), temp.at("out/second"));
  fs::create_directory_symlink(temp.path(), temp.at("out/folder"));
  ASSERT_EQ(::mkfifo(temp.at("out/pipe").c_str(), 0600), 0);
  using Begin = OutputFiles::Begin;
  for (Begin begin : {Begin::kGoOn, Begin::kReplace})
    for (const char* name : {"link", "second", "folder/victim", "pipe"})
      EXPECT_EQ(code_of([&] { OutputFiles(temp.at("out"), {{name, 2}}, begin); }), "MC3001") << name;
  EXPECT_EQ(content(temp.path()), "out=/ victim=mine");
}

TEST(OutputFiles, KeepNothingBehindTheEnd) {
  TempFolder temp;
  temp.put("out/a", "0123456789");
  temp.put("out/b", "01");
  OutputFiles out(temp.at("out"), {{"a", 4}, {"b", 4}}, OutputFiles::Begin::kGoOn);
  EXPECT_EQ(content(temp.at("out")), std::string("a=0123 b=01\0\0", 13));
}

}  // namespace staged_content_test
}  // namespace mckpt::impl
