#include "core/hybrid/keys.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/hybrid/segment.h"
#include "tests/unit/core/hybrid/layer_dump.h"

namespace mckpt::impl {
namespace layer_keys_test {

Dialect dialect_of(const GoldenJson& model) {
  return model["dialect"].string() == "flat" ? Dialect::kFlat : Dialect::kGrouped;
}

// The places of one pipeline rank's layers: without virtual stages, rank and segment are the same.
std::vector<LayerPlace> places_of_rank(const LayerPattern& pattern, i64 rank) {
  std::vector<LayerPlace> places = layer_places(pattern);
  std::erase_if(places, [&](const LayerPlace& p) { return p.segment != rank; });
  return places;
}

// Layer numbers nest as the modules do.
std::vector<i64> flattened(const GoldenJson& numbers) {
  std::vector<i64> out;
  for (const GoldenJson& n : numbers.items()) {
    if (n.kind() == GoldenJson::Kind::kInteger)
      out.push_back(n.integer());
    else
      for (i64 member : n.integers()) out.push_back(member);
  }
  return out;
}

TEST(LayerKeys, AgreeWithTheRecordedModels) {
  GoldenJson golden = read_golden("hybrid/layer_keys.json");
  ASSERT_EQ(golden["models"].size(), 10u);
  for (const GoldenJson& model : golden["models"].items()) {
    SCOPED_TRACE(cat(model["name"].string(), " rank ", model["rank"].integer()));
    LayerPattern pattern = parse_pattern(model["pattern"].string(), dialect_of(model));
    i64 pp_rank = model["pp"].integer() > 1 ? model["rank"].integer() : 0;
    std::vector<LayerPlace> places = places_of_rank(pattern, pp_rank);
    std::vector<i64> numbers;
    std::vector<int> used(places.size());
    for (const LayerPlace& p : places) numbers.push_back(p.layer_number());
    EXPECT_EQ(numbers, flattened(model["layer_numbers"]));
    for (const GoldenJson& pair : model["keys"].items()) {
      if (!pair.items().at(1).string().starts_with("decoder.")) continue;
      const std::string &local = pair.items().at(0).string(), &key = pair.items().at(1).string();
      bool found = local.starts_with("decoder.final_norm.") &&
                   key.starts_with(final_norm_prefix(pattern.has_groups()));
      for (std::size_t i = 0; i < places.size(); i++) {
        std::string prefix = local_layer_prefix(places[i]);
        if (!local.starts_with(prefix)) continue;
        // A path below a group's member begins with the group's own path: only the member knows the family.
        std::string stored = stored_layer_prefix(places[i].logical_index);
        std::string_view rest = std::string_view(local).substr(prefix.size());
        std::string_view family = family_prefix(places[i].kind->family);
        found = key.starts_with(stored) &&
                (rest.starts_with(family) || (rest.starts_with("pre_mlp_layernorm.") && family == "mlp."));
        used[i]++;
      }
      EXPECT_TRUE(found) << local << " -> " << key;
    }
    for (int n : used) EXPECT_GT(n, 0);
  }
}

TEST(LayerKeys, FollowTheGroup) {
  LayerPattern pattern = parse_pattern("[*-]M[*E]", Dialect::kGrouped);
  std::string got;
  for (const LayerPlace& p : layer_places(pattern))
    got += cat(p.layer_number(), " ", local_layer_prefix(p), " ", stored_layer_prefix(p.logical_index), "\n");
  EXPECT_EQ(got,
            "1 decoder.layers.0.layers.0. decoder.layers.0.\n"
            "2 decoder.layers.0.layers.1. decoder.layers.0.\n"
            "3 decoder.layers.1. decoder.layers.1.\n"
            "4 decoder.layers.2.layers.0. decoder.layers.2.\n"
            "5 decoder.layers.2.layers.1. decoder.layers.2.\n");
  EXPECT_EQ(final_norm_prefix(pattern.has_groups()), "decoder.final_layernorm.");
  EXPECT_EQ(final_norm_prefix(parse_pattern("*-", Dialect::kGrouped).has_groups()), "decoder.final_norm.");
  EXPECT_EQ(mtp_layer_prefix("0", 1), "mtp.layers.0.mtp_model_layer.layers.1.");
}

TEST(LayerKeys, NameGroupsWhoseMembersShareKeys) {
  struct Row {
    const char* pattern;
    const char* hazard;  // item: members, and whether the keys are the same
  };
  static constexpr Row kRows[] = {
      {"[MM]", "0: 0 1 same"},
      {"[**]", "0: 0 1 same"},
      {"[--]", "0: 0 1 same"},
      {"[M-M-]", "0: 0 2 same"},
      {"[GG]", "0: 0 1 same"},
      {"[D+]", "0: 0 1 same"},
      {"[*G-E]", "0: 0 1 family"},
      {"[-E]", "0: 0 1 family"},
      {"M[M*]-", ""},
      {"[M*E]", ""},
      {"[E]", ""},
      {"MM--", ""},
      {"[*-][G*G]", "1: 0 2 same"},
      {"[M*-][*-M]", ""},
      {"[-*-E]", "0: 0 2 same"},
  };
  for (const Row& row : kRows) {
    std::string got;
    for (const GroupHazard& h : group_hazards(parse_pattern(row.pattern, Dialect::kGrouped)))
      got +=
          cat(h.logical_index, ": ", h.first_member, " ", h.second_member, h.same_keys ? " same" : " family");
    EXPECT_EQ(got, row.hazard) << row.pattern;
  }
}

}  // namespace layer_keys_test
}  // namespace mckpt::impl
