// The check "model" of a checkpoint that is not a Hugging Face folder, against its own config.json.
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if the checkpoint is not what its own config.json says, or the config says nothing: an export
// would be refused. A config that fits is one of the assets, and no other line. Files of ranks under a model's own
// names are compared with the config that a training program put beside them; where that is not possible, the check
// says why.
void check_own_config(const Store& store, int threads, VerifyReport& report);

}  // namespace mckpt::impl
