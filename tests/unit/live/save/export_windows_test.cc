// Windows of an export over many ranks, none of which is needed for planning them.
#include "live/save/export_windows.h"
#include "convert/dialects/fsdp/run.h"

#include <gtest/gtest.h>

#include "convert/dialects/fsdp/plan.h"
#include "core/base/text.h"
#include "live/load/load.h"
#include "mappings/model/parameter.h"
#include "tests/unit/live/golden_source.h"
#include "tests/unit/live/live_rank.h"

namespace mckpt::impl {
namespace {

// A golden model as the ranks of a grid hold it.
struct Held {
  Held(const std::string& model, const Grid& grid)
      : source(model),
        setup(bf16_setup(*source.map, grid, Strategy::kOptimGradsParams)),
        keys(*source.map, {setup.run.vocab_rows, std::nullopt, nullptr}, {grid.tp, grid.etp}),
        holders(keys, {{setup.main_dtype, nullptr}, grid, setup.run, setup.fsdp},
                [](std::vector<ModelParameter>&) {}),
        chunks(holders.layout, holders.table_key),
        places(places_in(*source.store, *source.map)),
        tensors(*source.map, places),
        plan(export_job(nullptr, keys, chunks, tensors)) {}

  GoldenSource source;
  LiveSetup setup;
  KeyTable keys;
  FsdpPlan holders;
  PlannedChunks chunks;
  TensorPlaces places;
  PlacedTensors tensors;
  ChunkJob plan;
};

TEST(ExportWindows, BatchesAreAllThatIsWrittenInOrder) {
  Held held("qwen3_moe", {.tp = 2, .ep = 4, .dp = 4});
  for (i64 most : {i64{1}, i64{100'000}, i64{1} << 40}) {
    i64 task = -1, end = 0, written = 0, total = 0;
    for (const std::vector<ExportUnit>& batch : export_batches(held.plan, 8, most))
      for (const ExportUnit& unit : batch) {
        if (unit.task == task + 1) task++, end = 0;
        EXPECT_EQ(unit.task, task);
        EXPECT_EQ(unit.items.begin, end);
        end = unit.items.end;
        written += dtype_bytes(held.plan.cast_of(task).to, unit.items.items());
      }
    for (i64 t = 0; t < held.plan.task_count(); t++) total += held.plan.task_bytes(t);
    EXPECT_EQ(written, total);
  }
  EXPECT_EQ(widest_ratio(held.plan), 2);  // fp32 into bf16
}

// A rank that sends and the one that receives find the same parts in the same order.
TEST(ExportWindows, WhatARankSendsIsWhatItsReceiverExpects) {
  Held held("qwen3_moe", {.tp = 2, .ep = 4, .dp = 4});
  ExportTask all(held.plan, 0);
  auto text = [](const std::vector<ExportPart>& parts, i32 rank) {
    std::string out;
    for (const ExportPart& p : parts)
      if (p.rank == rank) out += cat(p.chunk, ":", p.move.from, ">", p.move.to, "x", p.move.items(), " ");
    return out;
  };
  i64 sent = 0;
  for (i32 rank = 0; rank < 8; rank++) {
    ExportTask own(held.plan, rank);
    for (const std::vector<ExportUnit>& batch : export_batches(held.plan, 8, 100'000))
      for (const ExportUnit& unit : batch) {
        all.go_to(unit.task), own.go_to(unit.task);
        std::vector<ExportPart> mine = own.own_parts(unit.items);
        EXPECT_EQ(text(mine, rank), text(all.parts(unit.items), rank));
        sent += std::ssize(mine);
        for (const ExportPart& p : mine) EXPECT_EQ(p.rank, rank);
      }
  }
  EXPECT_GT(sent, 200);
}

}  // namespace
}  // namespace mckpt::impl
