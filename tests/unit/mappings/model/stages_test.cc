// The contents of every chunk of a pipeline: its layers as Megatron divides them, and the parts that are in
// none.
#include "mappings/model/stages.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "tests/support/throws.h"

namespace mckpt::impl::stages_test {
namespace {

// "[0-1 2-3 | 4-5 6-7]": the stages, chunk by chunk; "[" is the embedding, and "]" all that is behind the
// layers. A chunk with a part of that has letters: n is the final norm, m is MTP, o is the output layer.
std::string parts(const PipelineSplit& split) {
  std::string out;
  for (i64 chunk = 0; chunk < split.chunks(); chunk++) {
    if (chunk > 0) out += " |";
    for (i64 stage = 0; stage < split.stages(); stage++) {
      StagePart p = split.part(stage, chunk);
      const std::string ends = cat(p.final_norm ? "n" : "", p.mtp ? "m" : "", p.output ? "o" : "");
      out += cat(out.empty() ? "" : " ", p.first ? "[" : "", p.first_layer, "-", p.end_layer - 1,
                 ends == "nmo" ? "]" : ends);
    }
  }
  return out;
}

TEST(PipelineSplit, GivesEveryStageEquallyManyLayers) {
  EXPECT_EQ(parts({6, 1}), "[0-5]");
  EXPECT_EQ(parts({6, 3}), "[0-1 2-3 4-5]");
}

TEST(PipelineSplit, LetsTheChunksOfStagesTakeTurns) {
  EXPECT_EQ(parts({8, 2, {.chunks = 2}}), "[0-1 2-3 | 4-5 6-7]");
  EXPECT_EQ(parts({12, 2, {.chunks = 3}}), "[0-1 2-3 | 4-5 6-7 | 8-9 10-11]");
}

TEST(PipelineSplit, GivesTheFirstAndTheLastStageTheLayersThatTheRunWants) {
  EXPECT_EQ(parts({12, 3, {.first_layers = 2}}), "[0-1 2-6 7-11]");
  EXPECT_EQ(parts({12, 4, {.first_layers = 3, .last_layers = 1}}), "[0-2 3-6 7-10 11-11]");
  EXPECT_EQ(parts({5, 2, {.first_layers = 2, .last_layers = 3}}), "[0-1 2-4]");
  EXPECT_EQ(parts({12, 2, {.chunks = 2, .last_layers = 4}}), "[0-3 4-5 | 6-9 10-11]");
}

TEST(PipelineSplit, TakesWhateverLayersTheChunksHave) {
  EXPECT_EQ(parts(PipelineSplit(2, std::vector<ChunkContents>{{1}, {3}, {2}, {0, true, true, true}})),
            "[0-0 1-3 | 4-5 6-5]");
  EXPECT_EQ(parts(PipelineSplit(
                4, std::vector<ChunkContents>{{0}, {3, true}, {0, false, true}, {0, false, false, true}})),
            "[0--1 0-2n 3-2m 3-2o");
}

std::string of_pattern(const char* text, i64 stages, const PipelineOptions& options = {}) {
  const LayerPattern pattern = parse_pattern(text, Dialect::kGrouped);
  std::string out;
  const std::string fault =
      thrown_by([&] { out = parts(pipeline_split(pattern.physical_layers(), stages, options, &pattern)); });
  return out.empty() ? fault : out;
}

TEST(PipelineSplit, FollowsThePipesOfAPattern) {
  EXPECT_EQ(of_pattern("[*-]M|[*E]-", 2), "[0-2 3-5]");
  EXPECT_EQ(of_pattern("M|[*-]|*|M", 2), "[0-0 1-2 | 3-3 4-4]");
  EXPECT_EQ(of_pattern("M|[*-]|*|M", 2, {.chunks = 2}), "[0-0 1-2 | 3-3 4-4]");
  EXPECT_EQ(of_pattern("|M*|M*-/*", 3), "[0--1 0-1 2-4]");
  EXPECT_EQ(of_pattern("[*-]M|[*E]-", 1), "[0-5]");
}

TEST(PipelineSplit, DividesAPatternWithoutPipesBetweenItsGroups) {
  EXPECT_EQ(of_pattern("MM[*-]", 2), "[0-1 2-3]");
  EXPECT_EQ(of_pattern("[M-]M[*-]", 2, {.first_layers = 2}), "[0-1 2-4]");
  EXPECT_NE(of_pattern("M[*-]M", 2).find("stage 0 ends with layer 1, and the group [*-] has layers 1 to 2"),
            std::string::npos);
  EXPECT_NE(of_pattern("MM[*-]", 2, {.chunks = 2}).find("has one chunk"), std::string::npos);
}

std::string on_stages(const char* text, i64 before, i64 stages, const PipelineOptions& options = {}) {
  const LayerPattern pattern = parse_pattern(text, Dialect::kGrouped);
  std::string out;
  const std::string fault =
      thrown_by([&] { out = pattern_on_stages(pattern, stages, options, before).text; });
  return out.empty() ? fault : out;
}

TEST(PatternOnStages, FollowsThePipeline) {
  EXPECT_EQ(on_stages("[*-]M|[*-]M", 2, 2), "[*-]M|[*-]M");
  EXPECT_EQ(on_stages("[*-]M|[*-]M", 2, 1), "[*-]M[*-]M");
  EXPECT_EQ(on_stages("[*-]M|[*-]M", 2, 4), "[*-]|M|[*-]|M");
  EXPECT_EQ(on_stages("[*-]|M|[*-]|M", 4, 2), "[*-]M|[*-]M");
  EXPECT_EQ(on_stages("M-|M*-M/*-", 2, 4), "M|-|M*|-M/*-");
}

TEST(PatternOnStages, TakesPipesThatOneStageHasForAPipeline) {
  EXPECT_EQ(on_stages("M-|M*-M", 1, 1), "M-M*-M");
  EXPECT_EQ(on_stages("M-|M*-M", 1, 2), "M-|M*-M");
  EXPECT_EQ(on_stages("M|-|M*|-M", 1, 2), "M|-|M*|-M");
  EXPECT_EQ(on_stages("M-|M*-M", 1, 3), "M-|M*|-M");
}

TEST(PatternOnStages, KeepsTheNumberOfChunksOfAStage) {
  EXPECT_EQ(on_stages("M|-|M|*", 2, 1), "M-M*");
  EXPECT_EQ(on_stages("MM|--|MM|**", 2, 4), "M|M|-|-|M|M|*|*");
  EXPECT_EQ(on_stages("M|-|M|*", 2, 4), "M|-|M|*");
  EXPECT_EQ(on_stages("M-M*", 2, 2, {.chunks = 2}), "M|-|M|*");
  EXPECT_EQ(on_stages("M-|M*", 2, 2, {.chunks = 2}), "M|-|M|*");
}

TEST(PatternOnStages, PlacesPipesOnlyWhereStagesAreUnequal) {
  EXPECT_EQ(on_stages("[*-]M[*-]M", 1, 2), "[*-]M[*-]M");
  EXPECT_EQ(on_stages("M[*-]M", 1, 2), "M|[*-]M");
  EXPECT_EQ(on_stages("M-M*-", 1, 2), "M-|M*-");
  EXPECT_EQ(on_stages("[*-]M|[*-]M", 2, 2, {.first_layers = 2}), "[*-]M[*-]M");
}

TEST(GivenPattern, HasNoPipesOnOneStage) {
  EXPECT_EQ(given_pattern("M-|M*", 2)->text, "M-|M*");
  EXPECT_EQ(given_pattern("M-M*/*-", 1)->text, "M-M*/*-");
  EXPECT_FALSE(given_pattern("", 1));
  const std::string fault = thrown_by([] { given_pattern("M-|M*/*-", 1); });
  EXPECT_NE(fault.find("expected M-M*/*-, or"), std::string::npos) << fault;
}

// The notes and the help of a refusal, behind its message.
template <typename Fn>
std::string refusal(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    std::string out = e.what();
    for (const std::string& note : e.notes()) out += cat("\n", note);
    return cat(out, "\n", e.help());
  }
  return "nothing";
}

TEST(PatternOnStages, NamesTheGroupsThatCannotBeCut) {
  const std::string told =
      refusal([] { pattern_on_stages(parse_pattern("[*-]M|[*-]", Dialect::kGrouped), 4, {}, 2); });
  auto split = [](const char* text, const PipelineOptions& options) {
    const LayerPattern pattern = parse_pattern(text, Dialect::kGrouped);
    return refusal([&] { pipeline_split(pattern.physical_layers(), 2, options, &pattern); });
  };
  EXPECT_NE(told.find("expected 4 layers or groups"), std::string::npos) << told;
  EXPECT_NE(told.find("[*-] with layers 0 to 1, [*-] with layers 3 to 4"), std::string::npos) << told;
  EXPECT_NE(told.find("sizes that fit: `pp` 1, 2, 3"), std::string::npos) << told;
  const std::string cut = split("M[*-]MM-", {.first_layers = 2});
  EXPECT_NE(cut.find("sizes that fit: `first_stage_layers` 1, 3, 4, 5"), std::string::npos) << cut;
  EXPECT_NE(split("M[*-]M", {}).find("sizes that fit: `pp` 1; or "), std::string::npos);
}

// The pattern with pipes is refused beside the layers of the first or the last stage.
TEST(PipelineSplit, NamesWaysThatArePossibleTogether) {
  auto help = [](const char* text, i64 stages, const PipelineOptions& options) {
    const LayerPattern pattern = parse_pattern(text, Dialect::kGrouped);
    const std::string told =
        refusal([&] { pipeline_split(pattern.physical_layers(), stages, options, &pattern); });
    return told.substr(told.rfind('\n') + 1);
  };
  const std::string without = "', without `first_stage_layers` and `last_stage_layers`";
  EXPECT_NE(help("M[*-]MM-", 2, {.first_layers = 2}).find(without), std::string::npos);
  EXPECT_NE(help("M[*-]MM-", 2, {.last_layers = 4}).find(without), std::string::npos);
  EXPECT_EQ(help("M[*-]M", 2, {}).find("without"), std::string::npos);
  // Three items for five stages: the general help is kept.
  EXPECT_EQ(help("M[*-]M", 5, {.first_layers = 2}),
            "choose another `pp`; or `first_stage_layers` and `last_stage_layers` for stages that differ");
}

TEST(PipelineSplit, RefusesWhatContradictsThePipes) {
  EXPECT_NE(of_pattern("M|M|M", 2).find("3 segments in M|M|M"), std::string::npos);
  EXPECT_NE(of_pattern("MM|M", 2, {.first_layers = 2}).find("cuts the layers of the stages itself"),
            std::string::npos);
  EXPECT_NE(of_pattern("M|M", 2, {.chunks = 2}).find("expected `vpp` 1"), std::string::npos);
}

Code refused(i64 layers, i64 stages, const PipelineOptions& options) {
  try {
    PipelineSplit split(layers, stages, options);
  } catch (const Error& e) {
    return e.code();
  }
  return Code::kInternal;
}

TEST(PipelineSplit, RefusesWhatDoesNotDivide) {
  EXPECT_EQ(refused(7, 2, {}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 2, {.chunks = 3}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 3, {.first_layers = 1}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 2, {.first_layers = 9}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 2, {.first_layers = 3, .last_layers = 4}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 2, {.chunks = 2, .first_layers = 3}), Code::kGridMisfit);
  EXPECT_EQ(refused(8, 1, {.chunks = 2}), Code::kBadGrid);
  EXPECT_EQ(refused(8, 1, {.first_layers = 8}), Code::kBadGrid);
  EXPECT_EQ(refused(8, 2, {.first_layers = 0}), Code::kBadGrid);
  EXPECT_EQ(refused(8, 2, {.chunks = 0}), Code::kBadGrid);
}

// The help has numbers that work, where it has any.
TEST(PipelineSplit, SaysHowStagesMayDiffer) {
  auto help = [](i64 layers, i64 stages, const PipelineOptions& options) -> std::string {
    try {
      PipelineSplit split(layers, stages, options);
    } catch (const Error& e) {
      return e.help();
    }
    return "";
  };
  const std::string general = "; or `first_stage_layers` and `last_stage_layers` for stages that differ";
  const std::string fits = "sizes that fit: `pp` ";
  EXPECT_EQ(help(7, 2, {}), fits + "1, 7" + general + ", such as `first_stage_layers` 4");
  EXPECT_EQ(help(11, 4, {}), fits + "1, 11" + general + ", such as `first_stage_layers` 5");
  EXPECT_EQ(help(2, 3, {}), fits + "1, 2" + general);
  EXPECT_EQ(help(8, 3, {.first_layers = 1}), "choose another `pp`" + general);
  for (i64 layers = 2; layers < 20; layers++)
    for (i64 stages = 2; stages <= layers; stages++) {
      std::string text = help(layers, stages, {});
      if (text.empty()) continue;
      i64 first = std::stoll(text.substr(text.rfind(' ') + 1));
      EXPECT_EQ(PipelineSplit(layers, stages, {.first_layers = first}).layers(), layers)
          << layers << " on " << stages;
    }
}

}  // namespace
}  // namespace mckpt::impl::stages_test
