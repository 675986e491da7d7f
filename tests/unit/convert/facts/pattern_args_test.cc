// The pattern in args, in the fields in which Megatron's versions have it.
#include "convert/facts/pattern_args.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hybrid/pattern.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "tests/support/throws.h"

namespace mckpt::impl::pattern_args_test {
namespace {

using Field = std::pair<const char*, std::string>;

// Args with these texts, and `depths` as mtp_num_layers.
std::string args_with(const std::vector<Field>& fields, i64 depths) {
  PickleWriter p;
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  for (const auto& [name, value] : fields) p.text(name), p.text(value);
  p.text("mtp_num_layers"), p.integer(depths);
  p.op(Op::kSetitems);
  return p.finish();
}

std::string pattern_in(const std::vector<Field>& fields, i64 depths = 0) {
  const std::string bytes = args_with(fields, depths);
  const Pickle read({reinterpret_cast<const u8*>(bytes.data()), bytes.size()}, {});
  std::string out;
  const std::string fault = thrown_by([&] { out = pattern_of_args(read.root()).value_or("none"); });
  return out.empty() ? fault : out;
}

// "name=value" of the fields that change for the pattern.
std::string changes_for(const char* pattern, const std::vector<Field>& fields, i64 depths = 0) {
  const std::string bytes = args_with(fields, depths);
  const Pickle read({reinterpret_cast<const u8*>(bytes.data()), bytes.size()}, {});
  std::string out;
  const LayerPattern of = parse_pattern(pattern, Dialect::kGrouped);
  for (const ArgChange& c : args_for_layers(read.root(), of, false, of.physical_layers())) {
    const auto* text = std::get_if<std::string>(&c.value);
    out += cat(out.empty() ? "" : " ", c.name, "=", text ? *text : "None");
  }
  return out;
}

TEST(PatternArgs, AreReadUnderBothNames) {
  EXPECT_EQ(pattern_in({{"hybrid_layer_pattern", "M*|M"}}), "M*|M");
  EXPECT_EQ(pattern_in({{"hybrid_override_pattern", "M*M"}}), "M*M");
  EXPECT_EQ(pattern_in({{"hybrid_layer_pattern", "M*"}, {"hybrid_override_pattern", "M*"}}), "M*");
  EXPECT_EQ(pattern_in({{"hybrid_override_pattern", "M*"}, {"mtp_hybrid_override_pattern", "*"}}, 2),
            "M*/*/*");
}

// A run that was given the two old fields saves the main part in the old one, and all in the new one.
TEST(PatternArgs, MayHaveTheMtpPartsInTheNewerFieldAlone) {
  EXPECT_EQ(pattern_in({{"hybrid_layer_pattern", "M*/*/*"}, {"hybrid_override_pattern", "M*"}}, 2), "M*/*/*");
}

TEST(PatternArgs, MayNotContradictEachOther) {
  for (const auto& [layer, old] :
       {std::pair("M*", "M-"), {"M*/*", "M"}, {"M*", "M*/*"}, {"M*/*", "M*/M"}, {"M*|M", "M*M"}}) {
    const std::string told = pattern_in({{"hybrid_layer_pattern", layer}, {"hybrid_override_pattern", old}});
    EXPECT_NE(told.find("contradict each other"), std::string::npos)
        << layer << " and " << old << ": " << told;
  }
}

// An old Megatron reads the old fields alone, each for its own part.
TEST(PatternArgs, AreChangedWhereTheRunHadThem) {
  EXPECT_EQ(changes_for("M|*/*", {{"hybrid_layer_pattern", "M*/*"}}), "hybrid_layer_pattern=M|*/*");
  EXPECT_EQ(
      changes_for("M|*/*", {{"hybrid_override_pattern", "M*"}, {"mtp_hybrid_override_pattern", "*"}}, 1),
      "hybrid_override_pattern=M|*");
  EXPECT_EQ(changes_for("M|*/*", {{"hybrid_layer_pattern", "M*/*"}, {"hybrid_override_pattern", "M*"}}, 1),
            "hybrid_layer_pattern=M|*/* hybrid_override_pattern=M|*");
  EXPECT_EQ(changes_for("M|*/*", {{"hybrid_override_pattern", "M*/*"}}, 1), "hybrid_override_pattern=M|*/*");
  EXPECT_EQ(changes_for("M|*", {}), "hybrid_layer_pattern=M|*");
}

}  // namespace
}  // namespace mckpt::impl::pattern_args_test
