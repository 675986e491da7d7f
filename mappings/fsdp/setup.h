// How a training run uses Megatron-FSDP: strategy and engine, which layers are units, where buffers are
// cut, and the keys under which it saves. The words are explained in core/fsdp (strategy.h, param_groups.h).
#pragma once

#include <string_view>

#include "core/base/int.h"
#include "core/fsdp/strategy.h"

namespace mckpt::impl {

// The keys of a checkpoint.
enum class SavedKeys : u8 {
  kFsdpDtensor,  // "model.module.<param>"; the parts of fused parameters have keys of their own
  kStateDict,    // "model.<param>", every parameter whole: what Megatron-FSDP v2 saves
};

// How weights are quantised that a run has in 8 bits (fp8.h); kNone: it has none.
enum class Fp8Recipe : u8 { kNone, kTensorwise, kDelayed, kBlockwise, kMxfp8 };
std::string_view fp8_recipe_name(Fp8Recipe recipe);  // "mxfp8"

// From the options of a conversion, or from the checkpoint that is resharded. The default is
// optim_grads_params of v1 with all layers as units, and no cut by size.
struct FsdpSetup {
  Strategy strategy = Strategy::kOptimGradsParams;
  Engine engine = Engine::kV1;
  UnitScope unit_scope = UnitScope::kFullShardOnly;
  bool transformer_units = true, mamba_units = true;  // the classes of layers that are units
  bool hybrid_stack_units = false;  // stacks of a hybrid model are units, and own the layers inside them
  i64 bucket_items = 0;             // size at which to cut outside units; 0: not at all
  Fp8Recipe fp8 = Fp8Recipe::kNone;
  SavedKeys keys = SavedKeys::kFsdpDtensor;
  bool saved = true;  // false: accept layouts that ranks can hold but not save

  bool saves_state_dict() const { return keys == SavedKeys::kStateDict; }
  // The engine, and the keys under which a run of it saves.
  void use(Engine which) {
    engine = which;
    keys = which == Engine::kV2 ? SavedKeys::kStateDict : SavedKeys::kFsdpDtensor;
  }
};

struct Grid;

// The first of the options that only a run under Megatron-FSDP has and that is not as usual, "`engine`"; ""
// if all are. The recipe of 8-bit weights is none of them: other runs have such weights too.
std::string_view option_of_fsdp(const FsdpSetup& setup, const Grid& grid);

}  // namespace mckpt::impl
