// FsdpPlan: what every rank of a Megatron-FSDP run writes of a model. Ranks that hold the same box share the
// work as torch.distributed.checkpoint shares it, so that the files, and the order in them, are those of a
// real run:
//
//   each rank's tensors --which boxes, held by whom--> one writer a box --> __R_0.distcp
#pragma once

#include "convert/keys/key_table.h"
#include "io/dcp/layout.h"
#include "mappings/fsdp/layout.h"

namespace mckpt::impl {

// The type in which a run stores each of its parameters. Main weights, which trained parameters alone have,
// may have a type of their own; frozen parameters and buffers keep that of the run.
struct StoredTypes {
  std::optional<DType> main_dtype;  // none: there are no main weights
  // For single keys, before all else.
  std::function<std::optional<DType>(std::string_view key)> dtype_rule;

  DType of(const ModelParameter& p, std::string_view key) const {
    if (dtype_rule)
      if (std::optional<DType> type = dtype_rule(key)) return *type;
    return main_dtype && p.trainable && !p.buffer() ? *main_dtype : p.dtype;
  }
};

struct FsdpRun : StoredTypes {
  Grid grid;
  RunSetup run;
  FsdpSetup fsdp;
  int threads = 1;  // that plan
};

// Where the name of a tensor of the model parts: {"model": {"module.<name>": ...}}.
inline constexpr i32 kModelDot = 5;

// How a run's parameters differ from what the tables say of them: which are frozen. Thread-safe.
using Adjust = std::function<void(std::vector<ModelParameter>&)>;

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
