#include "io/output/staged_folder.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/output/staging_marks.h"
#include "io/output/unfinished.h"
#include "tests/support/staged.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

using namespace staged;

TEST(StagedFolder, AppearsOnlyWhenItIsPublished) {
  TempFolder temp;
  for (bool durable : {false, true}) {
    std::string path = temp.path() + (durable ? "/a/b/durable" : "/a/b/out");
    StagedFolder folder(path, {.durable = durable}, "plan");
    EXPECT_FALSE(folder.resumes());
    put(folder, "x", "1");
    EXPECT_FALSE(fs::exists(path));
    folder.publish();
    EXPECT_EQ(content(path), "x=1");
    EXPECT_FALSE(fs::exists(StagedFolder::staging_path(path)));
  }
}

TEST(StagedFolder, IsNotReplacedUnlessThatIsAskedFor) {
  TempFolder temp;
  temp.put("out/config.json", "old");
  for (const StagedFolder::Options& options : {kNew, kResume}) {
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "plan"); }), "MC3003");
    EXPECT_EQ(code_of([&] { StagedFolder::check(temp.at("out"), options, "plan", 0, 0); }), "MC3003");
  }
  EXPECT_EQ(content(temp.path()), "out=/");
  StagedFolder::check(temp.at("out"), kReplace, "plan", 0, 0);
  StagedFolder folder(temp.at("out"), kReplace, "plan");
  put(folder, "y", "new");
  EXPECT_EQ(content(temp.at("out")), "config.json=old");
  folder.publish();
  EXPECT_EQ(content(temp.at("out")), "y=new");
  EXPECT_EQ(content(temp.path()), "out=/");
}

TEST(StagedFolder, DoesNotReplaceAFolderThatIsNoCheckpoint) {
  TempFolder temp;
  temp.put("home/letter", "old");
  EXPECT_EQ(code_of([&] { StagedFolder::check(temp.at("home"), kReplace, "plan", 0, 0); }), "MC3003");
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("home"), kReplace, "plan"); }), "MC3003");
  EXPECT_EQ(content(temp.at("home")), "letter=old");
}

TEST(StagedFolder, DoesNotReplaceWhatIsNoFolder) {
  TempFolder temp;
  temp.put("file", "old");
  fs::create_symlink("nowhere", temp.at("link"));
  for (const char* name : {"file", "link"})
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at(name), kReplace, "plan"); }), "MC3003") << name;
  for (const char* name : {".", "..", "/"})
    EXPECT_NE(code_of([&] { StagedFolder(name, kReplace, "plan"); }), "nothing") << name;
}

TEST(StagedFolder, DoesNotReplaceWhatCameMeanwhile) {
  TempFolder temp;
  StagedFolder folder(temp.at("out"), kNew, "plan");
  put(folder, "x", "mine");
  temp.put("out/x", "theirs");
  EXPECT_EQ(code_of([&] { folder.publish(); }), "MC3003");
  EXPECT_EQ(content(temp.at("out")), "x=theirs");
}

TEST(StagedFolder, GoesOnWithTheSamePlanAlone) {
  TempFolder temp;
  for (const StagedFolder::Options& options : {kNew, kReplace, kResume}) {
    {
      StagedFolder folder(temp.at("out"), kNew, "plan 1");
      put(folder, "x", "half");
    }
    for (const StagedFolder::Options& other : {kNew, kResume})
      for (const char* plan : {"plan 2", "plan"}) {
        EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), other, plan); }), "MC3007");
        EXPECT_EQ(code_of([&] { StagedFolder::check(temp.at("out"), other, plan, 0, 0); }), "MC3007");
      }
    StagedFolder::check(temp.at("out"), options, "plan 1", i64{1} << 60, 1);  // its room is reserved
    StagedFolder folder(temp.at("out"), options, "plan 1");
    EXPECT_TRUE(folder.resumes());
    EXPECT_FALSE(folder.began_anew());
    EXPECT_TRUE(fs::exists(folder.folder() + "/x"));
    put(folder, "x", "whole");
    folder.publish();
    EXPECT_EQ(content(temp.at("out")), "x=whole");
    fs::remove_all(temp.at("out"));
  }
}

TEST(StagedFolder, OffersBothWaysWhereAnotherPlanWasBegun) {
  TempFolder temp;
  { StagedFolder folder(temp.at("out"), kNew, "reshard 1\ntp=2\n"); }
  const std::string error = advice_of([&] { StagedFolder(temp.at("out"), kNew, "reshard 2\ntp=4\n"); });
  EXPECT_NE(error.find("`tp`: 2 in the first run, 4 in this one"), std::string::npos) << error;
  EXPECT_NE(error.find("repeat the first command"), std::string::npos) << error;
  EXPECT_NE(error.find("give `overwrite`"), std::string::npos) << error;
}

