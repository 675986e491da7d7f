// What the args of a checkpoint say of its layers, and what they are to say of the layers it gets.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "convert/objects/args_patch.h"
#include "core/base/int.h"

namespace mckpt::impl {

class PickleValue;
class Store;
struct LayerPattern;

// The pattern in an argparse.Namespace or dict of Megatron's arguments, with that of the MTP parts where an
// old run kept it apart; nothing where there is none. Throws kBadPattern where two fields contradict each
// other.
std::optional<std::string> pattern_of_args(const PickleValue& args);

// The pattern of the hybrid model that a checkpoint is of, as the args of its run contain it. Nothing where
// there is none, where they cannot be read, or contradict each other: what is wrong with args is reported by
// those who look at them for their own sake.
std::optional<LayerPattern> pattern_of_run(const Store& store);

// Whether an entry of args of this name is the pattern of a hybrid model, or a part of it. None is as good as
// no entry.
bool is_pattern_arg(std::string_view name);

struct ArgChange {
  std::string name;
  ArgValue value;
};
// Of those fields that are there and have another value: a hybrid model of the pattern, or the GPT model of
// its layers. `hybrid_layer_pattern` alone is listed also where it is not there but should be.
std::vector<ArgChange> args_for_layers(const PickleValue& args, const LayerPattern& pattern, bool gpt,
                                       i64 layers);

}  // namespace mckpt::impl
