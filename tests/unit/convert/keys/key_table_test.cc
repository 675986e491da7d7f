// The table of keys against the layouts of single ranks: whatever box a rank of whatever grid holds of a key,
// the table has for it the same items of the same tensors, in the same order, as the rank's own parameters
// do.
#include "convert/keys/key_table.h"

#include <gtest/gtest.h>

#include <set>

#include "io/dcp/keys/key.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace {

using Item = std::pair<i32, i64>;  // source tensor, item of it

void append_items(const ItemRun& run, i32 source, std::vector<Item>& out) {
  for (i64 i = 0; i < run.items(); i++) out.emplace_back(source, run.slot == kPaddingSlot ? 0 : run.at(i));
}

struct GridRun {
  Grid grid;
  Strategy strategy = Strategy::kOptimGradsParams;
};

GridRun run_of(i64 tp, i64 ep, i64 etp, i64 cp, i64 times) {
  GridRun r;
  r.grid.tp = tp, r.grid.ep = ep, r.grid.etp = etp, r.grid.cp = cp;
  r.grid.dp = smallest_dp(r.grid) * times;
  return r;
}

// Compares all boxes of all ranks; returns how many items of each key the different boxes have.
std::map<std::string, i64> compare_boxes(const ModelMap& map, const GridRun& run, const RunSetup& setup,
                                         const KeyTable& keys) {
  std::map<std::string, i64> items;
  std::set<std::pair<std::string, std::vector<i64>>> seen;
  for (i64 rank = 0; rank < run.grid.world(); rank++) {
    Cell cell = cell_of(run.grid, rank);
    std::vector<ModelParameter> parameters = map.parameters(run.grid, cell, setup);
    FsdpLayout layout(parameters, map.model(), run.grid, {.strategy = run.strategy});
    for (const FsdpTensor& t : layout.tensors(cell)) {
      std::string name = model_key(t.key).value_or("");
      if (t.empty() || !seen.emplace(name, t.offsets).second) continue;
      i32 key = keys.find(name);
      if (key < 0) {
        ADD_FAILURE() << "no key " << name;
        continue;
      }
      const ModelParameter& p = parameters[static_cast<std::size_t>(t.parameter)];
      std::vector<Item> expected, got;
      for (const ItemRun& r : cut(p.holding->runs, t.items))
        append_items(r, r.slot == kPaddingSlot ? kPaddingSlot : p.sources[static_cast<std::size_t>(r.slot)],
                     expected);
      for (const ItemRun& r : keys.runs(keys[key], t.offsets, t.sizes)) append_items(r, r.slot, got);
      if (got != expected)
        ADD_FAILURE() << name << " " << dims_to_string(t.offsets) << "+" << dims_to_string(t.sizes)
                      << " on rank " << rank << " of " << to_string(run.grid);
      items[name] += std::ssize(got);
    }
  }
  return items;
}

TEST(KeyTable, HasForEveryBoxTheItemsThatItsRankHolds) {
  const GridRun runs[] = {run_of(1, 1, 1, 1, 3), run_of(2, 4, 1, 1, 2), run_of(4, 2, 2, 1, 1),
                          run_of(2, 2, 1, 2, 1)};
  i64 compared = 0, refused = 0;
  for (const std::string& model : golden_models()) {
    if (model.starts_with("tiny")) continue;
    ModelMap map = golden_map(model);
    for (const GridRun& run : runs) {
      RunSetup setup{vocab_rows(map.model(), map.family(), run.grid.tp, {VocabChoice::kAuto, 0}), {}};
      KeyTable keys(map, setup, {run.grid.tp, run.grid.etp});
      std::map<std::string, i64> items;
      std::string error = thrown_by([&] { items = compare_boxes(map, run, setup, keys); });
      if (error != "nothing") {
        EXPECT_EQ(error.substr(0, 6), "MC0204") << model << ": " << error;
        refused++;
        continue;
      }
      for (i32 k = 0; k < keys.size(); k++)
        EXPECT_EQ(items[keys[k].name], keys[k].shape.items()) << model << " " << keys[k].name;
      compared += keys.size();
    }
  }
  EXPECT_GT(compared, 3000);
  EXPECT_LE(refused, 8);
}

