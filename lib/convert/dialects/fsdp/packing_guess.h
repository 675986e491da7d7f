// One guess at how a run packed its parameters, compared with the boxes that its ranks wrote:
//
//   guess    v1, units TransformerLayer, 3 ranks    --pack-->  rank 1 has rows 58 to 116 of linear_qkv.weight
//   stored   __1_0.distcp: [58, 0] + [58, 96]                  agrees
//
// Grids count context-parallel ranks with the data-parallel ones: boxes do not tell them apart.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/dialects/fsdp/stored_parameters.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"

namespace mckpt::impl {

struct PackingGuess {
  Engine engine = Engine::kV1;
  bool shards = true;  // false: no_shard, every rank has every parameter whole
  bool transformer_units = true, mamba_units = true, stack_units = false;
  bool fp8 = false;  // the weights of linear layers are of 8 bits, and have buffers of their own
  Grid grid{};
  i64 bucket_items = 0;       // where groups outside units are cut; 0: nowhere
  bool second_names = false;  // parameters that are alike an earlier one are that one

  bool has_units() const { return transformer_units || mamba_units || stack_units; }
};

// A box that is not where the guess has it. Empty sizes: nothing.
struct BoxDisagreement {
  i64 tensor = 0;
  i32 rank = 0;
  std::vector<i64> expected_offsets, expected_sizes, found_offsets, found_sizes;
};

struct GuessResult {
  bool possible = true;  // false: Megatron-FSDP refuses to pack so
  i64 parameters = 0, agreeing = 0;
  std::optional<BoxDisagreement> first{};  // in the order of the parameters
  std::vector<i64> chunk_items{};          // the chunk-size factors of all buckets, each once, ascending

  bool fits() const { return possible && agreeing == parameters; }
};

// The ranks over which dimension 1 and higher of dense parameters (of experts) is cut, by the boxes; 1 if
// none is.
i64 tensor_ranks(const Store& store, const StoredParameters& parameters, bool experts);

// Finds the dimension of each parameter that so many tensor-parallel ranks cut. Guesses of other sizes need
// it again.
void find_cuts(const Store& store, StoredParameters& parameters, i64 tp, i64 etp);

// Whether the writers of the experts' boxes can be the expert-parallel ranks of that grid.
bool experts_fit(const Store& store, const StoredParameters& parameters, const Grid& grid);

// `whole`: looks at every parameter; otherwise ends with the first that disagrees. pre: find_cuts() for its
// grid.
GuessResult try_guess(const Store& store, const StoredParameters& parameters, const PackingGuess& guess,
                      bool whole);

}  // namespace mckpt::impl
