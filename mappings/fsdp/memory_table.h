// The memory of a rank under every strategy of both engines, to choose one by.
#pragma once

#include <string>
#include <vector>

#include "core/fsdp/strategy.h"
#include "mappings/fsdp/memory.h"

namespace mckpt::impl {

// One engine with one strategy.
struct MemoryRow {
  Engine engine = Engine::kV1;
  Strategy strategy = Strategy::kOptimGradsParams;
  std::string refused{};  // the reason if Megatron-FSDP has no such run; "": `memory` is set
  RankMemory memory{};
};

struct MemoryTable {
  MemoryTypes types{};
  std::vector<MemoryRow> rows{};  // v1, then v2, each with all strategies
};

// Packs the model once for each row. `setup`: of the run, less engine and strategy; the other engine cuts
// buckets where it does by default. pre: the parameters belong to one
// cell of the grid. Throws what packing_of() throws of every engine and strategy: kBadLayout for pipeline
// stages; and kBadLayout with the reasons where all rows are refused.
MemoryTable memory_table(const std::vector<ModelParameter>& parameters, const Grid& grid,
                         const FsdpSetup& setup, const MemoryTypes& types);

// The name of the largest unit, in words: "decoder.layers.0", "outside units", "" where nothing is gathered.
std::string largest_unit(const RankMemory& memory);

}  // namespace mckpt::impl
