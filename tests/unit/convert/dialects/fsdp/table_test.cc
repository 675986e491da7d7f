// The readers of Megatron-FSDP read the items that its plan writes, item for item, for all families: under v1
// the keys of fsdp_dtensor (mappings/fsdp/layout.h is the table of both sides), under v2 the keys of a state dict.
#include <gtest/gtest.h>

#include "convert/dialects/fsdp/plan.h"
#include "convert/dialects/fsdp/run.h"
#include "convert/dialects/state_dict/pieces.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/write/paths.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"
#include "tests/support/item_numbers.h"

namespace mckpt::impl {
namespace fsdp_table_test {

struct Form {
  Grid grid;
  Engine engine = Engine::kV1;
};
const Form kForms[] = {{{.tp = 2, .ep = 4, .dp = 6}},
                       {{.tp = 4, .cp = 2, .ep = 2, .dp = 3}},
                       {{.dp = 3}},
                       {{.ep = 2, .dp = 6}, Engine::kV2}};

// False: no run of Megatron-FSDP can save the model on this grid.
bool round_trip(const ModelMap& map, const Form& form) {
  try {
    FsdpRun run;
    run.grid = form.grid;
    run.fsdp.use(form.engine);
    run.run = {vocab_rows(map.model(), map.family(), run.grid.tp, {VocabChoice::kAuto, 0}), DType::kBF16};
    follow_engine(run.fsdp, run.run, run);
    const KeyTable::Cells cells{run.grid.tp, run.grid.etp};
    const KeyTable keys(map, run.run, cells);
    const bool v2 = run.fsdp.saves_state_dict();
    Companions states;
    for (i32 k = 0; k < keys.size(); k++) {
      DcpName name{cat(kStateFront, keys[k].name, ".exp_avg"), {}};
      states.push_back({{v2 ? state_dict_state(keys[k].name, "exp_avg") : name, DType::kF32}});
    }
    const FsdpPlan plan(
        keys, run, [](std::vector<ModelParameter>&) {}, states);
    ItemNumbers numbers(map);
    std::unique_ptr<Store> view = store_of(plan.layout, numbers, [&](i64 c) {
      const DcpLayout::Chunk chunk = plan.layout.chunk(c);
      const bool state = plan.layout.key(chunk.key).name.text.starts_with("optimizer.");
      return numbers.of(keys, plan.table_key[chunk.key], chunk.offsets, chunk.sizes, state);
    });
    RunSetup setup = run.run;
    setup.whole = false;
    if (v2)
      view = state_dict_pieces(std::move(view), DcpDialect::kStateDict, &map, setup, cells, false).store;
    const NameSet<std::string> names = parameter_names(*view);
    const KeyTable read(map, setup, cells, [&](const std::string& name) { return names.contains(name); });
    expect_items(*view, read, numbers);
    expect_items(*view, read, numbers, "exp_avg", 1);
    return true;
  } catch (const Error& e) {
    const bool no_run = e.code() == Code::kGridMisfit || e.code() == Code::kBadLayout ||
                        e.code() == Code::kRowUnaligned || e.code() == Code::kBadGrid;
    EXPECT_TRUE(no_run) << e.what();
    return false;
  }
}

TEST(FsdpTable, ReadsWhatItWrites) {
  int trips = 0;
  for (const std::string& name : all_models()) {
    const ModelMap map = golden_map(name);
    for (const Form& form : kForms) {
      SCOPED_TRACE(cat(name, " ", to_string(form.grid), form.engine == Engine::kV2 ? ", v2" : ""));
      trips += round_trip(map, form);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(trips, 238);
}

}  // namespace fsdp_table_test
}  // namespace mckpt::impl
