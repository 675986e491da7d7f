// What stands beside the weights of a model, in its own folder or in that of a checkpoint made of it: configs
// and tables that mckpt needs or copies.
#pragma once

#include <string>

#include "core/base/name_hash.h"
#include "io/verify/verify.h"

namespace mckpt {

// Adds the check "assets": that every JSON file can be read, and is an object where it must be one. No check
// where there are no such files. Returns which files it judged, relative to the store's root.
NameSet<std::string> check_assets(const Store& store, VerifyReport& report);

// The same of `verify --against`: that files which both sides have hold the same bytes, as a conversion
// copies them. Of two models, what differs is a warning. Returns whether they do as far as they have to.
bool compare_assets(const Store& there, const Store& source, const std::optional<std::string>& assets,
                    VerifyReport& report);

}  // namespace mckpt