// Data that were written without fsync are believed until the system starts again.
TEST(StagedFolder, DoesNotBelieveTheLogOfAnotherStartOfTheSystem) {
  TempFolder temp;
  auto begin = [&] {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, ".done", "1");
  };
  auto has_log = [&] {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    return fs::exists(folder.folder() + "/.done");
  };
  begin();
  EXPECT_TRUE(has_log());
  temp.put(".out.mckpt-tmp/.boot", "another\n");
  EXPECT_FALSE(has_log());
  begin();
  EXPECT_TRUE(has_log());
}

TEST(StagedFolder, StartsAnewWhereNothingWasBegun) {
  TempFolder temp;
  fs::create_directories(StagedFolder::staging_path(temp.at("out")) + "/sub");
  temp.put(".out.mckpt-tmp/.plan", "");  // the disk lost what was written
  StagedFolder folder(temp.at("out"), kResume, "plan");
  EXPECT_FALSE(folder.resumes());
  folder.publish();
  EXPECT_EQ(content(temp.at("out")), "");
}

// A folder of the user's own may have the hidden name.
TEST(StagedFolder, EmptiesNoFolderThatItDidNotMake) {
  for (const StagedFolder::Options& how : {kNew, kReplace, kResume}) {
    TempFolder temp;
    temp.put(".out.mckpt-tmp/sub/notes", "mine");
    EXPECT_EQ(code_of([&] { StagedFolder::check(temp.at("out"), how, "plan", 1, 1); }), "MC3003");
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), how, "plan"); }), "MC3003");
    EXPECT_EQ(content(temp.at(".out.mckpt-tmp/sub")), "notes=mine");
    fs::remove_all(temp.at(".out.mckpt-tmp"));
    temp.put(".out.mckpt-tmp", "mine");
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), how, "plan"); }), "MC3003");
    EXPECT_EQ(content(temp.path()), ".out.mckpt-tmp=mine");
    fs::remove(temp.at(".out.mckpt-tmp"));
    temp.put("target/notes", "mine");
    fs::create_symlink("target", temp.at(".out.mckpt-tmp"));
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), how, "plan"); }), "MC3003");
    EXPECT_EQ(content(temp.at("target")), "notes=mine");
  }
}

// A result that was given up stays marked until all of it is gone.
TEST(StagedFolder, MarksWhatItGivesUp) {
  TempFolder temp;
  {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, "x", "of a damaged source");
    EXPECT_EQ(folder.give_up(), 0);
  }
  EXPECT_EQ(read_mark(temp.at(".out.mckpt-tmp"), kPlanMark), kNotResumed);
  StagedFolder folder(temp.at("out"), kNew, "another");
  EXPECT_TRUE(folder.began_anew());
  EXPECT_FALSE(folder.resumes());
}

TEST(StagedFolder, ThrowsAwayWhatNobodyGoesOnWith) {
  TempFolder temp;
  {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, "x", "half");
    fs::create_directory(folder.folder() + "/sub");
  }
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), kNew, "another plan"); }), "MC3007");
  {
    StagedFolder folder(temp.at("out"), kReplace, "another plan");
    EXPECT_FALSE(folder.resumes());
    EXPECT_TRUE(folder.began_anew());
    EXPECT_FALSE(fs::exists(folder.folder() + "/x"));
    put(folder, "y", "1");
    folder.give_up();  // the source is damaged: no plan goes on with this
  }
  StagedFolder folder(temp.at("out"), kNew, "a third plan");
  EXPECT_FALSE(folder.resumes());
  EXPECT_FALSE(fs::exists(folder.folder() + "/y"));
  put(folder, "z", "1");
  folder.publish();
  EXPECT_EQ(content(temp.at("out")), "z=1");
}

// The remains of a live model belong to no plan.
TEST(StagedFolder, NeverGoesOnWithALiveModel) {
  TempFolder temp;
  for (int i = 0; i < 2; i++) {
    StagedFolder folder(temp.at("out"), kNew, kNotResumed);
    EXPECT_FALSE(folder.resumes());
    EXPECT_FALSE(fs::exists(folder.folder() + "/x"));
    put(folder, "x", "half");
    EXPECT_FALSE(StagedFolder::is_begun(temp.at("out")));
  }
  StagedFolder folder(temp.at("out"), kNew, "plan");
  EXPECT_FALSE(folder.resumes());
}

