// The table of Megatron's rank files, walked in both directions: what the plan of the files has of a model,
// the view of them reads, item for item, for all families and on several grids. And its names, by hand.
#include "convert/dialects/ranks/table.h"

#include <gtest/gtest.h>

#include "convert/dialects/ranks/pieces.h"
#include "convert/dialects/ranks/plan.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "io/dcp/run/sizes.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/item_numbers.h"

namespace mckpt::impl {
namespace rank_table_test {

struct Form {
  Grid grid;
  PipelineOptions pipeline{};
  Spelling spelling{};
};
const Form kForms[] = {{{.tp = 2, .ep = 4, .dp = 4}},
                       {{.tp = 4, .ep = 2, .dp = 2}, {}, {.rows = 0, .old_mtp = true}},
                       {{.tp = 2, .pp = 2}, {.chunks = 2}},
                       {{.tp = 2, .ep = 2, .etp = 2, .pp = 2, .dp = 2}}};

// False: no run of the model has this grid.
bool round_trip(const ModelMap& map, const Form& form) {
  try {
    RankRun run;
    run.grid = form.grid, run.pipeline = form.pipeline;
    run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
    run.run.whole = true, run.run.spelling = form.spelling;
    const KeyTable keys(map, run.run, {run.grid.tp, run.grid.etp});
    const RankPlan plan(
        keys, run, [](std::vector<ModelParameter>&) {}, [](PickleWriter&, i64) {});
    ItemNumbers numbers(map);
    auto files = std::make_unique<TableStore>("memory");
    files->add_file("data", 0);
    for (i64 c = 0; c < plan.size(); c++) {
      const ChunkList::Box box = plan.box(c);
      const std::vector<i64> sizes(box.sizes.begin(), box.sizes.end());
      files->tensors.push_back({plan.name(c), plan.dtype(c), sizes, {}});
      files->tensors.back().pieces.push_back(
          numbers.put(numbers.of(keys, plan.key(c), box.offsets, box.sizes), std::vector<i64>(sizes.size()),
                      sizes, plan.dtype(c)));
    }
    RunSizes sizes_of_run;
    sizes_of_run.pipeline_stages = run.grid.pp, sizes_of_run.tensor_ranks = run.grid.tp,
    sizes_of_run.expert_ranks = run.grid.ep;
    sizes_of_run.expert_tensor_ranks = run.grid.etp;
    RunSetup setup;
    const RankPieces read = rank_pieces(std::move(files), map, setup, sizes_of_run, {.compare = false});
    EXPECT_EQ(read.grid.ep, run.grid.ep);
    const NameSet<std::string> names = parameter_names(*read.store);
    const KeyTable read_keys(map, setup, {run.grid.tp, run.grid.etp},
                             [&](const std::string& name) { return names.contains(name); });
    expect_items(*read.store, read_keys, numbers);
    return true;
  } catch (const Error& e) {
    const bool no_run = e.code() == Code::kGridMisfit || e.code() == Code::kBadGrid;
    EXPECT_TRUE(no_run) << e.what();
    return false;
  }
}

TEST(RankTable, ReadsWhatItWrites) {
  int trips = 0;
  for (const std::string& name : all_models()) {
    const ModelMap map = golden_map(name);
    for (const Form& form : kForms) {
      SCOPED_TRACE(cat(name, " ", to_string(form.grid)));
      trips += round_trip(map, form);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(trips, 211);
}

TEST(RankTable, NamesTheSectionsOfChunks) {
  for (i64 chunks : {1, 2, 12})
    for (i64 chunk = 0; chunk < chunks; chunk++)
      EXPECT_EQ(chunk_of_section(model_section(chunk, chunks)), static_cast<std::size_t>(chunk));
  for (std::string_view other : {"", "mode", "model-1", "model1.x", "model1024", "models", "optimizer"})
    EXPECT_EQ(chunk_of_section(other), std::nullopt) << other;
}

TEST(RankTable, FindsTheNameThatAnyVersionWrites) {
  const ModelMap map = golden_map("deepseek_v3_mtp");
  const Spelling old{.rows = 0, .old_mtp = true};
  i64 respelt = 0, experts = 0;
  for (const ModelParameter& p : golden_parameters(map, {}, 0)) {
    const std::vector<std::string> names = names_in_files(p);
    for (const Spelling& spelling : {Spelling{}, old})
      EXPECT_NE(std::ranges::find(names, name_in_file(p, spelling)), names.end()) << p.name;
    respelt += name_in_file(p, old) != p.name;
    experts += names.size() > 2;
  }
  EXPECT_GT(respelt, 0);
  EXPECT_GT(experts, 0);
}

}  // namespace rank_table_test
}  // namespace mckpt::impl
