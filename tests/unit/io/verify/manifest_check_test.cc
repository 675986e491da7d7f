#include "io/verify/manifest_check.h"

#include <gtest/gtest.h>

#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/store/finding.h"
#include "io/verify/manifest_findings.h"
#include "io/verify/verify.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

const std::string kName(kManifestName);

TEST(ManifestCheck, ALinkThatLeadsNowhereIsADamagedManifest) {
  TempFolder folder;
  std::filesystem::create_symlink("gone.json", folder.at(kName));
  EXPECT_EQ(thrown_by([&] { require_listed_files(folder.path(), {}); }),
            cat("MC1314 ", folder.path(), "/", kName, ": the manifest is a link that leads nowhere"));
  NameSet<std::string> judged;
  VerifyReport report;
  check_manifest(TableStore(folder.path()), 1, judged, report);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kBadManifest);
  EXPECT_EQ(report.findings[0].file, kName);
  EXPECT_FALSE(report.sound());
}

// A name that cannot be looked up, as of a file server that answers no more.
TEST(ManifestCheck, AFileThatCannotBeAskedForItsSizeIsAFinding) {
  TempFolder folder;
  std::filesystem::create_symlink("model.safetensors", folder.at("model.safetensors"));
  Manifest manifest{"0.1.0", {{{"model.safetensors", 10, ""}, 1, {}}}};
  std::vector<Finding> found = check_frames(Folder(folder.path()), manifest, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].file, "model.safetensors");
}

TEST(ManifestCheck, AListOfNoFilesIsAManifest) {
  TempFolder folder;
  folder.put("config.json", "{}");
  folder.put(kName, Manifest{"0.1.0", {}}.text());
  NameSet<std::string> judged;
  VerifyReport report;
  check_manifest(TableStore(folder.path()), 1, judged, report);
  ASSERT_EQ(report.checks.size(), 1u);
  EXPECT_EQ(report.checks[0].count, 0);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].code, Code::kNotListed);
  EXPECT_EQ(report.findings[0].file, "config.json");
}

TEST(ManifestCheck, TheFirstFaultIsASentence) {
  TempFolder folder;
  folder.put("config.json", "{}");
  folder.put(kName, Manifest{"0.1.0", {{{"config.json", 10, std::string(64, 'a')}, 0, {}}}}.text());
  EXPECT_EQ(
      thrown_by([&] { require_listed_files(folder.path(), {}); }),
      cat("MC1314 ", folder.path(), "/config.json: the file has 2 bytes, but mckpt_manifest.json says 10"));
  folder.put("model.safetensors", "0123456789");
  folder.put(kName, Manifest{"0.1.0", {{{"model.safetensors", 10, ""}, 1, {}}}}.text());
  EXPECT_EQ(thrown_by([&] { require_listed_files(folder.path(), {}); }),
            cat("MC1314 ", folder.path(),
                "/model.safetensors: the bytes around the data of the tensors are not those that mckpt wrote "
                "(CRC-32)"));
}

}  // namespace
}  // namespace mckpt::impl
