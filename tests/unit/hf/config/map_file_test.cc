// A map file: what each member of its JSON says, and that the JSON made of a map says the same.
#include "hf/map_file/map_file.h"

#include <gtest/gtest.h>

#include "mappings/map_file/map.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace map_file_test {

const MapFile kWhole{.rows = {{.megatron = "decoder.layers.{L}.mlp.router.weight",
                               .rule = "replicate",
                               .sources = {{"model.layers.{L}.gate.weight", "experts hidden"}},
                               .fp32 = true,
                               .layer = "moe"},
                              {.megatron = "decoder.layers.{L}.mlp.router.expert_bias",
                               .sources = {{"model.layers.{L}.gate.bias", "experts"}},
                               .partition_dim = -1,
                               .after = "decoder.layers.{L}.mlp.router.weight",
                               .needs = Needs::kExpertBias,
                               .buffer = true},
                              {.megatron = "decoder.layers.{L}.mlp.linear_fc1.weight",
                               .rule = "gated_mlp",
                               .sources = {{"model.layers.{L}.w1.weight", "ffn hidden"},
                                           {"model.layers.{L}.w3.weight", "ffn hidden"}},
                               .split = KeySplit::kSwiglu,
                               .alternates = true,
                               .stateless = true,
                               .gathered_with = "layer",
                               .todo = "which is the gate?"}},
                     .unread = {{"model.head.weight", "model.embed.weight", "a copy"}},
                     .base = "mixtral",
                     .config = {{"head_dim", "kv_channels", ""}, {"attention_bias", "", "false"}},
                     .remove = {"output_layer.bias"}};

TEST(MapFileText, IsReadAsTheMapThatItIsMadeOf) {
  EXPECT_TRUE(parse_map_file(map_file_text(kWhole)) == kWhole) << map_file_text(kWhole);
}

TEST(MapFileText, HasTheFlagsOfEachRow) {
  MapFile read = parse_map_file(R"({"rows": [
    {"megatron": "a", "hugging_face": [["x", "hidden"]], "fp32": true},
    {"megatron": "b", "hugging_face": [["y", "hidden"]], "buffer": true, "fp32": false},
    {"megatron": "c", "hugging_face": [["z", "hidden"]], "alternates": true}]})");
  std::string flags;
  for (const MapRow& row : read.rows)
    flags += {row.fp32 ? 'f' : '-', row.buffer ? 'b' : '-', row.alternates ? 'a' : '-', ' '};
  EXPECT_EQ(flags, "f-- -b- --a ");
  EXPECT_EQ(
      thrown_by([] {
        parse_map_file(R"({"rows": [{"megatron": "a", "hugging_face": [["x", "hidden"]], "fp32": 1}]})");
      }).substr(0, 6),
      "MC2009");
}

}  // namespace map_file_test
}  // namespace mckpt::impl
