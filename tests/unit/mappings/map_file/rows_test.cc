// Rows of a user over a family's own: in the place of one, behind one, or refused.
#include "mappings/map_file/rows.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "mappings/registry.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace map_rows_test {

const std::string kLayer = "decoder.layers.{L}.", kBlock = "backbone.layers.{L}.";

MapFile file_of(std::vector<MapRow> rows) { return {std::move(rows), {}}; }

// The rows of the layers of a family, as "name rule".
std::vector<std::string> layer_rows(const Family& family, std::string_view kind) {
  std::vector<std::string> out;
  for (const Section& section : family.sections)
    for (const RowList& list : row_lists(section))
      if (section.megatron == kLayer && list.kind == kind)
        for (const Row& row : list.rows) out.push_back(cat(row.megatron, " ", row.rule));
  return out;
}

std::string refusal(const char* family, MapRow row) {
  return thrown_by([&] { OwnFamily(family_named(family), file_of({row})); });
}

TEST(MapRows, StandInThePlaceOfARowOfTheirName) {
  OwnFamily own(family_named("llama"),
                file_of({{.megatron = kLayer + "mlp.linear_fc2.weight",
                          .rule = "row",
                          .sources = {{"model.layers.{L}.mlp.w2.weight", "hidden ffn"}}}}));
  EXPECT_EQ(layer_rows(own.family(), "dense"), layer_rows(family_named("llama"), "dense"));
  const Row& row = own.family().sections[1].layer->dense[2];
  EXPECT_EQ(row.sources[0].name, "model.layers.{L}.mlp.w2.weight");
  EXPECT_TRUE(row.whole_names);
  EXPECT_TRUE(own.notes().empty());
}

TEST(MapRows, StandInThePlaceOfAllFormsOfARow) {
  OwnFamily own(
      family_named("qwen3_moe"),
      file_of({{.megatron = kLayer + "mlp.experts.linear_fc2.weight{E}",
                .rule = "row",
                .sources = {{"model.layers.{L}.mlp.experts.{E}.w2.weight", "hidden expert_ffn"}}}}));
  std::vector<std::string> rows = layer_rows(own.family(), "moe");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), "mlp.experts.linear_fc2.weight{E} row"), 1);
  EXPECT_EQ(rows.size() + 2, layer_rows(family_named("qwen3_moe"), "moe").size());
}

TEST(MapRows, FollowTheRowThatTheyName) {
  OwnFamily own(family_named("llama"),
                file_of({{.megatron = kLayer + "mlp.linear_fc2.bias",
                          .rule = "replicate",
                          .sources = {{"model.layers.{L}.mlp.down_proj.bias", "hidden"}},
                          .partition_dim = {},
                          .after = kLayer + "mlp.linear_fc1.weight"}}));
  EXPECT_EQ(layer_rows(own.family(), "dense"),
            (std::vector<std::string>{"mlp.linear_fc1.layer_norm_weight replicate",
                                      "mlp.linear_fc1.weight gated_mlp", "mlp.linear_fc2.bias replicate",
                                      "mlp.linear_fc2.weight row"}));
}

TEST(MapRows, KeepWhatTheRunMakesOfThem) {
  MapRow from{.megatron = kLayer + "mlp.linear_fc2.weight",
              .rule = "row",
              .sources = {{"model.layers.{L}.mlp.w2.weight", "hidden ffn"}}};
  for (bool fp32 : {false, true}) {
    from.fp32 = fp32, from.buffer = !fp32;
    OwnFamily own(family_named("llama"), file_of({from}));
    const Row& row = own.family().sections[1].layer->dense[2];
    EXPECT_EQ(row.fp32, fp32);
    EXPECT_EQ(row.buffer, !fp32);
  }
}

