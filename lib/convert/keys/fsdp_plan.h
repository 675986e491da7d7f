// FsdpPlan: what every rank of a Megatron-FSDP run writes of a model. Ranks that hold the same box share the
// work as torch.distributed.checkpoint shares it, so that the files, and the order in them, are those of a
// real run:
//
//   each rank's tensors --which boxes, held by whom--> one writer a box --> __R_0.distcp
#pragma once

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/dcp/layout.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class KeyTable;
struct FsdpRun;

// Where the name of a tensor of the model parts: {"model": {"module.<name>": ...}}.
inline constexpr i32 kModelDot = 5;

// What lies beside a key and is cut as it is: the states of an optimizer.
struct Companion {
  DcpName name;
  DType dtype = DType::kF32;
};
using Companions = std::vector<std::vector<Companion>>;  // by key of the table

struct FsdpPlan {
  FsdpPlan(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust, const Companions& companions = {});

  DcpLayout layout;
  std::vector<i32>
      table_key;  // by key of the layout: its key in the table, or that of which it is a companion
};

}  // namespace mckpt::impl
