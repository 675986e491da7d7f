// What verify reports about the manifest of a folder: the list itself, each file that it names, and files that
// it does not name.
#pragma once

#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check "manifest". Damage to the data of tensors is left to the check of the CRC-32 sums. Adds no
// check where the folder has no manifest. The names of the files that it read are added to `judged`.
void check_manifest(const Store& store, int threads, NameSet<std::string>& judged, VerifyReport& report);

// Adds the check "manifest" about both sides of a comparison, without the data of tensors, which are compared
// apart. Returns whether all files are as listed.
bool check_listed(const Store& there, const Store& source, VerifyReport& report);

}  // namespace mckpt::impl
