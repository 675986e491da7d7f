// How many parameters the model in files of Megatron's ranks has, each counted once, whatever the number of
// ranks that have it.
#pragma once

#include <optional>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// By the config in hf_assets, from headers alone, with rows of padding. Nothing for another format, without
// that config, and for files that are not that model.
std::optional<i64> parameters_of_ranks(const Store& store);

}  // namespace mckpt::impl
