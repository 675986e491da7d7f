// A JSON document of torch_checkpointing, as objects.
#include "io/ranks/item_values.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/pickle/pickle.h"
#include "io/ranks/item_folder.h"
#include "io/store/names/torch_names.h"

namespace mckpt::impl {
namespace item_values_test {

TEST(ItemValues, OfAJsonDocumentAreThoseOfAPickle) {
  const TorchFile file =
      json_as_torch_file(R"({"step": 7, "rate": 0.25, "big": 123456789012345678901234567890,
                                                "nan": NaN, "on": true, "none": null, "seen": [1, [2]], "in": {"a": "x"}})");
  EXPECT_EQ(file.table.size(), 0);
  EXPECT_TRUE(file.findings.empty());
  const PickleValue root = file.table.pickle()->root();
  EXPECT_EQ(root.find("step")->as_int(), 7);
  EXPECT_EQ(root.find("rate")->as_float(), 0.25);
  EXPECT_EQ(root.find("big")->text(), "123456789012345678901234567890");  // more than 63 bits
  EXPECT_NE(root.find("nan")->as_float(), root.find("nan")->as_float());
  EXPECT_TRUE(root.find("on")->as_bool());
  EXPECT_TRUE(root.find("none")->is_none());
  std::vector<PickleValue> seen;
  for (PickleValue item : root.find("seen")->items()) seen.push_back(item);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].as_int(), 1);
  EXPECT_EQ(root.find("in")->find("a")->text(), "x");
  EXPECT_THROW(json_as_torch_file("{"), Error);
}

TEST(ItemName, IsInFrontOfTheRank) {
  for (const auto& [file, item, rank] :
       {std::tuple("model_0.pt", "model", 0), std::tuple("my_step_12.pt", "my_step", 12)}) {
    const RankName name = item_name(file);
    EXPECT_EQ(name.group, item);
    EXPECT_EQ(name.rank, rank);
    EXPECT_EQ(name.world, -1);
  }
}

}  // namespace item_values_test
}  // namespace mckpt::impl
