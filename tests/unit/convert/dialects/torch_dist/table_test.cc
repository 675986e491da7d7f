// The table of torch_dist, walked in both directions: what a plan writes of a model, the view reads, item for
// item, for all families, on several grids and in all forms. And its names and places, by hand.
#include "convert/dialects/torch_dist/table.h"

#include <gtest/gtest.h>

#include "convert/dialects/torch_dist/pieces.h"
#include "convert/dialects/torch_dist/plan.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/item_numbers.h"

namespace mckpt::impl {
namespace torch_dist_table_test {

struct Form {
  Grid grid;
  LayerStacks layers = LayerStacks::kAuto;
  bool own_norms = false;
};
constexpr Form kForms[] = {{{.tp = 2, .ep = 4, .dp = 4}},
                           {{.tp = 4, .ep = 2, .dp = 2}, LayerStacks::kIndexed, true},
                           {{.pp = 2}},
                           {{.tp = 2, .ep = 2, .etp = 2, .dp = 2}, LayerStacks::kIndexed}};

// False: no run of the model has this grid.
bool round_trip(const ModelMap& map, const Form& form) {
  TorchDistRun run;
  try {
    run.grid = form.grid;
    run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
    run.stacked = stacks_layers(map.model(), form.layers), run.own_norms = form.own_norms;
    const KeyTable keys(map, run.run, torch_dist_split);
    const TorchDistStates states(static_cast<std::size_t>(keys.size()), {{"exp_avg", DType::kF32}});
    const TorchDistPlan plan(keys, run, states);
    const TorchDistChunks chunks(plan);
    ItemNumbers numbers(map);
    std::unique_ptr<Store> written = store_of(plan.layout, numbers, [&](i64 c) {
      const ChunkList::Box box = chunks.box(c);
      return numbers.of(keys, chunks.key(c), box.offsets, box.sizes, plan.state[chunks.tensor(c)] + 1);
    });
    const std::unique_ptr<PieceStore> view =
        torch_dist_pieces(std::move(written), map, RunSetup{}, OddStates::kRefused).store;
    const NameSet<std::string> names = parameter_names(*view);
    const KeyTable read(map, run.run, {1, 1}, [&](const std::string& name) { return names.contains(name); });
    expect_items(*view, read, numbers);
    expect_items(*view, read, numbers, "exp_avg", 1);
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kGridMisfit) << e.what();
    return false;
  }
}

TEST(TorchDistTable, ReadsWhatItWrites) {
  int trips = 0;
  for (const std::string& name : all_models()) {
    const ModelMap map = golden_map(name);
    for (const Form& form : kForms) {
      SCOPED_TRACE(cat(name, " ", to_string(form.grid), form.own_norms ? ", own norms" : ""));
      trips += round_trip(map, form);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(trips, 281);
}

TEST(TorchDistTable, EveryWrittenPlaceIsOneThatReadersLookAt) {
  struct Case {
    std::string_view name;
    bool stacked;
    std::string_view place;
    std::vector<i64> at;
    std::optional<i64> in_stack = {};
  };
  const Case cases[] = {
      {"decoder.layers.3.mlp.linear_fc2.weight", true, "decoder.layers.mlp.linear_fc2.weight", {3}},
      {"decoder.layers.3.mlp.linear_fc2.weight", false, "decoder.layers.3.mlp.linear_fc2.weight", {}},
      {"decoder.layers.3.mlp.experts.linear_fc1.bias7",
       true,
       "decoder.layers.mlp.experts.experts.linear_fc1.bias",
       {3, 7}},
      {"decoder.layers.3.mlp.experts.linear_fc1.bias7",
       false,
       "decoder.layers.3.mlp.experts.experts.linear_fc1.bias",
       {7}},
      {"mtp.layers.0.mtp_model_layer.mlp.experts.linear_fc2.weight5",
       false,
       "mtp.layers.0.transformer_layer.mlp.experts.experts.linear_fc2.weight",
       {5}},
      {"mtp.layers.0.mtp_model_layer.layers.1.mlp.router.weight",
       false,
       "mtp.layers.0.mtp_model_layer.layers.1.mlp.router.weight",
       {}},
      {"decoder.layers.5.self_attention_global.linear_proj.weight",
       true,
       "decoder.layers.self_attention_global.linear_proj.weight",
       {1},
       1},
      {"decoder.layers.5.self_attention_global.linear_proj.weight",
       false,
       "decoder.layers.5.self_attention_global.linear_proj.weight",
       {},
       1},
      {"embedding.word_embeddings.weight", false, "embedding.word_embeddings.weight", {}},
  };
  for (const Case& c : cases) {
    TorchDistPlace place = torch_dist_place(c.name, c.stacked, c.in_stack);
    EXPECT_EQ(place.name, c.place);
    EXPECT_EQ(place.at, c.at);
    bool found = false;
    for (const TorchDistPlace& read : torch_dist_places(c.name, c.in_stack))
      found |= read.name == place.name && read.at == place.at;
    EXPECT_TRUE(found) << c.name;
  }
}

// "key at offsets + sizes" of each row that a cell has of the parameter.
std::vector<std::string> rows_of(const std::string& model, const Grid& grid, i64 rank,
                                 std::string_view name) {
  const ModelMap map = golden_map(model);
  std::vector<std::string> out;
  for (const ModelParameter& p : golden_parameters(map, grid, rank))
    if (p.global_name == name)
      for (const TorchDistRow& row : torch_dist_rows(p, torch_dist_form(p, map.model(), false), map.model()))
        out.push_back(cat(row.name.text.substr(row.name.text.rfind("er.") + 3), " ",
                          dims_to_string(row.sizes), " at ", dims_to_string(row.offsets)));
  return out;
}

TEST(TorchDistTable, HasTheShareOfACellOfEveryPart) {
  const Grid two{.tp = 2};
  EXPECT_EQ(rows_of("llama3", two, 1, "decoder.layers.0.mlp.linear_fc1.weight"),
            (std::vector<std::string>{"layers.0.mlp.linear_fc1.weight [88, 96] at [88, 0]",
                                      "layers.0.mlp.linear_fc1.weight [88, 96] at [264, 0]"}));
  EXPECT_EQ(rows_of("nemotron_h", two, 1, "decoder.layers.0.mixer.conv1d_weight"),
            (std::vector<std::string>{"conv1d.weight.x [80, 1, 4] at [80, 0, 0]",
                                      "conv1d.weight.B [56, 1, 4] at [56, 0, 0]",
                                      "conv1d.weight.C [56, 1, 4] at [56, 0, 0]"}));
}

}  // namespace torch_dist_table_test
}  // namespace mckpt::impl
