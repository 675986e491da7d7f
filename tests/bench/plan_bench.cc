// How long planning takes: pack every bucket, cut every parameter, prove coverage, give each chunk its file
// and offset, make the moves, prove that each destination item is written once. No data and no files.
//
//   100,000 tensors on 64 ranks      TP 2 x FSDP 32: column- and row-parallel matrices in turn
//   671 B parameters on 1,024 ranks  the shapes of a 61-layer, 256-expert MoE: TP 8 x FSDP 128, EP 64 x FSDP
//   16
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "core/flat_buffer.h"
#include "core/plan.h"
#include "core/shard_map.h"

namespace mckpt {
namespace {

constexpr i32 kItemBytes = 2;
constexpr i64 kRecordOverhead = 1577;  // of one tensor in a .distcp file

enum class Split { kRows, kColumns, kGated, kWhole };

struct Parameter {
  Shape global;
  Split split;
};

Shape local_shape(const Parameter& p, i64 parts) {
  if (p.split == Split::kWhole) return p.global;
  int dim = p.split == Split::kColumns ? 1 : 0;
  return p.global.with_dim(dim, p.global[dim] / parts);
}

// What cell t of `parts` owns: the rules in miniature.
std::vector<ItemRun> cell_runs(const Parameter& p, i64 t, i64 parts) {
  i64 row = p.global.row_items(), rows = p.global.rank() > 0 ? p.global[0] : 1;
  switch (p.split) {
    case Split::kWhole:
      return {{0, 0, p.global.items(), {}, {}}};
    case Split::kRows:
      return {{0, rows / parts * t * row, rows / parts * row, {}, {}}};
    case Split::kColumns:
      return {{0, row / parts * t, row / parts, {row, rows}, {}}};
    case Split::kGated: {
      i64 half = rows / 2 / parts * row;
      return {{0, half * t, half, {}, {}}, {1, half * t, half, {}, {}}};
    }
  }
  return {};
}

class Planner {
 public:
  explicit Planner(i64 ranks) : file_end_(static_cast<std::size_t>(ranks)) {}

  // Packs `parameters` as one bucket of `fsdp` ranks per cell, and plans every chunk. rank_of(cell, shard)
  // writes it.
  template <typename RankOf>
  void add_bucket(std::span<const Parameter> parameters, i64 parts, i64 fsdp, RankOf rank_of) {
    std::vector<Shape> shapes;
    for (const Parameter& p : parameters) shapes.push_back(local_shape(p, parts));
    Packing packing;
    packing.ranks = fsdp;
    FlatBuffer buffer = pack(shapes, packing);
    for (std::size_t i = 0; i < parameters.size(); i++)
      add_parameter(parameters[i], buffer, static_cast<i64>(i), parts, rank_of);
  }

  void finish(benchmark::State& state) {
    plan_.finish();
    PlanTotals totals = plan_.totals();
    if (totals.copied != items_) state.SkipWithError("the plan does not copy every item");
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    state.counters["tensors"] = static_cast<double>(tensors_);
    state.counters["chunks"] = static_cast<double>(chunks_);
    state.counters["moves"] = static_cast<double>(plan_.moves().size());
    state.counters["params"] = static_cast<double>(totals.copied);
    state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
  }

 private:
  template <typename RankOf>
  void add_parameter(const Parameter& p, const FlatBuffer& buffer, i64 index, i64 parts, RankOf rank_of) {
    i64 cells = p.split == Split::kWhole ? 1 : parts, items = p.global.items();
    i64 slots = p.split == Split::kGated ? 2 : 1;
    ShardedTensor tensor;
    tensor.slot_items.assign(static_cast<std::size_t>(slots), items / slots);
    for (i64 t = 0; t < cells; t++) tensor.cells.push_back(cell_runs(p, t, parts));
    const PackedParameter& packed = buffer.parameters[static_cast<std::size_t>(index)];
    i64 first = packed.offset / buffer.shard_items, last = (packed.end() - 1) / buffer.shard_items;
    for (i64 t = 0; t < cells; t++)
      for (i64 s = first; s <= last; s++)
        if (ItemRange r = item_range(buffer, index, s); !r.empty())
          tensor.shards.push_back({static_cast<i32>(t), r});
    proof_.check(tensor);
    i32 source = add_sources(tensor);
    std::size_t next = 0;
    for (i64 t = 0; t < cells; t++)
      for (i64 s = first; s <= last && next < tensor.shards.size() && tensor.shards[next].cell == t; s++)
        add_chunk(tensor, tensor.shards[next++], source, rank_of(t, s));
    items_ += items;
    tensors_++;
  }