TEST(KeyTable, RefusesBoxesThatNoRankHolds) {
  ModelMap map = golden_map("qwen3_dense");
  KeyTable keys(map, {vocab_rows(map.model(), map.family(), 2, {VocabChoice::kAuto, 0}), {}}, {1, 1});
  i32 key = keys.find("decoder.layers.0.mlp.linear_fc2.weight");
  ASSERT_GE(key, 0);
  i64 rows = keys[key].shape[0], columns = keys[key].shape[1];
  auto at = [&](i64 first, i64 count) {
    std::vector<i64> offsets{0, first}, sizes{rows, count};
    return thrown_by([&] { keys.runs(keys[key], offsets, sizes); }).substr(0, 7);
  };
  EXPECT_EQ(at(0, columns / 2), "nothing");
  EXPECT_EQ(at(columns / 2, columns / 2), "nothing");
  EXPECT_EQ(at(1, columns / 2), "MC2013 ");
  EXPECT_EQ(at(0, columns - 1), "MC2013 ");
  // A parameter that is split along its rows is never cut into columns.
  i32 fc1 = keys.find("decoder.layers.0.mlp.linear_fc1.weight_w");
  ASSERT_GE(fc1, 0);
  std::vector<i64> offsets{0, 0}, sizes{keys[fc1].shape[0], keys[fc1].shape[1] / 2};
  EXPECT_EQ(thrown_by([&] { keys.runs(keys[fc1], offsets, sizes); }).substr(0, 6), "MC2013");
}

TEST(KeyTable, FindsStoredKeysWhetherInPartsOrWhole) {
  ModelMap map = golden_map("qwen3_dense");
  RunSetup setup{vocab_rows(map.model(), map.family(), 2, {VocabChoice::kAuto, 0}), {}};
  KeyTable written(map, setup, {2, 1});
  auto has_written = [&](const std::string& name) { return written.find(name) >= 0; };
  KeyTable same(map, setup, {2, 1}, has_written);
  ASSERT_EQ(same.size(), written.size());
  for (i32 k = 0; k < same.size(); k++) EXPECT_EQ(same[k].name, written[k].name);

  std::string lost = written[3].name;
  std::string error = thrown_by([&] {
    KeyTable(map, setup, {2, 1}, [&](const std::string& name) { return name != lost && has_written(name); });
  });
  EXPECT_EQ(error.substr(0, 6), "MC2005") << error;

  // Whole gated parameters are stored cell by cell, so the number of cells must be known.
  auto whole = [&](const std::string& name) { return !name.ends_with("_w") && !name.ends_with("_v"); };
  EXPECT_EQ(thrown_by([&] { KeyTable(map, setup, {0, 0}, whole); }).substr(0, 6), "MC2013");
  KeyTable fused(map, setup, {2, 1}, whole);
  EXPECT_LT(fused.size(), written.size());
}

TEST(ModelKey, DropsWrappersAndOtherSections) {
  EXPECT_EQ(model_key("model.module.a.b"), "a.b");
  EXPECT_EQ(model_key("model.module.module.a"), "a");
  EXPECT_EQ(model_key("model.a"), "a");
  EXPECT_EQ(model_key("optimizer.state.module.a.exp_avg"), std::nullopt);
  EXPECT_EQ(model_key("model.mtp.layers.0.transformer_layer.x"), "mtp.layers.0.mtp_model_layer.x");
  EXPECT_EQ(model_key("model.a.transformer_layer.x"), "a.transformer_layer.x");
}

}  // namespace
}  // namespace mckpt::impl
