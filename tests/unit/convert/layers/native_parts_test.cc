#include "convert/layers/mixer_parts.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/names.h"

#include <gtest/gtest.h>

#include <map>

namespace mckpt::impl {
namespace native_parts_test {

using Layer = std::map<std::string, std::vector<i64>, std::less<>>;

std::string dump(std::string_view fused, const Layer& layer) {
  std::optional<NameFault> fault;
  std::string out;
  for (const NativePart& p : native_parts(
           fused,
           [&](std::string_view rest) {
             auto at = layer.find(rest);
             return at == layer.end() ? std::span<const i64>() : std::span<const i64>(at->second);
           },
           fault))
    out += cat(out.empty() ? "" : " ", p.name, "@", p.first_row, "+", p.rows);
  return fault ? code_name(fault->code) : out;
}

// d_inner 128, 2 groups of 16 states, 16 heads of hidden size 64.
const Layer kMamba = {{"mixer.in_proj.weight", {336, 64}},
                      {"mixer.conv1d.weight", {192, 1, 4}},
                      {"mixer.conv1d.bias", {192}},
                      {"mixer.A_log", {16}},
                      {"mixer.dt_bias", {16}},
                      {"mixer.out_proj.weight", {64, 128}}};
// 2 key heads of 8, 4 value heads of 12.
const Layer kGdn = {{"self_attention.in_proj.weight", {136, 64}},
                    {"self_attention.conv1d.weight", {80, 1, 4}},
                    {"self_attention.A_log", {4}},
                    {"self_attention.dt_bias", {4}},
                    {"self_attention.out_proj.weight", {64, 48}}};
const Layer kGdn2 = {{"self_attention.in_proj.weight", {208, 64}},
                     {"self_attention.conv1d.weight", {80, 1, 4}},
                     {"self_attention.A_log", {2}},
                     {"self_attention.dt_bias", {16}},
                     {"self_attention.out_proj.weight", {64, 48}}};

TEST(NativeParts, HaveTheRowsOfTheRecordedModels) {
  EXPECT_EQ(dump("mixer.in_proj.weight", kMamba), "z@0+128 x@128+128 B@256+32 C@288+32 dt@320+16");
  EXPECT_EQ(dump("mixer.conv1d.weight", kMamba), "x@0+128 B@128+32 C@160+32");
  EXPECT_EQ(dump("mixer.conv1d.bias", kMamba), "x@0+128 B@128+32 C@160+32");
  EXPECT_EQ(dump("self_attention.in_proj.weight", kGdn),
            "query@0+16 key@16+16 value@32+48 z@80+48 beta@128+4 alpha@132+4");
  EXPECT_EQ(dump("self_attention.conv1d.weight", kGdn), "query@0+16 key@16+16 value@32+48");
  EXPECT_EQ(dump("self_attention.in_proj.weight", kGdn2),
            "query@0+16 key@16+16 value@32+48 z@80+48 f@128+16 b@144+16 w@160+48");
}

TEST(NativeParts, AreRefusedWhereTheSizesDoNotAddUp) {
  for (const Layer* good : {&kMamba, &kGdn, &kGdn2})
    for (const auto& [name, dims] : *good) {
      bool matters = !name.ends_with("dt_bias") && !name.ends_with(".bias");
      if (!matters) continue;
      std::string fused = good == &kMamba ? "mixer.in_proj.weight" : "self_attention.in_proj.weight";
      Layer other = *good;
      other[name].back() += 1, other[name].front() += 1;
      bool counts = !name.ends_with("A_log") || good != &kGdn2;
      if (counts) {
        EXPECT_EQ(dump(fused, other), "MC2012") << name;
      }
      other.erase(name);
      EXPECT_EQ(dump(fused, other), "MC2012") << name;
    }
}

TEST(NativeParts, AreThoseOfTheLayersKind) {
  EXPECT_EQ(fused_name(LayerKind::kMamba, "mixer.conv1d_bias"), "mixer.conv1d.bias");
  EXPECT_EQ(fused_name(LayerKind::kGdn, "self_attention.in_proj.weight"), "self_attention.in_proj.weight");
  EXPECT_FALSE(fused_name(LayerKind::kMamba, "mixer.in_proj.weight.z"));
  EXPECT_FALSE(fused_name(LayerKind::kMamba, "mixer.in_proj.layer_norm_weight"));
  EXPECT_FALSE(fused_name(LayerKind::kAttention, "self_attention.in_proj.weight"));
}

}  // namespace native_parts_test
}  // namespace mckpt::impl
