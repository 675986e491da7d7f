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

OpenOptions noting() { return {.stamps = std::make_shared<SourceStamps>()}; }

std::string told(const OpenOptions& opening) {
  return told_by([&] { check_unchanged(opening); });
}

// Other bytes, with the size and the time of the last write that the file has.
void rewrite(const std::string& path, char byte) {
  auto written = fs::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << byte;
  fs::last_write_time(path, written);
}

TEST(SourceStamps, ToldIsAFileThatWasRewrittenUnderItsOldTime) {
  TempFolder folder;
  OpenOptions opening = noting();
  std::string path = folder.put("f", "abc");
  InputFile file(path, opening);
  EXPECT_EQ(told(opening), "nothing");
  rewrite(path, 'x');
  EXPECT_EQ(told(opening), kChanged);
  EXPECT_EQ(opening.stamps->first_changed(), path);
}

TEST(SourceStamps, ToldIsAFileThatWasReplacedUnderItsName) {
  TempFolder folder;
  OpenOptions opening = noting();
  InputFile file(folder.put("f", "abc"), opening);
  fs::rename(folder.put("g", "abc"), folder.at("f"));
  EXPECT_EQ(told(opening), kChanged);
}

TEST(SourceStamps, ToldIsAFileThatIsGoneOrCutOrGrew) {
  TempFolder folder;
  OpenOptions opening = noting();
  InputFile cut(folder.put("a", "abc"), opening);
  fs::resize_file(cut.path(), 2);
  EXPECT_EQ(opening.stamps->first_changed(), cut.path());
  InputFile gone(folder.put("A", "abc"), opening);
  fs::remove(gone.path());
  EXPECT_EQ(opening.stamps->first_changed(), gone.path());
}

TEST(SourceStamps, AnOpenFileIsLookedAtWhereverItsPathLeads) {
  TempFolder folder;
  OpenOptions opening = noting();
  folder.put("one/f", "abc"), folder.put("two/f", "xyz");
  fs::create_directory_symlink("one", folder.at("latest"));
  InputFile file(folder.at("latest/f"), opening);
  auto look = [&] { return told_by([&] { file.check_unchanged(); }); };
  fs::remove(folder.at("latest"));
  EXPECT_EQ(look(), "nothing");
  fs::create_directory_symlink("two", folder.at("latest"));
  EXPECT_EQ(look(), "nothing");
  fs::rename(folder.at("one"), folder.at("three"));
  EXPECT_EQ(look(), "nothing");
  fs::rename(folder.put("g", "abc"), folder.at("three/f"));
  EXPECT_EQ(look(), kChanged);
  InputFile written(folder.at("two/f"), opening);
  rewrite(folder.at("two/f"), 'a');
  EXPECT_EQ(told_by([&] { written.check_unchanged(); }), kChanged);
}

TEST(SourceStamps, ToldIsALinkThatLeadsElsewhere) {
  TempFolder folder;
  OpenOptions opening = noting();
  folder.put("one", "abc"), folder.put("two", "abc");
  fs::create_symlink("one", folder.at("f"));
  InputFile file(folder.at("f"), opening);
  fs::remove(folder.at("f"));
  fs::create_symlink("two", folder.at("f"));
  EXPECT_EQ(told(opening), kChanged);
}

TEST(SourceStamps, AFileOfWhichTheSizeAloneWasAskedIsNoted) {
  TempFolder folder;
  OpenOptions opening = noting();
  folder.put("f", "abc");
  EXPECT_EQ(Folder(folder.path(), opening).file_bytes("f"), 3);
  rewrite(folder.at("f"), 'x');
  EXPECT_EQ(told(opening), kChanged);
}

TEST(SourceStamps, ASecondLookComparesWithTheFirst) {
  TempFolder folder;
  OpenOptions opening = noting();
  std::string path = folder.put("f", "abc");
  InputFile first(path, opening);
  EXPECT_EQ(told_by([&] { InputFile again(path, opening); }), "nothing");
  rewrite(path, 'x');
  EXPECT_EQ(told_by([&] { InputFile again(path, opening); }), kChanged);
}

// Where the clock of the file system ticks, a write in the same tick could not be distinguished from this
// one.
TEST(SourceStamps, AFileThatWasJustWrittenIsReadWhenTheTickIsOver) {
  TempFolder folder;
  OpenOptions opening = noting();
  auto written = std::chrono::steady_clock::now();
  InputFile file(folder.put("f", "abc"), opening);
  EXPECT_GE(std::chrono::steady_clock::now() - written, std::chrono::milliseconds(20));
}

TEST(SourceStamps, AChangeRightBehindTheFirstLookIsSeen) {
  TempFolder folder;
  for (int i = 0; i < 50; i++) {
    OpenOptions opening = noting();
    std::string path = folder.put("f", "abc");
    InputFile file(path, opening);
    rewrite(path, static_cast<char>('d' + i % 20));
    ASSERT_EQ(told(opening), kChanged) << i;
  }
}

TEST(SourceStamps, WithoutThemNothingIsNoted) {
  TempFolder folder;
  OpenOptions noted = noting(), other = noting();
  InputFile mine(folder.put("f", "abc"), noted), nobodys(folder.put("g", "abc"));
  rewrite(nobodys.path(), 'x');
  EXPECT_EQ(told(noted), "nothing");
  EXPECT_EQ(told({}), "nothing");
  rewrite(mine.path(), 'x');
  EXPECT_EQ(told(noted), kChanged);
  EXPECT_EQ(told(other), "nothing");
  EXPECT_EQ(nobodys.stamp().bytes, 3);
}

}  // namespace
}  // namespace mckpt::impl
