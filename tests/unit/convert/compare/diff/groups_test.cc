// Groups of names, ranges of numbers and tolerances as people write them.
#include "convert/compare/diff/groups.h"

#include <gtest/gtest.h>

#include "convert/compare/diff/diff.h"
#include "convert/compare/diff/tolerance_text.h"
#include "core/base/error.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace diff_groups_test {

DiffRow row(std::string name, DiffRow::Kind kind = DiffRow::Kind::kValues) {
  return {.kind = kind, .name = std::move(name), .items = 1, .beyond = 1};
}

TEST(DiffGroups, AreNamesThatDifferInNumbersAlone) {
  Diff diff;
  diff.report.compared = {
      "layers.0.up", "layers.1.up", "layers.2.up", "layers.0.fc1.weight0_w", "layers.0.fc1.weight1_w",
      "norm1",       "norm2"};
  diff.rows = {row("layers.2.up"), row("layers.1.up"), row("layers.0.fc1.weight1_w"),
               row("layers.3.up", DiffRow::Kind::kOnlyA), row("layers.0.up", DiffRow::Kind::kCast)};
  diff.rows.push_back(row("norm2"));
  diff.rows.back().beyond = 0;  // within the tolerance
  std::string text;
  for (const DiffGroup& g : diff_groups(diff)) {
    text += cat(g.pattern, " ", g.differ, "/", g.tensors);
    for (const std::vector<i64>& n : g.numbers) text += cat(" [", ranges_text(n, 9), "]");
    text += "\n";
  }
  EXPECT_EQ(text,
            "layers.*.fc1.weight*_w 1/2 [0] [1]\n"
            "layers.*.up 3/4 [1..3]\n"
            "norm1 0/1\n"
            "norm2 0/1\n");
}

TEST(RangesText, JoinsNeighboursAndCountsTheRest) {
  EXPECT_EQ(ranges_text({1, 2, 3, 7, 9, 10}, 9), "1..3, 7, 9, 10");
  EXPECT_EQ(ranges_text({1, 3, 5, 7, 8}, 2), "1, 3 and 3 more");
  EXPECT_EQ(ranges_text({}, 2), "");
}

TEST(ToleranceText, GivesTheFirstRuleThatMatches) {
  ToleranceRules rules;
  add_tolerance(rules, "rtol:1e-3");
  add_tolerance(rules, "*.norm=atol:0.5,ulp:4");
  add_tolerance(rules, "*=ulp:1");
  EXPECT_EQ(rules.of("a.norm").absolute, 0.5);
  EXPECT_EQ(rules.of("a.norm").ulps, 4);
  EXPECT_EQ(rules.of("a.norm").relative, 0);
  EXPECT_EQ(rules.of("other").ulps, 1);
  EXPECT_EQ(rules.otherwise.relative, 1e-3);
  for (const char* wrong :
       {"", "rtol", "rtol:", "rtol:x", "rtol:-1", "rtol:inf", "a=", "=rtol:1", "a=rtol:1,", "ulp:1.5"})
    EXPECT_THROW(add_tolerance(rules, wrong), Error) << wrong;
}

}  // namespace diff_groups_test
}  // namespace mckpt::impl
