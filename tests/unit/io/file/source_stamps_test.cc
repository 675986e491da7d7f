#include "io/file/source_stamps.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>

#include "io/file/folder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChanged = "changed";

// "changed", "nothing", or another error.
template <typename Fn>
std::string told_by(Fn&& fn) {
  std::string text = thrown_by(fn);
  bool changed =
      text.starts_with("MC1002") && text.find("the file was changed while it was read") != text.npos;
  return changed ? kChanged : text;
}

std::string told() { return told_by(check_sources_unchanged); }

// Other bytes, with the size and the time of the last write that the file has.
void rewrite(const std::string& path, char byte) {
  auto written = fs::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << byte;
  fs::last_write_time(path, written);
}

TEST(SourceStamps, ToldIsAFileThatWasRewrittenUnderItsOldTime) {
  TempFolder folder;
  SourceStamps stamps;
  std::string path = folder.put("f", "abc");
  InputFile file(path);
  EXPECT_EQ(told(), "nothing");
  rewrite(path, 'x');
  EXPECT_EQ(told(), kChanged);
  EXPECT_EQ(stamps.first_changed(), path);
}

TEST(SourceStamps, ToldIsAFileThatWasReplacedUnderItsName) {
  TempFolder folder;
  SourceStamps stamps;
  InputFile file(folder.put("f", "abc"));
  fs::rename(folder.put("g", "abc"), folder.at("f"));
  EXPECT_EQ(told(), kChanged);
}

TEST(SourceStamps, ToldIsAFileThatIsGoneOrCutOrGrew) {
  TempFolder folder;
  SourceStamps stamps;
  InputFile cut(folder.put("a", "abc"));
  fs::resize_file(cut.path(), 2);
  EXPECT_EQ(stamps.first_changed(), cut.path());
  InputFile gone(folder.put("A", "abc"));
  fs::remove(gone.path());
  EXPECT_EQ(stamps.first_changed(), gone.path());
}

TEST(SourceStamps, ToldIsALinkThatLeadsElsewhere) {
  TempFolder folder;
  SourceStamps stamps;
  folder.put("one", "abc"), folder.put("two", "abc");
  fs::create_symlink("one", folder.at("f"));
  InputFile file(folder.at("f"));
  fs::remove(folder.at("f"));
  fs::create_symlink("two", folder.at("f"));
  EXPECT_EQ(told(), kChanged);
}

TEST(SourceStamps, AFileOfWhichTheSizeAloneWasAskedIsNoted) {
  TempFolder folder;
  SourceStamps stamps;
  folder.put("f", "abc");
  EXPECT_EQ(Folder(folder.path()).file_bytes("f"), 3);
  rewrite(folder.at("f"), 'x');
  EXPECT_EQ(told(), kChanged);
}

TEST(SourceStamps, ASecondLookComparesWithTheFirst) {
  TempFolder folder;
  SourceStamps stamps;
  std::string path = folder.put("f", "abc");
  InputFile first(path);
  EXPECT_EQ(told_by([&] { InputFile again(path); }), "nothing");
  rewrite(path, 'x');
  EXPECT_EQ(told_by([&] { InputFile again(path); }), kChanged);
}

// Where the clock of the file system ticks, a write in the same tick could not be told from this one.
TEST(SourceStamps, AFileThatWasJustWrittenIsReadWhenTheTickIsOver) {
  TempFolder folder;
  SourceStamps stamps;
  auto written = std::chrono::steady_clock::now();
  InputFile file(folder.put("f", "abc"));
  EXPECT_GE(std::chrono::steady_clock::now() - written, std::chrono::milliseconds(20));
}

TEST(SourceStamps, AChangeRightBehindTheFirstLookIsSeen) {
  TempFolder folder;
  for (int i = 0; i < 50; i++) {
    SourceStamps stamps;
    std::string path = folder.put("f", "abc");
    InputFile file(path);
    rewrite(path, static_cast<char>('d' + i % 20));
    ASSERT_EQ(told(), kChanged) << i;
  }
}

TEST(SourceStamps, WithoutThemNothingIsNoted) {
  TempFolder folder;
  auto outer = std::make_unique<SourceStamps>();
  {
    SourceStamps inner;
    InputFile file(folder.put("f", "abc"));
    rewrite(file.path(), 'x');
    EXPECT_EQ(told(), kChanged);
  }
  EXPECT_EQ(told(), "nothing");
  outer.reset();
  InputFile file(folder.put("g", "abc"));
  rewrite(file.path(), 'x');
  EXPECT_EQ(told(), "nothing");
  EXPECT_EQ(file.stamp().bytes, 3);
}

}  // namespace
}  // namespace mckpt::impl
