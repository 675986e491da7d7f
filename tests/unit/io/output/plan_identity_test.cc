// The differences of two identities in words: the setting by name, with both values.
#include "io/output/plan_identity.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace plan_identity_test {

using Lines = std::vector<std::string>;

std::string text(i64 tp, std::string_view dtype, std::string_view source, std::string_view version = "1.0") {
  return PlanIdentity("reshard by key", version)
      .set("tp", tp)
      .set("dtype", dtype)
      .add("the source", source)
      .text();
}

TEST(PlanIdentity, IsEqualForEqualPartsAlone) {
  EXPECT_EQ(text(2, "keep", "a 1"), text(2, "keep", "a 1"));
  EXPECT_NE(text(2, "keep", "a 1"), text(2, "keep", "a 2"));
  EXPECT_NE(PlanIdentity("m", "1").add("x", "ab").add("y", "c").text(),
            PlanIdentity("m", "1").add("x", "a").add("y", "bc").text());
  EXPECT_EQ(plan_differences(text(2, "keep", "a"), text(2, "keep", "a")), Lines{});
}

TEST(PlanIdentity, NamesTheSettingsThatDiffer) {
  EXPECT_EQ(plan_differences(text(2, "keep", "a"), text(4, "keep", "a")),
            Lines{"`tp`: 2 in the first run, 4 in this one"});
  EXPECT_EQ(
      plan_differences(text(2, "keep", "a"), text(4, "bf16", "b")),
      (Lines{"`dtype`: keep in the first run, bf16 in this one", "`tp`: 2 in the first run, 4 in this one"}));
  EXPECT_EQ(plan_differences(text(2, "", "a"), text(2, "bf16", "a")),
            Lines{"`dtype`: not given in the first run, bf16 in this one"});
}

// Parts of which only the digest is kept follow from the settings, so they are named where no setting
// differs.
TEST(PlanIdentity, NamesOtherPartsWhereNoSettingDiffers) {
  EXPECT_EQ(plan_differences(text(2, "keep", "a"), text(2, "keep", "b")),
            Lines{"the source: not those of the first run"});
  EXPECT_EQ(plan_differences(text(2, "keep", "a", "0.9"), text(2, "keep", "a", "1.0")),
            Lines{"the version of mckpt: 0.9 in the first run, 1.0 in this one"});
  std::string other = PlanIdentity("export", "1.0").set("tp", 2).text();
  EXPECT_EQ(plan_differences(other, text(2, "keep", "a")),
            Lines{"what is made: export in the first run, reshard by key in this one"});
}

// chmod changes the time of the last change of a file, and nothing that is in it.
TEST(PlanIdentity, TellsWhereOnlyTimesDiffer) {
  auto of = [](i64 tp, std::string_view source, std::string_view times) {
    return PlanIdentity("m", "1")
        .set("tp", tp)
        .add("the source", source)
        .add_times("the source", times)
        .text();
  };
  const std::string begun = of(2, "a", "1");
  EXPECT_FALSE(only_times_differ(begun, begun));
  EXPECT_TRUE(only_times_differ(begun, of(2, "a", "2")));
  EXPECT_NE(begun, of(2, "a", "2"));
  const Lines times = plan_differences(begun, of(2, "a", "2"));
  ASSERT_EQ(times.size(), 1u);
  EXPECT_NE(
      times[0].find("the source: not those of the first run by the time of their last change (ctime) alone"),
      std::string::npos)
      << times[0];
  EXPECT_FALSE(only_times_differ(begun, of(4, "a", "2")));
  EXPECT_EQ(plan_differences(begun, of(4, "a", "2")), Lines{"`tp`: 2 in the first run, 4 in this one"});
  EXPECT_FALSE(only_times_differ(begun, of(2, "b", "2")));
  EXPECT_EQ(plan_differences(begun, of(2, "b", "2")), Lines{"the source: not those of the first run"});
  EXPECT_FALSE(only_times_differ("", begun));
  EXPECT_FALSE(only_times_differ("m 00\n", begun));
}

// The text of an unfinished folder may be of another program, cut, or anything.
TEST(PlanIdentity, ReadsAnyText) {
  for (std::string begun : {"", "\n", "x", "reshard by key", "reshard by key 00\n",
                            "reshard by key 00\ntp=\n\n=:", "\xff\xfe\n\0tp=3\n"})
    EXPECT_FALSE(plan_differences(begun, text(2, "keep", "a")).empty()) << begun;
  std::string long_value(5000, 'v');
  EXPECT_LT(PlanIdentity("m", "1").set("freeze", long_value).text().size(), 200u);
}

}  // namespace plan_identity_test
}  // namespace mckpt::impl
