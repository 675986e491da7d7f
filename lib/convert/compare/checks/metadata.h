// The check "metadata" of a comparison: the strings of __metadata__ of two checkpoints of safetensors, by
// key.
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check where they differ. `problem`: a difference is a problem; otherwise a warning, because no
// conversion copies them. Views that decode or merge have the metadata of the files behind them. Returns
// whether they are equal, or need not be.
bool compare_metadata(const Store& tested, const Store& source, bool problem, VerifyReport& report);

}  // namespace mckpt::impl
