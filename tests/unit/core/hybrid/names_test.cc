#include "core/hybrid/names.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hybrid/keys.h"
#include "tests/unit/core/hybrid/layer_dump.h"

namespace mckpt::impl {
namespace layer_names_test {

constexpr LayerForm kForms[] = {LayerForm::kFlat, LayerForm::kMember, LayerForm::kLogical, LayerForm::kGpt,
                                LayerForm::kStacked};

// The name in the other form, or "MCnnnn: why not".
std::string renamed(const LayerPattern& pattern, LayerForm from, LayerForm to, std::string_view name,
                    i64 stacked = 0) {
  LayerNames source(pattern, from), target(pattern, to);
  std::optional<NameFault> fault;
  LayerName found = source.find(name, fault);
  if (found.kind == LayerName::Kind::kStack) found = source.of_stack(found.rest, stacked, fault);
  if (fault) return cat(code_name(fault->code), ": ", fault->message);
  if (found.kind == LayerName::Kind::kOther) return std::string(name);
  if (found.kind == LayerName::Kind::kLayer && found.depth < 0 && !target.has(found.layer)) return "none";
  return target.text(found);
}

std::string renamed(std::string_view pattern, LayerForm from, LayerForm to, std::string_view name,
                    i64 stacked = 0) {
  return renamed(parse_pattern(pattern, Dialect::kGrouped), from, to, name, stacked);
}

TEST(LayerNames, OneLayerIsNotSeveral) {
  auto note = [](std::string_view text) -> std::string {
    LayerPattern pattern = parse_pattern(text, Dialect::kGrouped);
    try {
      LayerNames names(pattern, LayerForm::kGpt);
    } catch (const Error& e) {
      return e.notes().empty() ? "" : e.notes()[0];
    }
    return "nothing";
  };
  EXPECT_EQ(note("**-"), "2 layers are *, 1 is - or E");
  EXPECT_EQ(note("*--"), "1 layer is *, 2 are - or E");
}

TEST(LayerNames, OfAGroupedPatternInEveryForm) {
  struct Row {
    const char *flat, *member, *logical;
  };
  static constexpr Row kRows[] = {
      {"decoder.layers.0.self_attention.linear_qkv.weight",
       "decoder.layers.0.layers.0.self_attention.linear_qkv.weight",
       "decoder.layers.0.self_attention.linear_qkv.weight"},
      {"decoder.layers.1.mlp.linear_fc1.weight", "decoder.layers.0.layers.1.mlp.linear_fc1.weight",
       "decoder.layers.0.mlp.linear_fc1.weight"},
      {"decoder.layers.2.mixer.conv1d.weight.x", "decoder.layers.1.mixer.conv1d.weight.x",
       "decoder.layers.1.mixer.conv1d.weight.x"},
      {"decoder.layers.3.input_layernorm.weight", "decoder.layers.2.layers.0.input_layernorm.weight",
       "decoder.layers.2.input_layernorm.weight"},
      {"decoder.layers.4.pre_mlp_layernorm.weight", "decoder.layers.2.layers.1.pre_mlp_layernorm.weight",
       "decoder.layers.2.pre_mlp_layernorm.weight"},
      {"decoder.final_norm.weight", "decoder.final_norm.weight", "decoder.final_layernorm.weight"},
      {"embedding.word_embeddings.weight", "embedding.word_embeddings.weight",
       "embedding.word_embeddings.weight"},
      {"mtp.layers.1.mtp_model_layer.layers.1.mixer.D", "mtp.layers.1.mtp_model_layer.layers.1.mixer.D",
       "mtp.layers.1.mtp_model_layer.layers.1.mixer.D"},
      {"mtp.layers.0.enorm.weight", "mtp.layers.0.enorm.weight", "mtp.layers.0.enorm.weight"},
  };
  for (const Row& row : kRows) {
    const std::pair<LayerForm, const char*> names[] = {
        {LayerForm::kFlat, row.flat}, {LayerForm::kMember, row.member}, {LayerForm::kLogical, row.logical}};
    for (auto [from, name] : names)
      for (auto [to, other] : names) EXPECT_EQ(renamed("[*-]M[*E]/*M/*M", from, to, name), other);
  }
}

TEST(LayerNames, OfAGptModelPairAttentionAndMlpByTheirOrder) {
  struct Row {
    const char* pattern;
    LayerForm form;
    const char *hybrid, *gpt, *stacked;
    i64 number;
  };
  static constexpr Row kRows[] = {
      {"*-*-", LayerForm::kFlat, "decoder.layers.2.self_attention.linear_proj.weight",
       "decoder.layers.1.self_attention.linear_proj.weight",
       "decoder.layers.self_attention.linear_proj.weight", 1},
      {"**--", LayerForm::kFlat, "decoder.layers.2.mlp.linear_fc2.weight",
       "decoder.layers.0.mlp.linear_fc2.weight", "decoder.layers.mlp.linear_fc2.weight", 0},
      {"**MM--", LayerForm::kFlat, "decoder.layers.5.mlp.linear_fc2.weight",
       "decoder.layers.1.mlp.linear_fc2.weight", "decoder.layers.mlp.linear_fc2.weight", 1},
      {"M[*E][M*]E", LayerForm::kLogical, "decoder.layers.3.mlp.experts.experts.linear_fc1.weight",
       "decoder.layers.1.mlp.experts.experts.linear_fc1.weight",
       "decoder.layers.mlp.experts.experts.linear_fc1.weight", 1},
      {"M[*E]|[M*]E", LayerForm::kMember, "decoder.layers.2.layers.1.input_layernorm.weight",
       "decoder.layers.1.input_layernorm.weight", "decoder.layers.input_layernorm.weight", 1},
      {"*-", LayerForm::kFlat, "decoder.final_norm.bias", "decoder.final_layernorm.bias",
       "decoder.final_layernorm.bias", 0},
      {"*-/-*", LayerForm::kFlat, "mtp.layers.0.mtp_model_layer.layers.1.self_attention.linear_proj.weight",
       "mtp.layers.0.transformer_layer.self_attention.linear_proj.weight",
       "mtp.layers.0.transformer_layer.self_attention.linear_proj.weight", 0},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(renamed(row.pattern, row.form, LayerForm::kGpt, row.hybrid), row.gpt);
    EXPECT_EQ(renamed(row.pattern, LayerForm::kGpt, row.form, row.gpt), row.hybrid);
    EXPECT_EQ(renamed(row.pattern, row.form, LayerForm::kStacked, row.hybrid), row.stacked);
    EXPECT_EQ(renamed(row.pattern, LayerForm::kStacked, row.form, row.stacked, row.number), row.hybrid);
    EXPECT_EQ(renamed(row.pattern, LayerForm::kGpt, LayerForm::kStacked, row.gpt), row.stacked);
  }
  EXPECT_EQ(renamed("M*-", LayerForm::kFlat, LayerForm::kGpt, "decoder.layers.0.mixer.D"), "none");
  EXPECT_EQ(renamed("*-/*-", LayerForm::kGpt, LayerForm::kFlat,
                    "mtp.layers.0.mtp_model_layer.mlp.linear_fc1.weight"),
            "mtp.layers.0.mtp_model_layer.layers.1.mlp.linear_fc1.weight");
}

TEST(LayerNames, RefuseWhatThePatternDoesNotExplain) {
  struct Row {
    const char* pattern;
    LayerForm form;
    const char *name, *code;
  };
  static constexpr Row kRows[] = {
      {"[**]M", LayerForm::kLogical, "decoder.layers.2.mixer.D", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.x.mixer.D", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.1", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.-1.mixer.D", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.99999999999999999999.mixer.D", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.self_attention.linear_qkv.weight", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.0.self_attention.linear_qkv.weight", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.0.mlp.linear_fc1.weight", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.0.layers.0.self_attention.linear_qkv.weight", "MC0205"},
      {"[**]M", LayerForm::kLogical, "decoder.layers.1.custom.weight", "MC2005"},
      {"[**]M", LayerForm::kMember, "decoder.layers.0.layers.2.self_attention.linear_qkv.weight", "MC0205"},
      {"[**]M", LayerForm::kMember, "decoder.layers.0.self_attention.linear_qkv.weight", "MC0205"},
      {"[**]M", LayerForm::kMember, "decoder.layers.1.layers.0.mixer.D", "MC0205"},
      {"[**]M", LayerForm::kMember, "decoder.layers.0.layers.mixer.D", "MC0205"},
      {"*-", LayerForm::kFlat, "decoder.layers.1.mlp.router.weight", "MC0205"},
      {"*E", LayerForm::kFlat, "decoder.layers.1.mlp.linear_fc1.weight", "MC0205"},
      {"G-", LayerForm::kFlat, "decoder.layers.0.self_attention.linear_qkv.weight", "MC0205"},
      {"*-", LayerForm::kFlat, "decoder.layers.0.self_attention.in_proj.weight", "MC0205"},
      {"*-", LayerForm::kFlat, "language_model.decoder.layers.0.self_attention.linear_qkv.weight", "MC2005"},
      {"*-", LayerForm::kGpt, "decoder.layers.1.mlp.linear_fc1.weight", "MC0205"},
      {"*-", LayerForm::kGpt, "decoder.layers.0.cross_attention.linear_q.weight", "MC2005"},
      {"M*-", LayerForm::kGpt, "decoder.layers.0.mixer.D", "MC2005"},
      {"*-", LayerForm::kStacked, "decoder.layers.0.mlp.linear_fc1.weight", "MC0205"},
      {"*-", LayerForm::kFlat, "mtp.layers.0.mtp_model_layer.layers.0.mlp.linear_fc1.weight", "MC0205"},
      {"*-/M", LayerForm::kFlat, "mtp.layers.1.enorm.weight", "MC0205"},
      {"*-/M", LayerForm::kFlat, "mtp.layers.0.mtp_model_layer.layers.1.mixer.D", "MC0205"},
      {"*-/M", LayerForm::kFlat, "mtp.layers.0.transformer_layer.mixer.D", "MC0205"},
      {"*-/*-", LayerForm::kGpt, "mtp.layers.0.mtp_model_layer.layers.0.self_attention.linear_proj.weight",
       "MC2005"},
  };
  for (const Row& row : kRows)
    EXPECT_EQ(renamed(row.pattern, row.form, row.form, row.name).substr(0, 6), row.code) << row.name;
}

TEST(LayerNames, OfAGptModelExistForPairsAlone) {
  for (const char* pattern : {"G-", "D-", "+-", "*-*E", "**-", "*", "*-/M", "*-/*", "*-/*-*-"})
    for (LayerForm form : {LayerForm::kGpt, LayerForm::kStacked}) {
      LayerPattern parsed = parse_pattern(pattern, Dialect::kGrouped);
      EXPECT_THROW(LayerNames(parsed, form), Error) << pattern;
    }
  for (const char* pattern : {"", "MM", "*-", "[*-]|M[*-]/*-", "E*", "[*E]/*E/*E"}) {
    LayerPattern parsed = parse_pattern(pattern, Dialect::kGrouped);
    EXPECT_NO_THROW(LayerNames(parsed, LayerForm::kGpt)) << pattern;
  }
}

// Every safe group of up to three layers, twice with a lone layer between: from every form to every other
// that has the layer and back, and no two names meet.
TEST(LayerNames, TheWayBackIsTheInverseForEverySafeGroup) {
  const std::string kMixers[] = {"", "M"}, kAttentions[] = {"", "*", "G"}, kMlps[] = {"", "-", "E"};
  for (const std::string& mixer : kMixers)
    for (const std::string& attention : kAttentions)
      for (const std::string& mlp : kMlps) {
        std::string group = mixer + attention + mlp;
        if (group.empty()) continue;
        LayerPattern pattern = parse_pattern(cat("[", group, "]M[", group, "]"), Dialect::kGrouped);
        EXPECT_TRUE(group_hazards(pattern).empty());
        bool gpt = mlp.empty() == attention.empty() && attention != "G";
        std::vector<std::string> seen;
        for (const LayerPlace& p : layer_places(pattern)) {
          std::string tail = cat(family_prefix(p.kind->family), "weight");
          std::string flat = cat(stored_layer_prefix(p.physical_index), tail);
          for (LayerForm form : std::span(kForms).first(gpt && p.kind->family != KeyFamily::kMixer ? 5 : 3)) {
            std::string there = renamed(pattern, LayerForm::kFlat, form, flat);
            i64 number = is_gpt(form) ? LayerNames(pattern, form).number(p.physical_index) : 0;
            EXPECT_EQ(renamed(pattern, form, LayerForm::kFlat, there, number), flat);
            there += cat(" ", form_name(form), " ", number);
            EXPECT_EQ(std::find(seen.begin(), seen.end(), there), seen.end()) << there;
            seen.push_back(there);
          }
        }
      }
}

// Where the model rank has the layer in memory, named from the beginning of the whole model.
std::string member_name(const LayerPattern& pattern, i64 segment, std::string_view local) {
  for (const LayerPlace& p : layer_places(pattern)) {
    if (p.segment != segment || !local.starts_with(local_layer_prefix(p))) continue;
    LayerPlace whole = p;
    whole.position = p.logical_index;
    return cat(local_layer_prefix(whole), local.substr(local_layer_prefix(p).size()));
  }
  return std::string(local);
}

std::string layer_of(std::string_view name, std::string_view rest) {
  return std::string(name.substr(0, name.size() - rest.size()));
}

// The names that models of real code give their layers in memory and in their checkpoints; below the layer
// the two may differ (experts, parts of fused tensors).
TEST(LayerNames, AgreeWithTheRecordedModels) {
  GoldenJson golden = read_golden("hybrid/layer_keys.json");
  i64 compared = 0, shared = 0;
  for (const GoldenJson& model : golden["models"].items()) {
    SCOPED_TRACE(cat(model["name"].string(), " rank ", model["rank"].integer()));
    LayerPattern pattern = parse_pattern(model["pattern"].string(), Dialect::kGrouped);
    i64 segment = model["pp"].integer() > 1 ? model["rank"].integer() : 0;
    LayerNames member(pattern, LayerForm::kMember), logical(pattern, LayerForm::kLogical);
    for (const GoldenJson& pair : model["keys"].items()) {
      if (!pair.items().at(1).string().starts_with("decoder.")) continue;
      std::string local = member_name(pattern, segment, pair.items().at(0).string());
      const std::string& key = pair.items().at(1).string();
      std::optional<NameFault> in_memory, stored;
      LayerName a = member.find(local, in_memory), b = logical.find(key, stored);
      ASSERT_FALSE(in_memory) << local;
      EXPECT_EQ(layer_of(logical.text(a), a.rest), layer_of(key, b.rest)) << local;
      if (stored) {  // the members of the group write the same keys
        shared++;
        continue;
      }
      compared++;
      EXPECT_EQ(b.layer, a.layer) << key;
      EXPECT_EQ(layer_of(member.text(b), b.rest), layer_of(local, a.rest)) << key;
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(shared, 30);
}

}  // namespace layer_names_test
}  // namespace mckpt::impl
