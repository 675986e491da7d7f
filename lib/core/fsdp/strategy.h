// The two engines of Megatron-FSDP and what they shard over the ranks.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

// v1 sorts by row size and may cut a row in two; v2 keeps the order of registration and never does.
enum class Engine : u8 { kV1, kV2 };
// The values that Megatron-FSDP shards over the ranks; v2 packs in the same way for all strategies.
enum class Strategy : u8 { kNoShard, kOptim, kOptimGrads, kOptimGradsParams };
// The strategies of v1 with FSDP units. megatron-core 0.19.2: optim_grads_params only; later: all but
// no_shard.
enum class UnitScope : u8 { kFullShardOnly, kAllSharded };

std::string_view engine_name(Engine engine);        // "v1"
std::string_view strategy_name(Strategy strategy);  // "optim_grads_params"
// Each throws kUsage that lists the known names.
Engine engine_from_name(std::string_view name);
Strategy strategy_from_name(std::string_view name);

}  // namespace mckpt::impl