// Mamba's gated norm is split like the heads, whatever it is called.
TEST(MapRows, WithoutARuleFollowTheirAnnotationThenTheirName) {
  struct Case {
    const char* leaf;
    std::optional<int> partition_dim;
    const char *rule, *evidence;
  };
  const Case cases[] = {
      {"mixer.norm.weight", {}, "column", "its name"},
      {"mixer.norm.weight", 0, "column", "its partition_dim"},
      {"mixer.gate_norm.weight", 0, "column", "its partition_dim"},
      {"mixer.gate_norm.weight", {}, "replicate", "its name, which is that of a norm"},
      {"mixer.norm.weight", -1, "replicate", "its partition_dim"},
  };
  for (const Case& c : cases) {
    OwnFamily own(family_named("nemotron_h"),
                  file_of({{.megatron = kLayer + c.leaf,
                            .rule = "",
                            .sources = {{kBlock + "mixer.other.weight", "mamba_inner"}},
                            .partition_dim = c.partition_dim,
                            .after = kLayer + "mixer.D"}}));
    std::vector<std::string> rows = layer_rows(own.family(), "mamba");
    EXPECT_EQ(std::count(rows.begin(), rows.end(), cat(c.leaf, " ", c.rule)), 1) << c.leaf;
    ASSERT_EQ(own.notes().size(), 1u);
    EXPECT_EQ(own.notes()[0], cat(kLayer, c.leaf, ": rule ", c.rule, ", from ", c.evidence));
  }
}

TEST(MapRows, AreRefusedWithWhatIsWrong) {
  EXPECT_EQ(
      refusal("llama", {.megatron = kLayer + "mlp.new", .rule = "row", .sources = {{"a.{L}", "hidden ffn"}}}),
      "MC2009 no row is named decoder.layers.{L}.mlp.new, and the new row does not say which row it follows");
  EXPECT_EQ(refusal("llama", {.megatron = kLayer + "mlp.new",
                              .rule = "row",
                              .sources = {{"a.{L}", "hidden ffn"}},
                              .partition_dim = {},
                              .after = kLayer + "mlp.old"}),
            "MC2009 no row is named decoder.layers.{L}.mlp.old");
  EXPECT_EQ(refusal("llama", {.megatron = kLayer + "mlp.linear_fc1.weight",
                              .rule = "",
                              .sources = {{"a.{L}", "ffn hidden"}, {"b.{L}", "ffn hidden"}}}),
            "MC2009 row decoder.layers.{L}.mlp.linear_fc1.weight names no rule, and no plain rule has so "
            "many sources: "
            "expected one source, found 2");
  EXPECT_EQ(refusal("llama", {.megatron = kLayer + "mlp.linear_fc1.weight",
                              .rule = "",
                              .sources = {{"a.{L}", "2*ffn hidden"}}}),
            "MC2013 tensor 'decoder.layers.{L}.mlp.linear_fc1.weight': a fused parameter needs a rule");
  EXPECT_EQ(
      refusal("llama",
              {.megatron = kLayer + "mlp.linear_fc2.weight", .rule = "row", .sources = {{"a", "hidden ffn"}}})
          .substr(0, 6),
      "MC2009");
}

// In which order the rows are must not decide where the weights go.
TEST(MapRows, OfOneParameterAreRefused) {
  MapRow row{.megatron = kLayer + "mlp.linear_fc2.weight",
             .rule = "row",
             .sources = {{"model.layers.{L}.mlp.w2.weight", "hidden ffn"}}};
  const MapRow other{.megatron = kLayer + "mlp.linear_fc1.weight",
                     .rule = "column",
                     .sources = {{"model.layers.{L}.mlp.w1.weight", "ffn hidden"}}};
  MapRow last = row;
  last.rule = "replicate";
  auto both = [&] {
    return thrown_by([&] { OwnFamily(family_named("llama"), file_of({row, other, last})); });
  };
  const std::string refused =
      "MC2009 two rows of the map are of the parameter decoder.layers.{L}.mlp.linear_fc2.weight: "
      "expected one row for each parameter, found rows 1 and 3 of \"rows\"";
  EXPECT_EQ(both(), refused);
  last.needs = Needs::kTied;  // it replaces the first one all the same
  EXPECT_EQ(both(), refused);
  last.as_shown = true;
  EXPECT_EQ(both(), refused);
  row.as_shown = true;
  row.layer = last.layer = "dense";
  EXPECT_EQ(both().find("two rows"), std::string::npos) << both();
  last.needs = row.needs;
  EXPECT_EQ(both(), refused);
}