TEST(StagedFolder, HasOneWriter) {
  TempFolder temp;
  StagedFolder first(temp.at("out"), kNew, "plan");
  put(first, "x", "1");
  for (const StagedFolder::Options& options : {kNew, kReplace, kResume})
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "plan"); }), "MC3004");
  StagedFolder other(temp.at("other"), kNew, "plan");
  first.publish();
  EXPECT_EQ(content(temp.at("out")), "x=1");
}

// A run that was killed behind the rename has left its marks.
TEST(StagedFolder, EndsWhatWasPublished) {
  TempFolder temp;
  {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, "x", "1");
    EXPECT_THROW(folder.publish([] { throw Error(Code::kWriteFailed, "the tracker cannot be written"); }),
                 Error);
  }
  fs::remove(temp.at("out/.boot"));
  EXPECT_EQ(content(temp.at("out")),
            cat(".plan=complete ", folder_identity(temp.at("out")), " unlisted\nplan x=1"));
  EXPECT_TRUE(StagedFolder::is_begun(temp.at("out")));
  for (const StagedFolder::Options& options : {kNew, kResume})
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "another plan"); }), "MC3003");
  int steps = 0;
  StagedFolder::check(temp.at("out"), kNew, "plan", 0, 0);
  StagedFolder folder(temp.at("out"), kNew, "plan");
  EXPECT_TRUE(folder.published());
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), kResume, "plan"); }), "MC3004");
  folder.publish([&] { steps++; });
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(content(temp.at("out")), "x=1");
  EXPECT_FALSE(StagedFolder::is_begun(temp.at("out")));
}

TEST(StagedFolder, SaysWhatFailedBehindTheRename) {
  TempFolder temp;
  StagedFolder folder(temp.at("out"), kNew, "plan");
  std::string error = thrown_by(
      [&] { folder.publish([] { throw Error(Code::kWriteFailed, "the tracker cannot be written"); }); });
  EXPECT_NE(error.find("is published as " + temp.at("out")), std::string::npos) << error;
  EXPECT_NE(error.find("the tracker cannot be written"), std::string::npos) << error;
}

TEST(StagedFolder, ReplacesWhatTheInterruptedRunWasToReplace) {
  TempFolder temp;
  temp.put("out/config.json", "old");
  {
    StagedFolder folder(temp.at("out"), kReplace, "plan");
    put(folder, "y", "new");
  }
  const std::string unasked = advice_of([&] { StagedFolder(temp.at("out"), kNew, "plan"); });
  EXPECT_NE(unasked.find("`overwrite` or `resume`, which go on"), std::string::npos) << unasked;
  {
    StagedFolder folder(temp.at("out"), kResume, "plan");
    EXPECT_TRUE(folder.resumes());
    EXPECT_FALSE(folder.published());
  }
  fs::rename(temp.at("out"), temp.at("kept"));  // another folder has the name by now
  temp.put("out/config.json", "another");
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), kResume, "plan"); }), "MC3003");
  fs::remove_all(temp.at("out"));
  fs::rename(temp.at("kept"), temp.at("out"));
  StagedFolder folder(temp.at("out"), kResume, "plan");
  folder.publish();
  EXPECT_EQ(content(temp.at("out")), "y=new");
  EXPECT_EQ(content(temp.path()), "out=/");
}

// Where two names cannot be swapped, a run may be killed while the old folder has neither.
TEST(StagedFolder, PutsBackWhatLostItsName) {
  TempFolder temp;
  temp.put(".out.mckpt-old/config.json", "old");
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), kNew, "plan"); }), "MC3003");
  EXPECT_EQ(content(temp.at("out")), "config.json=old");
  temp.put(".out.mckpt-old/config.json", "older");
  EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), kReplace, "plan"); }),
            "MC3003");  // whose it is is not known
  temp.put(".out.mckpt-tmp/.replaces",
           folder_identity(temp.at(".out.mckpt-old")));  // replaced, not yet removed
  StagedFolder folder(temp.at("out"), kReplace, "plan");
  EXPECT_EQ(content(temp.path()), ".out.mckpt-tmp=/ out=/");
  EXPECT_EQ(content(temp.at("out")), "config.json=old");
}

TEST(StagedFolder, IsRefusedWhereThereIsNoRoom) {
  TempFolder temp;
  EXPECT_EQ(code_of([&] { StagedFolder::check(temp.path() + "/out", kNew, "plan", i64{1} << 60, 1); }),
            "MC3006");
  StagedFolder::check(temp.path() + "/not/yet/there", kNew, "plan", 1, 1);
  EXPECT_TRUE(fs::is_empty(temp.path()));
}

}  // namespace
}  // namespace mckpt::impl
