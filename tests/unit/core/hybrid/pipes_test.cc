// Pipes that move: every number of segments, against a search through all ways to place them.
#include "core/hybrid/pipes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/text.h"

namespace mckpt::impl::pipes_test {
namespace {

LayerPattern of(std::string_view text) { return parse_pattern(text, Dialect::kGrouped); }

std::string segments(std::string_view text, i64 count) {
  const std::optional<LayerPattern> out = with_segments(of(text), count);
  return out ? out->text : "none";
}

TEST(Pipes, StayWhereTheyCan) {
  EXPECT_EQ(segments("[*-]M|M[*E]-", 2), "[*-]M|M[*E]-");
  EXPECT_EQ(segments("[*-]M|M[*E]-", 4), "[*-]|M|M|[*E]-");
  EXPECT_EQ(segments("M|[*-]|M*|-", 2), "M[*-]|M*-");
  EXPECT_EQ(segments("M|[*-]|M*|-", 1), "M[*-]M*-");
  EXPECT_EQ(segments("M|M|M|M|M|M", 3), "MM|MM|MM");
}

TEST(Pipes, ArePlacedAnewWhereASegmentCannotBeCut) {
  EXPECT_EQ(segments("[*-]|MM*-", 4), "[*-]|M|M|*-");
  EXPECT_EQ(segments("M|M*|-", 2), "MM|*-");
  EXPECT_EQ(segments("[*-][*-]M|M", 3), "[*-]|[*-]|MM");
  EXPECT_EQ(segments("||MM|M", 2), "M|MM");
}

TEST(Pipes, LeaveTheRestOfThePatternAlone) {
  EXPECT_EQ(segments("[*-]M/*-/*-", 2), "[*-]|M/*-/*-");
  EXPECT_EQ(segments("[*-]|M/*-", 1), "[*-]M/*-");
  EXPECT_EQ(segments("M*M*//", 2), "M*|M*//");
  EXPECT_EQ(segments("/MM", 1), "/MM");
  EXPECT_EQ(without_groups(of("[*-]|M[*E]/*-")).text, "*-|M*E/*-");
  EXPECT_EQ(without_pipes(of("|[*-]||M/*")).text, "[*-]M/*");
}

TEST(Pipes, NeedAnItemForEachSegment) {
  EXPECT_EQ(segments("[*-][*-]", 3), "none");
  EXPECT_EQ(segments("[*-][*-]", 2), "[*-]|[*-]");
  EXPECT_EQ(segments("", 2), "none");
  EXPECT_EQ(segments("", 1), "");
  EXPECT_EQ(segments("M||", 3), "M||");  // empty segments that are there stay
}

TEST(Pipes, TellLayersFromStages) {
  EXPECT_TRUE(same_but_pipes(of("[*-]M|*"), of("[*-]|M*")));
  EXPECT_FALSE(same_but_pipes(of("[*-]M"), of("*-M")));
  EXPECT_FALSE(same_but_pipes(of("[*-]M"), of("[*-]M/*")));
}

// The layers of the longest segment.
i64 longest(const LayerPattern& p) {
  i64 most = 0;
  for (const PatternSegment& s : p.segments) {
    i64 layers = 0;
    for (i64 i = s.first_item; i < s.first_item + s.item_count; i++) layers += p.items[i].physical_count;
    most = std::max(most, layers);
  }
  return most;
}

// The fewest layers that the longest of so many segments can have, by trying all first segments.
i64 best_longest(const std::vector<PatternItem>& items, std::size_t from, i64 count) {
  i64 best = -1, layers = 0;
  if (count == 1) {
    for (std::size_t i = from; i < items.size(); i++) layers += items[i].physical_count;
    return layers;
  }
  for (std::size_t i = from; std::ssize(items) - static_cast<i64>(i) - 1 >= count - 1; i++) {
    layers += items[i].physical_count;
    const i64 rest = std::max(layers, best_longest(items, i + 1, count - 1));
    if (best < 0 || rest < best) best = rest;
  }
  return best;
}

TEST(Pipes, GiveTheLongestSegmentAsFewLayersAsGroupsAllow) {
  std::mt19937 random(7);
  auto up_to = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 400; round++) {
    std::string text;
    for (int items = 1 + up_to(8); items > 0; items--) {
      const std::string layers(static_cast<std::size_t>(1 + up_to(4)), 'M');
      text += up_to(2) ? cat("[", layers, "]") : layers;
    }
    const LayerPattern p = of(text);
    for (i64 count = 1; count <= std::min<i64>(p.logical_layers(), 6); count++) {
      const std::optional<LayerPattern> out = with_segments(p, count);
      ASSERT_TRUE(out) << text << " in " << count;
      EXPECT_EQ(std::ssize(out->segments), count) << out->text;
      EXPECT_EQ(without_pipes(*out).text, text);
      EXPECT_EQ(longest(*out), best_longest(p.items, 0, count)) << text << ": " << out->text;
      for (const PatternSegment& s : out->segments) EXPECT_GT(s.item_count, 0) << out->text;
      // More segments, and as many as before: the pipes that were there are there again.
      if (std::optional<LayerPattern> twice = with_segments(*out, 2 * count)) {
        bool each =
            std::ranges::all_of(out->segments, [](const PatternSegment& s) { return s.item_count >= 2; });
        if (each) {
          EXPECT_EQ(with_segments(*twice, count)->text, out->text);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mckpt::impl::pipes_test
