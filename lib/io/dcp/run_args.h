// The args of the run that wrote a checkpoint, wherever they are: the object `args` of fsdp_dtensor, an entry
// of the common state of torch_dist, which is an object or, of older saves, common.pt.
#pragma once

#include <memory>
#include <string_view>

#include "io/pickle/value.h"

namespace mckpt::impl {

class Store;

// The file that older torch_dist saves have their common state in.
inline constexpr std::string_view kCommonFile = "common.pt";

// Whether an object of this name is the common state, or holds the args.
bool is_common_state(std::string_view object);
bool holds_args(std::string_view object);

// Null where there are none. What the file has where both are there: Megatron reads it alone. Throw what
// reading the object throws.
std::shared_ptr<const PickleValue> common_state_of(const Store& store);
std::shared_ptr<const PickleValue> args_of(const Store& store);

// An entry of args, or of another Namespace or dict; null: not there.
const PickleValue* arg_of(const PickleValue& args, std::string_view name);

}  // namespace mckpt::impl
