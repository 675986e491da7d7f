// The grid that `mckpt layout` lays a model out on. A checkpoint of Megatron says in its args on which grid
// it was trained, and its boxes show the same where the args are lost; options come first, size by size:
//
//   args      tp=2 cp=1 ep=2 etp=1 dp=4, optim       option    --ep 4
//   laid out  tp=2 cp=1 ep=4 etp=1 dp=4, optim       note      ep=4 from the options; tp=2 ... from the args
#pragma once

#include <vector>

#include "core/base/notes.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "tools/answers/layout/grid_origin.h"

namespace mckpt::impl {

class CommandLine;
struct LayoutFlags;
struct PackedBy;
struct RunSizes;

struct LayoutGrid {
  Grid grid;
  Strategy strategy = Strategy::kOptimGradsParams;
  std::vector<GridOrigin> origins{};  // of every size and of the strategy
  Notes notes{};
};

// `args`: what the args of a checkpoint say; null for a model without args. Pipeline stages are not taken
// from them: Megatron-FSDP has none. `by`: the packing that its boxes show; null where they show none. Throws
// what complete_grid() throws.
LayoutGrid layout_grid(const CommandLine& line, const LayoutFlags& flags, const RunSizes* args,
                       const PackedBy* by);

}  // namespace mckpt::impl
