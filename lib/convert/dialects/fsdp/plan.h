// FsdpPlan: what every rank of a Megatron-FSDP run writes of a model, computed without a run. Ranks that hold
// the same box share the work as torch.distributed.checkpoint shares it, so that a real run writes the same
// files, with the chunks in the same order:
//
//   each rank's tensors --which boxes, held by whom--> one writer for each box --> __R_0.distcp
//
//   tp 2, dp 2:   a weight cut by rows      4 boxes, each with one holder, which writes it
//                 a norm, replicated in tp  2 boxes, each with 2 holders: the one with the smaller load writes it
//
// Under the keys of a state dict (Megatron-FSDP v2) the ranks also share what each of them has whole: a value
// of the optimizer for each parameter (`step`), and the objects of its groups.
//
// The cost grows with (ranks x keys); cells are planned by several threads. No tensor data are read.
#pragma once

#include <functional>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/dcp/write/layout.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class KeyTable;
struct FsdpRun;

// The position of the dot that separates the nested dictionaries in the name of a tensor of the model:
// "model.module.x" was {"model": {"module.x": ...}}.
inline constexpr i32 kModelDot = 5;

// A tensor that is stored beside a key and is cut as the key is: a state of the optimizer, such as exp_avg.
struct Companion {
  DcpName name;
  DType dtype = DType::kF32;
  bool value = false;  // without dimensions: one value, which every rank has
};
using Companions = std::vector<std::vector<Companion>>;  // by key of the table

// Objects that every rank has, in the order in which a rank saves them, behind its tensors. put() gives an
// object its record in a rank's file of the layout; it is called once for each, in order, before the files
// have tensors.
struct SharedObjects {
  i64 count = 0;
  std::function<void(i64 object, i32 rank, DcpLayout& layout)> put{};
};

// The plan, a value: the layout of the files, and the meaning of the layout's keys. It refers to no argument
// after construction.
struct FsdpPlan {
  // pre: `companions` is empty or has an entry for each key of the table; only a run with the keys of a state
  // dict has values and shared objects. Throws kBadLayout for a grid with pipeline stages or a strategy that
  // cannot save the model, kRowUnaligned if a rank's range cuts a row, kGridMisfit.
  FsdpPlan(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust, const Companions& companions = {},
           const SharedObjects& objects = {});

  DcpLayout layout;
  std::vector<i32>
      table_key;  // by key of the layout: its key in the table; of a companion, the key that it is beside
};

}  // namespace mckpt::impl
