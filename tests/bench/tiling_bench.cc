// How long the proof takes that a set of runs visits every item of a tensor once. Planning as a whole is
// measured with the program itself (plan.py).
#include <benchmark/benchmark.h>

#include "core/items/item_run.h"
#include "core/items/tiling.h"

namespace mckpt::impl {
namespace {

// 128 experts of [H, 2I] with gate and up in alternate columns, all read transposed.
void BM_ProveFusedExperts(benchmark::State& state) {
  const i64 experts = 128, h = 2880, i = 2880;
  std::vector<ItemRun> runs;
  for (i64 e = 0; e < experts; e++)
    for (i64 odd = 0; odd < 2; odd++) runs.push_back({0, e * h * 2 * i + odd, 1, {2 * i, h}, {2, i}});
  for (auto _ : state)
    if (tiling_fault(runs, experts * h * 2 * i)) state.SkipWithError("the experts are not tiled");
}
BENCHMARK(BM_ProveFusedExperts)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace mckpt::impl

BENCHMARK_MAIN();
