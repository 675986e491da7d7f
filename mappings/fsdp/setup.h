// How a training run uses Megatron-FSDP: strategy and engine, which layers are units, where buffers are cut.
#pragma once

#include "core/base/int.h"
#include "core/fsdp/strategy.h"

namespace mckpt::impl {

// How a training run configures Megatron-FSDP.
struct FsdpSetup {
  Strategy strategy = Strategy::kOptimGradsParams;
  Engine engine = Engine::kV1;
  UnitScope unit_scope = UnitScope::kFullShardOnly;
  bool transformer_units = true, mamba_units = true;  // the classes of layers that are units
  i64 bucket_items = 0;                               // size at which to cut outside units; 0: not at all
  bool saved = true;  // false: accept layouts that ranks can hold but not save
};

}  // namespace mckpt::impl
