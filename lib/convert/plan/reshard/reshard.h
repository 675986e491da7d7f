// A sharded checkpoint, with its optimizer states, onto another grid or sharding strategy: the same values in
// the chunks of other ranks.
//
//   ckpt/iter_0000010/__0_0.distcp ... of 4 ranks   -->   DST/iter_0000010/__0_0.distcp ... of 8 ranks
//
// plan_reshard() keeps the format of the source, plan_sharded_to_fsdp() writes the names of fsdp_dtensor.
// In a DCP folder of another kind values never change, and types only under v2 (below). Fused parameters stay
// whole or in parts, as the source has them. Padding of the vocabulary, and padding of its states, changes
// where the new grid needs other rows. For a run of Megatron-FSDP v2 (FsdpSetup::keys) the names become the
// names of its state dict, fused parameters become whole, and parameters of a known model are widened to
// fp32.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "convert/keys/name_rules.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

class Store;
struct Conversion;

// Plain values; every rank plans with the same ones, except `rank`.
struct ReshardOptions {
  std::string source, target;
  ReshardSourceOptions from{};
  Grid grid{};
  FsdpSetup fsdp{};
  FrozenNames frozen{};
  bool keep_fp8 = false;         // weights of 8 bits, if the boxes of the source show that its run had some
  UnitModules modules{};         // of a model without a table
  PipelineOptions pipeline{};    // of torch_dist and of files of ranks
  std::string hybrid_pattern{};  // likewise: the pattern of the source with the pipes of the new stages
  VocabChoice vocab{VocabChoice::kAuto, 0};  // rows of the vocabulary; auto keeps those that divide
  std::optional<i64> iteration{};            // none: the number of the source's folder
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the sums of objects that are files
};

// Throws kUsage for options that exclude each other, kBadLayout for a grid that v2 has not. Opens nothing.
void refuse_contradictions(const ReshardOptions& options);

// In the format of the source:
//
//   fsdp_dtensor                plan_sharded_to_fsdp()
//   torch_dist                  plan_to_mcore(), layers stacked as they are
//   files of Megatron's ranks   plan_to_ranks(), names spelled as they are; with states it is refused
//   any other DCP folder        every tensor keeps its name, and its rows are divided among the ranks
//
// With engine v2, DCP folders other than torch_dist get the names of its state dict. Throws what these
// functions throw; kUsage for options that the format has no use for; kNotHeld for states of the optimizer
// in files of ranks.
Conversion plan_reshard(const ReshardOptions& options);

// Under the names of fsdp_dtensor, whatever the format. Takes the open source. Throws kUsage for options that
// exclude each other, what ReshardSource, KeyTable, FsdpPlan and reshard_job() throw; kVocabulary,
// kUnknownPartition and kCounterpart for what the new grid cannot hold.
Conversion plan_sharded_to_fsdp(std::unique_ptr<Store> source, const ReshardOptions& options);

}  // namespace mckpt::impl
