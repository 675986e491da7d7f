// FsdpPlan: what every rank of a Megatron-FSDP run writes of a model, computed without a run. Ranks that hold
// the same box share the work as torch.distributed.checkpoint shares it, so that the files, and the order of
// the chunks in them, are those of a real run:
//
//   each rank's tensors --which boxes, held by whom--> one writer for each box --> __R_0.distcp
//
//   tp 2, dp 2:   a weight cut by rows      4 boxes, each with one holder, which writes it
//                 a norm, replicated in tp  2 boxes, each with 2 holders: the one with the smaller load writes it
//
// The cost grows with (ranks x keys); cells are planned by several threads. No tensor data are read.
#pragma once

#include "convert/keys/key_table.h"
#include "io/dcp/layout.h"
#include "mappings/fsdp/layout.h"

namespace mckpt::impl {

// The type in which a run stores each of its parameters. Main weights may have a type of their own; only
// trained parameters have main weights, so frozen parameters and buffers keep their type at run time.
struct StoredTypes {
  std::optional<DType> main_dtype;  // none: there are no main weights
  // The type of single keys; it comes before all other rules. Thread-safe.
  std::function<std::optional<DType>(std::string_view key)> dtype_rule;

  DType of(const ModelParameter& p, std::string_view key) const {
    if (dtype_rule)
      if (std::optional<DType> type = dtype_rule(key)) return *type;
    return main_dtype && p.trainable && !p.buffer() ? *main_dtype : p.dtype;
  }
};

// A training run: its grid, the set-up of model and FSDP, and its types. `threads` is the number of threads
// that plan.
struct FsdpRun : StoredTypes {
  Grid grid;
  RunSetup run;
  FsdpSetup fsdp;
  int threads = 1;  // that plan
};

// The position of the dot that separates the nested dictionaries in the name of a tensor of the model:
// "model.module.x" was {"model": {"module.x": ...}}.
inline constexpr i32 kModelDot = 5;

// Changes what the tables say of a run's parameters, such as which of them are frozen. Thread-safe: each cell
// of the grid calls it for its own parameters.
using Adjust = std::function<void(std::vector<ModelParameter>&)>;

// A tensor that is stored beside a key and is cut as the key is: a state of the optimizer, such as exp_avg.
struct Companion {
  DcpName name;
  DType dtype = DType::kF32;
};
using Companions = std::vector<std::vector<Companion>>;  // by key of the table

// The plan, a value: the layout of the files, and the meaning of the layout's keys. It refers to no argument
// after construction.
struct FsdpPlan {
  // pre: `companions` is empty or has an entry for each key of the table. Throws kBadLayout for a grid with
  // pipeline stages or a strategy that cannot save the model, kRowUnaligned if a rank's range cuts a row,
  // kGridMisfit.
  FsdpPlan(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust, const Companions& companions = {});

  DcpLayout layout;
  std::vector<i32>
      table_key;  // by key of the layout: its key in the table, or that of which it is a companion
};

}  // namespace mckpt::impl
