#include "live/round_trip/exported_folder.h"

#include <gtest/gtest.h>

#include "core/base/observer.h"
#include "hf/model.h"
#include "mappings/model/expand.h"
#include "tests/unit/live/golden_source.h"

namespace mckpt::impl {
namespace {

const std::string kModel = "tiny_dense1";

// Writes the golden model with another text in its header.
void write_changed(const TempFolder& folder, const std::string& from, const std::string& to) {
  write_golden(kModel, folder);
  std::ifstream in(folder.at("model.safetensors"), std::ios::binary);
  std::string file{std::istreambuf_iterator<char>(in), {}};
  std::size_t at = file.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  ASSERT_EQ(from.size(), to.size());
  file.replace(at, from.size(), to);
  folder.put("model.safetensors", file);
}

std::vector<std::string> differences(const TempFolder& exported) {
  TempFolder folder;
  write_golden(kModel, folder);
  HfModel source = open_hf_model(folder.path());
  std::unique_ptr<Comm> alone = local_comm();
  Observer silent;
  return compare_share(source, exported.path(), *alone, 1, silent).differences;
}

TEST(ExportedFolder, IsEqualToItsSource) {
  TempFolder exported;
  write_golden(kModel, exported);
  EXPECT_EQ(differences(exported), std::vector<std::string>{});
}

// Boxes of another shape are not boxes of the source's tensor: the items are not compared.
TEST(ExportedFolder, ATensorOfAnotherShapeIsOneDifference) {
  TempFolder exported;
  write_changed(exported, "\"shape\":[37,12]", "\"shape\":[12,37]");
  std::vector<std::string> found = differences(exported);
  ASSERT_EQ(found.size(), 1u) << found[1];
  EXPECT_NE(found[0].find(" was exported as bfloat16 [12, 37], but in the source it is bfloat16 [37, 12]"),
            std::string::npos)
      << found[0];
}

TEST(ExportedFolder, ATensorOfAnotherTypeIsOneDifference) {
  TempFolder exported;
  write_changed(exported, "\"BF16\"", "\"F16\" ");
  std::vector<std::string> found = differences(exported);
  ASSERT_EQ(found.size(), 1u) << found[1];
  EXPECT_NE(found[0].find(" was exported as float16"), std::string::npos) << found[0];
}

}  // namespace
}  // namespace mckpt::impl