  i32 add_sources(const ShardedTensor& tensor) {
    i32 first = -1;
    for (i64 items : tensor.slot_items) {
      i32 region = plan_.add_source({static_cast<i32>(source_end_ / 5'000'000'000),
                                     source_end_ % 5'000'000'000, items, kItemBytes, -1});
      if (first < 0) first = region;
      source_end_ += items * kItemBytes;
    }
    return first;
  }

  void add_chunk(const ShardedTensor& tensor, const Shard& shard, i32 source, i64 rank) {
    i64& end = file_end_[static_cast<std::size_t>(rank)];
    i32 region = plan_.add_destination({static_cast<i32>(rank), end, shard.range.items(), kItemBytes, -1});
    end += shard.range.items() * kItemBytes + kRecordOverhead;
    i64 to = 0;
    for (ItemRun run : runs_of(tensor, shard)) {
      run.slot += source;
      plan_.add(region, move_of(run, to));
      to += run.items();
    }
    chunks_++;
  }

  Plan plan_;
  CoverageProof proof_;
  std::vector<i64> file_end_;
  i64 source_end_ = 0, items_ = 0, tensors_ = 0, chunks_ = 0;
};

void BM_Plan100kTensorsOn64Ranks(benchmark::State& state) {
  for (auto _ : state) {
    Planner planner(64);
    for (int unit = 0; unit < 1000; unit++) {
      std::vector<Parameter> bucket;
      for (int i = 0; i < 33; i++) {
        bucket.push_back({{1536, 512}, Split::kGated});
        bucket.push_back({{512, 768}, Split::kColumns});
        bucket.push_back({{512}, Split::kWhole});
      }
      bucket.push_back({{1024, 512}, Split::kRows});
      planner.add_bucket(bucket, 2, 32, [](i64 t, i64 s) { return s * 2 + t; });
    }
    planner.finish(state);
  }
}
BENCHMARK(BM_Plan100kTensorsOn64Ranks)->Unit(benchmark::kMillisecond);

// Multi-head latent attention and a shared expert, as in the published 671 B model.
std::vector<Parameter> dense_layer(bool moe) {
  std::vector<Parameter> p = {
      {{7168}, Split::kWhole}, {{7168, 16384}, Split::kColumns}, {{1536, 7168}, Split::kWhole},
      {{1536}, Split::kWhole}, {{24576, 1536}, Split::kRows},    {{576, 7168}, Split::kWhole},
      {{512}, Split::kWhole},  {{32768, 512}, Split::kRows},     {{7168}, Split::kWhole}};
  i64 ffn = moe ? 2048 : 18432;
  if (moe) p.push_back({{256, 7168}, Split::kWhole});
  p.push_back({{2 * ffn, 7168}, Split::kGated});
  p.push_back({{7168, ffn}, Split::kColumns});
  return p;
}

void BM_Plan671BOn1024Ranks(benchmark::State& state) {
  constexpr i64 kTp = 8, kFsdp = 128, kEp = 64, kExpertFsdp = 16, kLayers = 61, kDense = 3, kExperts = 256;
  auto dense_rank = [](i64 t, i64 s) { return s * kTp + t; };
  for (auto _ : state) {
    Planner planner(kTp * kFsdp);
    planner.add_bucket(std::vector<Parameter>{{{129280, 7168}, Split::kRows}}, kTp, kFsdp, dense_rank);
    for (i64 layer = 0; layer < kLayers; layer++) {
      planner.add_bucket(dense_layer(layer >= kDense), kTp, kFsdp, dense_rank);
      for (i64 ep = 0; layer >= kDense && ep < kEp; ep++) {
        std::vector<Parameter> experts(kExperts / kEp, Parameter{{4096, 7168}, Split::kGated});
        experts.resize(2 * kExperts / kEp, Parameter{{7168, 2048}, Split::kRows});
        planner.add_bucket(experts, 1, kExpertFsdp, [&](i64, i64 s) { return s * kEp + ep; });
      }
    }
    planner.add_bucket(std::vector<Parameter>{{{7168}, Split::kWhole}, {{129280, 7168}, Split::kRows}}, kTp,
                       kFsdp, dense_rank);
    planner.finish(state);
  }
}
BENCHMARK(BM_Plan671BOn1024Ranks)->Unit(benchmark::kMillisecond);

// 128 experts of [H, 2I] with gate and up in alternate columns, all read transposed.
void BM_ProveFusedExperts(benchmark::State& state) {
  const i64 experts = 128, h = 2880, i = 2880;
  ShardedTensor tensor{"experts", {experts * h * 2 * i}, {{}}, {{0, {0, experts * h * 2 * i}}}};
  for (i64 e = 0; e < experts; e++)
    for (i64 odd = 0; odd < 2; odd++)
      tensor.cells[0].push_back({0, e * h * 2 * i + odd, 1, {2 * i, h}, {2, i}});
  for (auto _ : state) CoverageProof().check(tensor);
}
BENCHMARK(BM_ProveFusedExperts)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace mckpt

BENCHMARK_MAIN();
