// Sums that came with a folder: where they are looked for, and how many findings there are.
#include "io/verify/kept_sums.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/file/folder.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace kept_sums_test {

const std::string kSum(64, 'a');

std::vector<std::string> messages(const std::vector<Finding>& findings) {
  std::vector<std::string> out;
  for (const Finding& f : findings) out.push_back(f.message);
  return out;
}

// A list in the folder is found behind any number of files, and what the hub keeps is counted by itself.
TEST(KeptSums, AreFoundAmongManyFiles) {
  TempFolder folder;
  for (const char* name : {"0", "1", "2", "3", "zmodel.safetensors"}) folder.put(name, "x");
  folder.put("SHA256SUMS", cat(kSum, "  zmodel.safetensors\n"));
  folder.put(".cache/huggingface/download/1.metadata", cat("commit\n", kSum, "\n1\n"));
  const KeptSums found = kept_sums(Folder(folder.path()), 3);
  EXPECT_EQ(listed(found.sources), "SHA256SUMS, what hf download kept");
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_TRUE(found.findings[0].warning);
  EXPECT_EQ(found.findings[0].message,
            "sums were looked for among the first 3 files and folders of the folder alone: the names of the "
            "hub's blobs may have more of them");
  EXPECT_TRUE(kept_sums(Folder(folder.path()), 6).findings.empty());
}

TEST(KeptSums, HaveFewFindingsOfManyLines) {
  std::string absolute, missing;
  for (i64 i = 0; i < 10'000; i++) {
    absolute += cat(kSum, "  /elsewhere/", i, "\n");
    missing += cat(kSum, "  missing_", i, "\n");
  }
  const std::vector<std::string> outside = messages(listed_sums(absolute, "SHA256SUMS").findings);
  ASSERT_EQ(outside.size(), 51u);
  EXPECT_EQ(outside.back(), "and 9950 more of this kind");

  TempFolder folder;
  folder.put("SHA256SUMS", absolute + missing);
  folder.put("another.sha256", absolute);
  const KeptSums kept = kept_sums(Folder(folder.path()));
  EXPECT_EQ(messages(kept.findings).back(), "and 19950 more of this kind");
  i64 compared = -1;
  const std::vector<std::string> lost = messages(unlike_sums(
      Folder(folder.path()), kept, 2, [](i64) {}, compared));
  ASSERT_EQ(lost.size(), 51u);
  EXPECT_EQ(lost.front(), "the file is missing, but SHA256SUMS lists it");
  EXPECT_EQ(lost.back(), "and 9950 more of this kind");
  EXPECT_EQ(compared, 0);
}

}  // namespace kept_sums_test
}  // namespace mckpt::impl
