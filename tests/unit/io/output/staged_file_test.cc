#include "io/output/staged_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "io/file/file.h"
#include "io/output/output_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const StagedFile::Options kReplace{.replace = true};

std::string code_of(const std::function<void()>& fn) { return thrown_by(fn).substr(0, 6); }

// Writes `text` to where the file is made, and publishes it.
void write_and_publish(StagedFile& file, std::string_view text) {
  OutputFiles out(file.folder(), {{file.name(), static_cast<i64>(text.size())}});
  out.write(0, 0, {reinterpret_cast<const u8*>(text.data()), text.size()});
  file.publish(out);
}

i64 names_in(const TempFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(StagedFile, AppearsOnlyWhenItIsWhole) {
  TempFolder folder;
  StagedFile file(folder.at("out"), {});
  EXPECT_FALSE(std::filesystem::exists(folder.at("out")));
  write_and_publish(file, "abcd");
  InputFile written(folder.at("out"));
  EXPECT_EQ(written.read(0, written.size()), (std::vector<u8>{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(names_in(folder), 1);
}

TEST(StagedFile, LeavesNothingWhenItIsGivenUp) {
  TempFolder folder;
  {
    StagedFile file(folder.at("out"), {});
    OutputFiles out(file.folder(), {{file.name(), 10}});
    EXPECT_EQ(names_in(folder), 1);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

i64 open_files() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST(StagedFile, ClosesItsFolderWhenThatCannotBeEmptied) {
  TempFolder folder;
  std::filesystem::create_directories(folder.at(".out.mckpt-tmp/out"));
  i64 before = open_files();
  for (int again = 0; again < 2; again++)  // MC3001, and not MC3008: the lock of the first one is gone
    EXPECT_EQ(thrown_by([&] { StagedFile(folder.at("out"), {}); }),
              cat("MC3001 ", folder.at("out"),
                  ": cannot remove the unfinished file of an interrupted run: Is a directory"));
  EXPECT_EQ(open_files(), before);
}

TEST(StagedFile, ReplacesOnlyWhenToldTo) {
  TempFolder folder;
  folder.put("out", "old");
  EXPECT_EQ(code_of([&] { StagedFile(folder.at("out"), {}); }), "MC3003");
  EXPECT_EQ(code_of([&] { StagedFile::check(folder.at("out"), {}, 0); }), "MC3003");
  StagedFile file(folder.at("out"), kReplace);
  EXPECT_EQ(InputFile(folder.at("out")).size(), 3);
  write_and_publish(file, "aa");
  EXPECT_EQ(InputFile(folder.at("out")).size(), 2);
  std::filesystem::create_directory(folder.at("dir"));
  EXPECT_EQ(code_of([&] { StagedFile(folder.at("dir"), kReplace); }), "MC3003");
}

TEST(StagedFile, DoesNotOverwriteWhatCameMeanwhile) {
  TempFolder folder;
  StagedFile file(folder.at("out"), {});
  folder.put("out", "other");
  EXPECT_EQ(code_of([&] { write_and_publish(file, "aa"); }), "MC3003");
  EXPECT_EQ(InputFile(folder.at("out")).size(), 5);
}

TEST(StagedFile, HasOneWriter) {
  TempFolder folder;
  StagedFile first(folder.at("out"), {});
  EXPECT_EQ(code_of([&] { StagedFile(folder.at("out"), {}); }), "MC3004");
  StagedFile other(folder.at("other"), {});
}

TEST(StagedFile, TakesOverWhatAKilledRunLeft) {
  TempFolder folder;
  folder.put(".out.mckpt-tmp/out", "left over and longer");
  StagedFile file(folder.at("out"), {});
  write_and_publish(file, "aa");
  EXPECT_EQ(InputFile(folder.at("out")).size(), 2);
  EXPECT_EQ(names_in(folder), 1);
}

TEST(StagedFile, RefusesWhatHasNoRoom) {
  TempFolder folder;
  EXPECT_EQ(code_of([&] { StagedFile::check(folder.at("out"), {}, i64{1} << 60); }), "MC3006");
  EXPECT_EQ(code_of([&] { StagedFile::check(folder.at("out"), {}, 1); }), "nothin");
}

TEST(StagedFile, SaysThatTheFolderIsNotThere) {
  TempFolder folder;
  std::string error = thrown_by([&] { StagedFile(folder.path() + "/none/out", {}); });
  EXPECT_NE(error.find("No such file or directory"), std::string::npos) << error;
}

}  // namespace
}  // namespace mckpt::impl
