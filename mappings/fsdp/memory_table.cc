// The rows differ in set-up alone. An engine without a strategy, or without such a grid, says so itself.
#include "mappings/fsdp/memory_table.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/param_groups.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/model_packing.h"
#include "mappings/fsdp/setup.h"

namespace mckpt::impl {
namespace {

constexpr Engine kEngines[] = {Engine::kV1, Engine::kV2};
constexpr Strategy kStrategies[] = {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads,
                                    Strategy::kOptimGradsParams};

// A table without a row says nothing.
void refuse_empty(const MemoryTable& table) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // and what they refuse
  for (const MemoryRow& row : table.rows) {
    if (row.refused.empty()) return;
    auto at =
        std::ranges::find(reasons, row.refused, &std::pair<std::string, std::vector<std::string>>::first);
    if (at == reasons.end()) at = reasons.insert(at, {row.refused, {}});
    at->second.push_back(cat(engine_name(row.engine), " ", strategy_name(row.strategy)));
  }
  Error e(Code::kBadLayout, "the memory of such a run is not known for any engine and strategy");
  for (const auto& [reason, rows] : reasons) e.note(cat(listed(rows, rows.size()), ": ", reason));
  throw e;
}

}  // namespace

MemoryTable memory_table(const std::vector<ModelParameter>& parameters, const Grid& grid,
                         const FsdpSetup& setup, const MemoryTypes& types) {
  refuse_pipeline(grid);
  MemoryTable out{.types = types};
  for (Engine engine : kEngines)
    for (Strategy strategy : kStrategies) {
      MemoryRow row{.engine = engine, .strategy = strategy};
      FsdpSetup run = setup;
      run.use(engine);
      if (engine != setup.engine) run.bucket_items = default_bucket_items(engine, grid.dp * grid.cp);
      run.strategy = strategy;
      try {
        refuse_unlike_v2(grid, run);
        row.memory = memory_of(parameters, packing_of(parameters, grid, run), grid, run, types);
      } catch (const Error& e) {
        if (e.code() != Code::kBadLayout) throw;
        row.refused = e.message();
      }
      out.rows.push_back(std::move(row));
    }
  refuse_empty(out);
  return out;
}

std::string largest_unit(const RankMemory& m) {
  return m.gathered == 0 ? "" : m.gathered_unit.empty() ? "outside units" : m.gathered_unit;
}

}  // namespace mckpt::impl
