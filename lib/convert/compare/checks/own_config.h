// The check "model" of a checkpoint that is not a Hugging Face folder, against its own config.json.
#pragma once

#include <span>

#include "core/base/error_code.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if the checkpoint is not what its own config.json says: an export would be refused.
// Checkpoints under a model's own names have it too if the config fits, or is not compared; of others a
// config that fits is one of the assets, and no other line. `accept`: as in CheckpointOptions.
void check_own_config(const Store& store, std::span<const Code> accept, int threads, VerifyReport& report);

}  // namespace mckpt::impl
