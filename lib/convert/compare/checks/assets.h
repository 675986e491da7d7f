// The check "assets": the files beside the weights of a model, such as config.json and the tokenizer, in the
// model's own folder or in hf_assets of a checkpoint made of it.
//
//   check_assets()     one side: can every JSON file be read?
//   compare_assets()   two sides: are files that both sides have the same?
#pragma once

#include <optional>
#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check if there are such files: every JSON file must be readable, and config.json must be an
// object. Returns the files that were read, relative to the store's root. Damage is a finding, never an
// error.
NameSet<std::string> check_assets(const Store& store, VerifyReport& report);

// Adds the check of a comparison: files that both sides have must be the same, because a conversion copies
// them: JSON in its values, which findings name, and other files in their bytes. Between two models a
// difference is a warning only, because nothing was converted. `assets`: a folder that the caller names, for
// a side without assets, or in place of the source's own. `every`: every difference of a JSON file is listed
// in the report too, also the declaration of quantised weights that a conversion leaves out. Returns false if
// files differ that must be equal.
bool compare_assets(const Store& tested, const Store& source, const std::optional<std::string>& assets,
                    bool every, VerifyReport& report);

}  // namespace mckpt::impl
