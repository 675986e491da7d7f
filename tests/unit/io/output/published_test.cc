// A folder counts as published by a fact that publishing writes down, and not by its name.
#include "io/output/published.h"

#include <gtest/gtest.h>

#include "io/listing/manifest.h"
#include "io/output/staging_marks.h"
#include "tests/support/staged.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace published_test {

using namespace staged;

// The name says nothing: what is published is written down before the rename.
TEST(Published, IsNotPublishedByARenameOfOthers) {
  TempFolder temp;
  {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, "x.safetensors", "half");
  }
  fs::rename(temp.at(".out.mckpt-tmp"), temp.at("out"));
  for (const StagedFolder::Options& options : {kNew, kResume}) {
    EXPECT_EQ(code_of([&] { StagedFolder(temp.at("out"), options, "plan"); }), "MC3003");
    EXPECT_EQ(code_of([&] { StagedFolder::check(temp.at("out"), options, "plan", 0, 0); }), "MC3003");
  }
  const std::string advice = advice_of([&] { StagedFolder(temp.at("out"), kNew, "plan"); });
  EXPECT_NE(advice.find("mv " + temp.at("out") + " " + temp.at(".out.mckpt-tmp")), std::string::npos)
      << advice;
  {
    StagedFolder folder(temp.at("out"), kReplace, "plan");
    EXPECT_FALSE(folder.published() || folder.resumes());
  }
  fs::remove_all(temp.at(".out.mckpt-tmp"));
  fs::rename(temp.at("out"), temp.at(".out.mckpt-tmp"));
  StagedFolder folder(temp.at("out"), kNew, "plan");
  EXPECT_TRUE(folder.resumes());
  EXPECT_FALSE(folder.published());
  EXPECT_EQ(content(folder.folder()),
            ".boot=" + read_mark(folder.folder(), kBootMark) + " .plan=plan x.safetensors=half");
}

// Leaves a result without its last steps.
void publish_but_for_the_last_step(const TempFolder& temp, const std::string& text) {
  StagedFolder folder(temp.at("out"), kNew, "plan");
  put(folder, "x.safetensors", text);
  Manifest manifest{"1", {}};
  ManifestFile file;
  file.name = "x.safetensors", file.bytes = 4;
  file.sums = {{0, 4, 7}};
  manifest.files.push_back(file);
  put(folder, std::string(kManifestName), manifest.text());
  EXPECT_THROW(folder.publish([] { throw Error(Code::kWriteFailed, "the tracker cannot be written"); }),
               Error);
}

TEST(Published, IsNotPublishedWhereFilesOfItAreGoneOrCut) {
  for (const char* change : {"nothing", "cut", "longer", "gone", "manifest", "copied", "boot"}) {
    TempFolder temp;
    const std::string what = change, out = temp.at("out");
    publish_but_for_the_last_step(temp, "1234");
    if (what == "cut") temp.put("out/x.safetensors", "123");
    if (what == "longer") temp.put("out/x.safetensors", "12345");
    if (what == "gone") fs::remove(out + "/x.safetensors");
    if (what == "manifest") fs::remove(out + "/mckpt_manifest.json");
    if (what == "boot") temp.put("out/.boot", "another\n");
    if (what == "copied") {
      fs::copy(out, temp.at("copy"), fs::copy_options::recursive);
      fs::remove_all(out);
      fs::create_directory(temp.at("other"));  // which has the number of the removed one, perhaps
      fs::rename(temp.at("copy"), out);
    }
    if (what == "nothing") {
      EXPECT_TRUE(StagedFolder(out, kNew, "plan").published());
      continue;
    }
    EXPECT_EQ(code_of([&] { StagedFolder(out, kNew, "plan"); }), "MC3003") << what;
    EXPECT_EQ(code_of([&] { StagedFolder(out, kResume, "plan"); }), "MC3003") << what;
    if (what == "gone") continue;  // nothing of a checkpoint is left to replace
    StagedFolder folder(out, kReplace, "plan");
    EXPECT_FALSE(folder.published()) << what;
  }
}

// Data that were written without fsync may be there or not: the folder is neither a copy nor known to lack
// files.
TEST(Published, IsToldAsWrittenBeforeTheSystemStartedAgain) {
  for (const char* change : {"nothing", "cut", "manifest", "copied"}) {
    TempFolder temp;
    const std::string what = change, out = temp.at("out");
    publish_but_for_the_last_step(temp, "1234");
    temp.put("out/.boot", "another\n");
    if (what == "cut") temp.put("out/x.safetensors", "");
    if (what == "manifest") fs::remove(out + "/mckpt_manifest.json");
    if (what == "copied") {
      fs::copy(out, temp.at("copy"), fs::copy_options::recursive);
      fs::remove_all(out);
      fs::create_directory(temp.at("other"));
      fs::rename(temp.at("copy"), out);
    }
    std::string help;
    const std::string told = thrown_by([&] {
      try {
        StagedFolder(out, kNew, "plan");
      } catch (const Error& e) {
        help = e.help();
        throw;
      }
    });
    const bool copied = what == "copied";
    EXPECT_EQ(told.find("`no_sync`") != told.npos, !copied) << what << told;
    EXPECT_EQ(told.find("the machine has started again since") != told.npos, !copied) << what << told;
    EXPECT_EQ(told.find("it is a copy, or files are gone") != told.npos, copied) << what << told;
    const bool can_be_compared = !copied && what != "manifest";
    EXPECT_EQ(help.find("mckpt verify ") != help.npos, can_be_compared) << what << help;
    EXPECT_NE(help.find("to begin anew"), help.npos) << what << help;
  }
}

// A run that was killed between the mark and the rename goes on, and is not complete while it writes.
TEST(Published, IsNotCompleteWhileItIsWrittenAgain) {
  TempFolder temp;
  {
    StagedFolder folder(temp.at("out"), kNew, "plan");
    put(folder, "x", "1");
    fs::create_directory(temp.at("out"));
    temp.put("out/y", "mine");
    EXPECT_EQ(code_of([&] { folder.publish(); }), "MC3003");
  }
  const std::string staging = temp.at(".out.mckpt-tmp");
  EXPECT_TRUE(says_complete(read_mark(staging, kPlanMark)));
  EXPECT_TRUE(is_published(staging, "plan"));
  fs::remove_all(temp.at("out"));
  StagedFolder folder(temp.at("out"), kNew, "plan");
  EXPECT_TRUE(folder.resumes());
  EXPECT_FALSE(folder.published());
  EXPECT_EQ(read_mark(staging, kPlanMark), "plan");
}

}  // namespace published_test
}  // namespace mckpt::impl
