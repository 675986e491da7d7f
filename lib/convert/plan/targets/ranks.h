// The files of the ranks of a Megatron run (--ckpt-format torch), weights only, of a Hugging Face model or of
// a sharded checkpoint:
//
//   model.layers.0.self_attn.q_proj.weight ...   -->   DST/release/mp_rank_00/model_optim_rng.pt
//                                                      DST/release/mp_rank_01/model_optim_rng.pt
//
// Every file has the tensors that its rank holds at run time, under their names there, with args,
// checkpoint_version and iteration.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "convert/keys/value_options.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/spellings.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

class Store;
struct Conversion;
struct Opened;

// Plain values. Every rank of a parallel conversion plans with the same options, except `rank`.
struct ToRanksOptions {
  std::string source, target;
  CheckpointOptions checkpoint{};  // of a sharded source; its `model` also of a Hugging Face folder
  std::string model_dict{};        // as in OwnModelOptions
  Grid grid{};
  PipelineOptions pipeline{};
  std::string hybrid_pattern{};  // with the pipes of the new stages; "": they are placed
  Spelling spelling{};           // the names of parameters that have more than one
  ValueOptions values{};
  std::optional<i64> iteration{};  // none: DST/release
  // For files of ranks that are written for another grid: the spelling (unless it is `own_spelling`) and the
  // iteration are the source's, and states of the optimizer are refused unless only the weights are wanted.
  bool like_source = false, own_spelling = false, weights_only = false;
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the data of tensors that repeat another
};

// Reads headers, and on rank 0 the data of tensors that should repeat another one. Throws what
// open_hf_model(), open_sharded(), KeyTable, RankPlan, import_job() and gather_job() throw; kNotFound for
// a model without weights; kUsage for a spelling without effect; kBadLayout for HSDP instances; kNotHeld for
// states of the optimizer that are refused.
Conversion plan_to_ranks(const ToRanksOptions& options);
// The same, of a store or a source that is open.
Conversion plan_to_ranks(std::unique_ptr<Store> source, const ToRanksOptions& options);
Conversion plan_to_ranks(Opened source, const ToRanksOptions& options);

}  // namespace mckpt::impl