TEST(MapRows, ThatAModelLacksAreRemoved) {
  MapFile file;
  file.remove = {kLayer + "mlp.linear_fc1.layer_norm_weight"};
  OwnFamily own(family_named("llama"), file);
  EXPECT_EQ(layer_rows(own.family(), "dense"),
            (std::vector<std::string>{"mlp.linear_fc1.weight gated_mlp", "mlp.linear_fc2.weight row"}));
  EXPECT_EQ(layer_rows(family_named("llama"), "dense").size(), 3u);
  file.remove = {kLayer + "mlp.linear_fc9.weight"};
  EXPECT_EQ(thrown_by([&] { OwnFamily(family_named("llama"), file); }),
            "MC2009 no row to remove is named decoder.layers.{L}.mlp.linear_fc9.weight");
}

// Every section of a family without a base: the rows in their lists, and the copy that a tied model has on
// its last stage.
TEST(MapRows, WithoutABaseAreAFamilyByThemselves) {
  auto row = [](std::string megatron, std::string rule, std::string source, std::string shape,
                Needs needs = Needs::kAlways) {
    return MapRow{.megatron = std::move(megatron),
                  .rule = std::move(rule),
                  .sources = {{std::move(source), std::move(shape)}},
                  .needs = needs};
  };
  MapFile file;
  file.base = std::string(kNoBase);
  file.rows = {
      row("embedding.word_embeddings.weight", "vocab", "in.weight", "vocab hidden"),
      row(kLayer + "self_attention.linear_qkv.weight", "column", "h.{L}.qkv.weight", "qkv hidden"),
      row(kLayer + "pre_mlp_layernorm.weight", "replicate", "h.{L}.n.weight", "hidden"),
      row(kLayer + "mlp.experts.linear_fc2.weight{E}", "row", "h.{L}.e.{E}.down", "hidden expert_ffn"),
      row(kLayer + "mlp.linear_fc2.weight", "row", "h.{L}.down.weight", "hidden ffn"),
      row("decoder.final_layernorm.weight", "replicate", "n.weight", "hidden"),
      row("output_layer.weight", "vocab", "out.weight", "vocab hidden", Needs::kUntied)};
  OwnFamily own(file);
  std::string all;
  for (const Section& section : own.family().sections)
    for (const RowList& list : row_lists(section))
      for (const Row& r : list.rows)
        all += cat(static_cast<int>(section.stage), " ", list.kind, " ", section.megatron, r.megatron, " ",
                   needs_name(r.needs), "\n");
  EXPECT_EQ(all,
            "0  embedding.word_embeddings.weight \n"
            "0 attention decoder.layers.{L}.self_attention.linear_qkv.weight \n"
            "0 latent_attention decoder.layers.{L}.self_attention.linear_qkv.weight \n"
            "0 dense decoder.layers.{L}.mlp.linear_fc2.weight \n"
            "0 moe decoder.layers.{L}.pre_mlp_layernorm.weight \n"
            "0 moe decoder.layers.{L}.mlp.experts.linear_fc2.weight{E} \n"
            "2  decoder.final_layernorm.weight \n"
            "4  output_layer.weight untied\n"
            "5  output_layer.weight tied\n");
  EXPECT_EQ(own.family().sections.back().rows[0].sources[0].name, "in.weight");
  file.rows.erase(file.rows.begin() + 1, file.rows.end() - 1);
  EXPECT_EQ(
      thrown_by([&] { OwnFamily{file}; }),
      "MC2009 a map without a base has no rows of layers: expected Megatron names with {L}, found 2 rows");
}

}  // namespace map_rows_test
}  // namespace mckpt::impl
