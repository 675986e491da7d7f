// A sharded checkpoint, with its optimizer states, onto another grid or sharding strategy: the same values in
// the chunks of other ranks, under the names of fsdp_dtensor.
//
//   ckpt/iter_0000010/__0_0.distcp ... of 4 ranks   -->   DST/iter_0000010/__0_0.distcp ... of 8 ranks
//
// Values never change, and types only under v2 (below). Fused parameters stay whole or in parts, as the
// source has them. Padding of the vocabulary, and that of its states, changes where the new grid needs other
// rows. For a run of Megatron-FSDP v2 (FsdpSetup::keys) the names become those of its state dict, fused
// parameters become whole, and parameters of a known model are widened to fp32.
#pragma once

#include "convert/keys/name_rules.h"
#include "convert/source/options.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

struct Conversion;

// Plain values; every rank plans with the same ones, except `rank`.
struct ReshardOptions {
  std::string source, target;
  ReshardSourceOptions from{};
  Grid grid{};
  FsdpSetup fsdp{};
  FrozenNames frozen{};
  UnitModules modules{};                     // of a model without a table
  VocabChoice vocab{VocabChoice::kAuto, 0};  // rows of the vocabulary; auto keeps those that divide
  std::optional<i64> iteration{};            // none: that of the source's folder
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the sums of objects that are files
};

// Throws kUsage for options that exclude each other, what ReshardSource, KeyTable, FsdpPlan and reshard_job()
// throw; kVocabulary, kUnknownPartition and kCounterpart for what the new grid cannot hold.
Conversion plan_reshard(const ReshardOptions& options);

}  // namespace mckpt::impl
