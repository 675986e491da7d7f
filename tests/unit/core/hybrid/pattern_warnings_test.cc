#include "core/hybrid/pattern_warnings.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "core/hybrid/segment.h"

#include <gtest/gtest.h>

namespace mckpt::impl::pattern_warnings_test {
namespace {

std::string names(const std::vector<PatternWarning>& warnings) {
  std::string out;
  for (const PatternWarning& w : warnings) out += cat(w.name, " ");
  return out;
}

// The warnings of the first stage.
std::string stage(std::string_view pattern, i64 stages) {
  StageRequest request;
  request.pp_size = stages;
  return names(stage_warnings(pattern, Dialect::kGrouped, request));
}

std::string whole(std::string_view pattern) {
  return names(pattern_warnings(value_or_throw(check_pattern(pattern, Dialect::kGrouped), pattern)));
}

TEST(PatternWarnings, GroupsWhoseLayersShareNames) {
  EXPECT_EQ(whole("[*-]M"), "");
  EXPECT_EQ(whole("[MM]-"), "duplicate_keys ");
}

TEST(PatternWarnings, StagesThatLoseLayersOrRunSomeTwice) {
  EXPECT_EQ(stage("MMMM|MMMM", 2), "");
  EXPECT_EQ(stage("MMMMMMMM", 2), "uncut_pipeline ");
  EXPECT_EQ(range_words({4, 9}), "layers 4 to 8");
  EXPECT_EQ(range_words({4, 5}), "layer 4");
}

TEST(PatternWarnings, AStageMayBeValidWhereThePatternIsNot) {
  EXPECT_EQ(stage("MM|[M", 2), "invalid_elsewhere ");
}

TEST(PatternWarnings, NameALastStageWithoutLayers) {
  EXPECT_EQ(whole("M*|/M*"), "last_stage_empty ");
  EXPECT_EQ(whole("M*|M||"), "last_stage_empty ");
  EXPECT_EQ(whole("M*||M/M*"), "");
  EXPECT_EQ(whole("/M*"), "");
}

}  // namespace
}  // namespace mckpt::impl::pattern_warnings_test
