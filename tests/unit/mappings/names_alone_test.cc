#include "mappings/names_alone.h"

namespace mckpt::impl {
namespace {

TEST(NamesAlone, AParameterThatNoFamilyCutsIsWhole) {
  EXPECT_TRUE(whole_by_name("decoder.layers.3.ple.conv1d.weight"));
  EXPECT_TRUE(whole_by_name("language_model.decoder.layers.3.ple.conv1d.weight"));
  EXPECT_TRUE(whole_by_name("decoder.layers.3.input_layernorm.weight"));
  EXPECT_FALSE(whole_by_name("decoder.layers.3.mixer.conv1d.weight"));
  EXPECT_FALSE(whole_by_name("decoder.layers.3.mixer.norm.weight"));
  EXPECT_FALSE(whole_by_name("decoder.layers.3.self_attention.linear_qkv.weight"));
  // Some families cut the norm over all heads, others have it whole.
  EXPECT_FALSE(whole_by_name("decoder.layers.3.self_attention.q_layernorm.weight"));
  EXPECT_FALSE(whole_by_name("ple.conv1d.weight.more"));
  EXPECT_FALSE(whole_by_name(""));
}

TEST(NamesAlone, APartOfATableHasItsNumberAndTheNameOfTheTable) {
  const std::string table = "model.layers.0.ple.ple_embedding.ngram_embedding";
  const std::optional<PartName> part = part_by_name(table + ".shard_511.weight");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->at, table.size() + 7);
  EXPECT_EQ(part->digits, 3u);
  EXPECT_EQ(part->whole, table + ".weight");
  for (const char* end : {".weight", ".shard_.weight", ".shard_1x.weight", ".shard_1.bias", ".shard_1"})
    EXPECT_FALSE(part_by_name(table + end)) << end;
  EXPECT_FALSE(part_by_name("shard_1.weight"));
}

}  // namespace
}  // namespace mckpt::impl
