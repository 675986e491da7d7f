// The args of the run that wrote a checkpoint (Megatron's argparse.Namespace), wherever they are:
//
//   fsdp_dtensor       object `args`
//   torch_dist         entry `args` of the common state: object common_state/shard_0_1
//   older torch_dist   entry `args` of the common state: file common.pt
//   files of ranks     object `args` of the first rank: mp_rank_00/args
#pragma once

#include <memory>
#include <string_view>

#include "io/pickle/value.h"

namespace mckpt::impl {

class Store;

// The file that has the common state in older torch_dist saves.
inline constexpr std::string_view kCommonFile = "common.pt";

// Whether an object of this name is the common state.
bool is_common_state(std::string_view object);
// Whether an object of this name is the args or has them as an entry.
bool holds_args(std::string_view object);

// Null where there is none. Where both a file and an object are there, the file's: Megatron reads it alone.
// Throws what reading the object throws.
std::shared_ptr<const PickleValue> common_state_of(const Store& store);
// Null where there are none. Throws what reading the object throws.
std::shared_ptr<const PickleValue> args_of(const Store& store);

// An entry of args, or of another Namespace or dict; null if there is none of this name.
const PickleValue* arg_of(const PickleValue& args, std::string_view name);

}  // namespace mckpt::impl
