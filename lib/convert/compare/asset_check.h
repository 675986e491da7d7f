// The check "assets": files beside the weights of a model, such as config.json and the tokenizer, in the
// model's own folder or in that of a checkpoint made of it.
#pragma once

#include <optional>
#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check, where there are such files: every JSON file can be read, and is an object where it must be
// one. Returns which files were judged, relative to the store's root.
NameSet<std::string> check_assets(const Store& store, VerifyReport& report);

// Adds the check about a comparison: files that both sides have must have the same bytes, because a
// conversion copies them. Between two models a difference is a warning. `assets`: the folder that takes the
// place of the source's own. Returns whether the files are equal as far as they have to be.
bool compare_assets(const Store& tested, const Store& source, const std::optional<std::string>& assets,
                    VerifyReport& report);

}  // namespace mckpt::impl
