// The layers of a hybrid model in the args of a checkpoint: which pattern the args contain, and which fields
// have to change when the layers get the names of another form.
//
//   hybrid_layer_pattern "[*-]M"   num_layers 3   is_hybrid_model True            a hybrid model, grouped
//   hybrid_layer_pattern None      num_layers 1   is_hybrid_model False           the GPT model of * and -
//
// Older runs wrote `hybrid_override_pattern`, and kept the pattern of MTP parts in
// `mtp_hybrid_override_pattern`.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "convert/facts/args_patch.h"
#include "core/base/int.h"

namespace mckpt::impl {

class PickleValue;
class Store;
struct LayerPattern;

// The pattern in an argparse.Namespace or dict of Megatron's arguments, with the pattern of the MTP parts if
// an old run kept it in a field of its own; nothing if there is none. Throws kBadPattern if two fields
// contradict each other.
std::optional<std::string> pattern_of_args(const PickleValue& args);

// The pattern of the hybrid model that a checkpoint contains, by the args of its run. Nothing if the args are
// missing, cannot be read, or contradict each other: those faults are reported by the functions that need the
// args.
std::optional<LayerPattern> pattern_of_run(const Store& store);

// Whether a field of the args of this name contains the pattern of a hybrid model, or a part of it. A field
// with the value None counts as missing.
bool is_pattern_arg(std::string_view name);

// One field of the args and its new value.
struct ArgChange {
  std::string name;
  ArgValue value;
};
// The fields to change so that the args describe a hybrid model of the pattern or, with `gpt`, the GPT model
// of its layers. Only fields that exist with another value are listed, and `hybrid_layer_pattern` also if it
// is missing.
std::vector<ArgChange> args_for_layers(const PickleValue& args, const LayerPattern& pattern, bool gpt,
                                       i64 layers);

}  // namespace mckpt::impl
