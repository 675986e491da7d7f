// Bytes per second of moves in memory, each side counted once: a row copy, the strips of a row-parallel
// split, and the transposes of fused experts, on blocks that stay in the cache as the engine's do.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/items/apply_move.h"
#include "core/items/item_run.h"
#include "core/items/move.h"

namespace mckpt::impl {
namespace {

void run_move(benchmark::State& state, const ItemRun& run, i64 item) {
  Move move = move_of(run, 0);
  std::vector<u8> from(static_cast<std::size_t>(run.end() * item), 1),
      to(static_cast<std::size_t>(run.items() * item));
  for (auto _ : state) {
    apply_move(move, item, {from.data(), 0}, {to.data(), 0});
    benchmark::DoNotOptimize(to.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * run.items() * item);
}

void BM_CopyRows(benchmark::State& state) { run_move(state, {0, 0, 1 << 19, {}, {}}, 2); }
void BM_RowParallelStrips(benchmark::State& state) { run_move(state, {0, 1024, 512, {2048, 512}, {}}, 2); }
void BM_TransposeExperts16(benchmark::State& state) { run_move(state, {0, 0, 1, {1536, 512}, {1, 768}}, 2); }
void BM_TransposeEvenColumns16(benchmark::State& state) {
  run_move(state, {0, 0, 1, {1536, 512}, {2, 768}}, 2);
}
void BM_TransposeExperts32(benchmark::State& state) { run_move(state, {0, 0, 1, {1536, 256}, {1, 768}}, 4); }
BENCHMARK(BM_CopyRows);
BENCHMARK(BM_RowParallelStrips);
BENCHMARK(BM_TransposeExperts16);
BENCHMARK(BM_TransposeEvenColumns16);
BENCHMARK(BM_TransposeExperts32);

}  // namespace
}  // namespace mckpt::impl

BENCHMARK_MAIN();
