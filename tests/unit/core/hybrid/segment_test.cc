#include "core/hybrid/segment.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/unit/core/hybrid/layer_dump.h"

namespace mckpt::impl {
namespace layer_segment_test {

std::optional<i64> integer_or_null(const GoldenJson& v) {
  return v.is_null() ? std::nullopt : std::optional(v.integer());
}

TEST(LayerSegment, SelectsTheRecordedStagesInBothDialects) {
  int cases = 0;
  GoldenJson golden = read_golden("hybrid/patterns.json");
  for (const GoldenJson& c : golden["cases"].items()) {
    if (c["op"].string() != "select_segment") continue;
    const GoldenJson& in = c["input"];
    const std::string& text = in["main_pattern"].string();
    StageRequest request{in["pp_size"].integer(), in["pp_rank"].integer(), integer_or_null(in["vp_stage"]),
                         integer_or_null(in["first_stage_layers"]), integer_or_null(in["last_stage_layers"])};
    for (Dialect dialect : {Dialect::kGrouped, Dialect::kFlat}) {
      SCOPED_TRACE(cat(c["id"].string(), " ", dialect_name(dialect)));
      const GoldenJson& want = expected(c, dialect);
      Checked<StageLayers> got = select_stage(text, dialect, request);
      ASSERT_EQ(fault_of(got), fault_of(want));
      if (const auto* stage = std::get_if<StageLayers>(&got)) {
        EXPECT_EQ(stage->physical_offset, want["physical_offset"].integer());
        EXPECT_EQ(stage->logical_offset, want["logical_offset"].integer());
        EXPECT_EQ(dump(stage->items, text), dump(want["items"]));
      }
      cases++;
    }
  }
  EXPECT_EQ(cases, 102);
}

struct Row {
  const char* pattern;
  StageRequest request;
  const char* answer;  // "physical offset, logical offset: items", or the class of the fault
};

std::string answer(const Row& row) {
  Checked<StageLayers> checked = select_stage(row.pattern, Dialect::kGrouped, row.request);
  if (!fault_of(checked).empty()) return std::string(fault_of(checked));
  const StageLayers& s = std::get<StageLayers>(checked);
  return cat(s.physical_offset, " ", s.logical_offset, ": ", dump(s.items, row.pattern));
}

TEST(LayerSegment, SelectsAsTheFormatSays) {
  const Row kRows[] = {
      {"M-M-|M-M*-", {2, 1, {}, {}, {}}, "4 4: 4:M@4 5:-@5 6:M@6 7:*@7 8:-@8"},
      {"[*-][*-]|[*E][*E]", {2, 1, {}, {}, {}}, "4 2: 2:[*E]@4 3:[*E]@6"},
      {"[*-][*-][*E]|[*E]M|G|[GE]", {2, 1, 1, {}, {}}, "10 6: 6:[GE]@10"},
      {"M|M|M|M", {2, 0, 1, {}, {}}, "2 2: 2:M@2"},
      {"M|M|M", {2, 0, {}, {}, {}}, "segments_not_divisible"},
      {"[*-][*-]", {4, 0, {}, {}, {}}, "pipeline_splits_group"},
      {"MM[*-]", {2, 1, {}, {}, {}}, "2 2: 2:[*-]@2"},
      {"[*-]MM", {2, 1, {}, {}, {}}, "2 1: 1:M@2 2:M@3"},
      {"M[*-]M", {2, 0, {}, {}, {}}, "pipeline_splits_group"},
      {"MMMMMMMM", {4, 2, {}, 1, 1}, "4 4: 4:M@4 5:M@5 6:M@6"},
      {"MMMMMMM", {4, 1, {}, 1, 1}, "middle_not_divisible"},
      {"MMMM", {2, 0, 0, {}, {}}, "vpp_without_pipes"},
      {"MMMM", {1, 0, 0, {}, {}}, "0 0: 0:M@0 1:M@1 2:M@2 3:M@3"},
      {"MMMM|MM", {2, 0, {}, 2, {}}, "uneven_split_with_pipes"},
      {"MMMMM", {2, 0, {}, {}, {}}, "layers_not_divisible"},
      // A count of 0 is given too: rank 0 is empty and the rest is for three stages.
      {"MMMMMM", {4, 0, {}, 0, {}}, "0 0: "},
      {"MMMMMM", {4, 1, {}, 0, {}}, "0 0: 0:M@0 1:M@1"},
      // Sizes that do not fit at all.
      {"MMMM", {2, 0, {}, 5, {}}, "stage_out_of_range"},
      {"MMMM", {2, 0, {}, {}, 5}, "stage_out_of_range"},
      {"MMMM", {3, 1, {}, 3, 3}, "stage_out_of_range"},
      // Only the segments up to the stage's own are read.
      {"M|[M", {2, 0, {}, {}, {}}, "0 0: 0:M@0"},
      {"M|[M", {2, 1, {}, {}, {}}, "unclosed_group"},
      {"X|M", {2, 1, {}, {}, {}}, "invalid_symbol"},
      // The MTP parts do not belong to the main part.
      {"M/M", {2, 0, {}, {}, {}}, "invalid_symbol"},
      {"M", {1, 0, INT64_MAX, {}, {}}, "segment_out_of_range"},
  };
  for (const Row& row : kRows) EXPECT_EQ(answer(row), row.answer) << row.pattern;
}

TEST(LayerSegment, RefusesRequestsThatMakeNoSense) {
  auto code = [](const StageRequest& r) {
    try {
      select_stage("MM", Dialect::kGrouped, r);
    } catch (const Error& e) {
      return e.code();
    }
    return Code::kInternal;
  };
  EXPECT_EQ(code({0, 0, {}, {}, {}}), Code::kBadGrid);
  EXPECT_EQ(code({2, -1, {}, {}, {}}), Code::kBadRank);
  EXPECT_EQ(code({2, 2, {}, {}, {}}), Code::kBadRank);
  EXPECT_EQ(code({2, 0, -1, {}, {}}), Code::kBadRank);
  EXPECT_EQ(code({2, 0, {}, -1, {}}), Code::kBadGrid);
  EXPECT_EQ(code({2, 0, {}, {}, -1}), Code::kBadGrid);
  EXPECT_EQ(code({3, 0, {}, INT64_MAX, INT64_MAX}), Code::kSizeOverflow);
}

// Every rank of every cut of short patterns: the stages follow each other and hold every layer once, or the
// gap says which layers they miss.
TEST(LayerSegment, StagesCoverThePatternOrTheGapIsNamed) {
  for (i64 layers = 0; layers <= 6; layers++) {
    LayerPattern pattern = parse_pattern(std::string(layers, 'M'), Dialect::kGrouped);
    for (i64 size = 2; size <= 4; size++)
      for (i64 first = -1; first <= layers; first++)
        for (i64 last = -1; last <= layers; last++) {
          StageRequest r{size, 0, {}, {}, {}};
          if (first >= 0) r.first_stage_layers = first;
          if (last >= 0) r.last_stage_layers = last;
          std::vector<int> owners(layers), missed(layers, 1);
          bool ok = true;
          for (r.pp_rank = 0; r.pp_rank < size; r.pp_rank++) {
            Checked<StageLayers> got = select_stage(pattern.text, Dialect::kGrouped, r);
            ok = ok && fault_of(got).empty();
            if (!ok) break;
            for (const PatternItem& item : std::get<StageLayers>(got).items) owners[item.physical_first]++;
          }
          if (!ok) continue;
          if (auto gap = uneven_gap(pattern, r))
            for (i64 i = gap->layers.begin; i < gap->layers.end; i++) missed[i] = gap->twice ? 2 : 0;
          EXPECT_EQ(owners, missed) << layers << " layers, size " << size << ", " << first << " and " << last;
        }
  }
}

}  // namespace layer_segment_test
}  // namespace mckpt::impl
