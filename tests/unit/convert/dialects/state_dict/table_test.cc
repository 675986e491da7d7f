// The table of state dicts, walked in both directions: parameters that several ranks wrote whole are taken
// apart, and put together again, and every item is where the rules of the model have it. The ranks' rows are
// not made with the table: KeyTable asks the rule of each cell.
#include "convert/dialects/state_dict/table.h"

#include <gtest/gtest.h>

#include "convert/dialects/state_dict/pieces.h"
#include "convert/dialects/state_dict/usual_names.h"
#include "convert/dialects/state_dict/whole_parameters.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "tests/support/golden_config.h"
#include "tests/support/item_numbers.h"

namespace mckpt::impl {
namespace state_dict_table_test {

// Each parameter whole, as that many cells wrote it, in files of three ranks with uneven rows; and a state of
// it.
std::unique_ptr<TableStore> state_dict_of(const KeyTable& keys, ItemNumbers& numbers) {
  auto out = std::make_unique<TableStore>("memory");
  out->add_file("data", 0);
  auto add = [&](i32 k, const std::string& name, i64 state, DType dtype) {
    const std::span<const i64> shape = keys[k].shape.dims();
    const std::vector<i64> dims(shape.begin(), shape.end());
    out->tensors.push_back({name, dtype, dims, {}});
    const i64 rows = dims.empty() ? 1 : dims[0];
    for (i64 first = 0, each = rows / 3 + 1; first < rows; first += each) {
      std::vector<i64> offsets(dims.size()), sizes = dims;
      if (!dims.empty()) offsets[0] = first, sizes[0] = std::min(each, rows - first);
      std::vector<i64> items = numbers.of(keys, k, offsets, sizes, state);
      out->tensors.back().pieces.push_back(numbers.put(std::move(items), offsets, sizes, dtype));
    }
  };
  for (i32 k = 0; k < keys.size(); k++) {
    add(k, cat("model.", keys[k].name), 0, DType::kBF16);
    add(k, cat("optimizer.state.", keys[k].name, ".exp_avg"), 1, DType::kF32);
  }
  return out;
}

bool round_trip(const ModelMap& map, KeyTable::Cells cells) {
  try {
    RunSetup setup{vocab_rows(map.model(), map.family(), cells.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
    setup.whole = true;
    const KeyTable keys(map, setup, cells);
    ItemNumbers numbers(map);
    setup.whole = false;
    std::unique_ptr<Store> view =
        state_dict_pieces(state_dict_of(keys, numbers), DcpDialect::kStateDict, &map, setup, cells, false)
            .store;
    const NameSet<std::string> names = parameter_names(*view);
    const KeyTable apart(map, setup, cells, [&](const std::string& name) { return names.contains(name); });
    expect_items(*view, apart, numbers);
    expect_items(*view, apart, numbers, "exp_avg", 1);

    const WholeParameters whole = whole_parameters(std::move(view), map, setup, true);
    const NameSet<std::string> whole_names = parameter_names(*whole.store);
    const KeyTable together(
        map, setup, cells, [&](const std::string& name) { return whole_names.contains(name); },
        [&](const std::string& name) { return whole.made_whole.contains(name); });
    for (i32 k = 0; k < together.size(); k++)
      EXPECT_EQ(together[k].shape, together.parameter(together[k]).shape()) << together[k].name;
    expect_items(*whole.store, together, numbers);
    expect_items(*whole.store, together, numbers, "exp_avg", 1);
    return true;
  } catch (const Error& e) {
    const bool no_run = e.code() == Code::kGridMisfit || e.code() == Code::kUnknownPartition;
    EXPECT_TRUE(no_run) << e.what();
    return false;
  }
}

TEST(StateDictTable, ReadsWhatRanksWroteWhole) {
  int trips = 0;
  for (const std::string& name : all_models()) {
    const ModelMap map = golden_map(name);
    for (KeyTable::Cells cells : {KeyTable::Cells{1, 1}, {2, 1}, {4, 2}}) {
      SCOPED_TRACE(cat(name, " tp ", cells.tp, " etp ", cells.etp));
      trips += round_trip(map, cells);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(trips, 249);
}

// Names with which older versions save a hybrid model, and the names of the tables.
TEST(StateDictTable, GivesParametersTheirUsualNames) {
  const ModelMap map = golden_map("nemotron_h");
  RunSetup setup{0, DType::kBF16};
  setup.spelling = spelling_of(std::vector<std::string>{"submodule-conv"});
  const KeyTable keys(map, setup, {1, 1});
  ItemNumbers numbers(map);
  std::unique_ptr<TableStore> store = state_dict_of(keys, numbers);
  for (TableStore::Tensor& t : store->tensors)
    t.name = t.name.starts_with("model.") ? cat(kModelFront, t.name.substr(6))
                                          : cat(kStateFront, t.name.substr(kStateSection.size()));
  EXPECT_TRUE(parameter_names(*store).contains("decoder.layers.0.mixer.conv1d.weight"));
  const std::unique_ptr<Store> usual = with_spelling(std::move(store), map, setup, {});
  const KeyTable read(map, {0, DType::kBF16}, {1, 1});
  expect_items(*usual, read, numbers);
  expect_items(*usual, read, numbers, "exp_avg", 1);
}

}  // namespace state_dict_table_test
}  // namespace mckpt::impl
