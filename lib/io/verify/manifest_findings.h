// The part of `verify` about the manifest of a folder: the check "manifest", with findings about the list
// itself, each file that it names, and files that it does not name.
//
//   manifest   fail   12 files   problem[MC1314]: config.json: has 655 bytes, but 654 in mckpt_manifest.json
#pragma once

#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Store;
struct OpenOptions;
struct VerifyReport;

// Adds the check "manifest" about the store's folder to the report; adds nothing if the folder has no
// manifest. Damage to the data of tensors is left to the check "crc32". The names of the listed files are
// added to `judged`, so that no other check reports them as not looked at. Findings are values: a manifest
// that cannot be read is one as well.
void check_manifest(const Store& store, int threads, NameSet<std::string>& judged, VerifyReport& report);

// Adds the check "manifest" about a folder that is not the folder of a store: all bytes of all listed files
// are compared. Files that it lists are no longer among the report's files that were not read.
void check_manifest_of_folder(const std::string& path, const OpenOptions& opening, int threads,
                              VerifyReport& report);

// Adds the check "manifest" about both sides of a comparison. Their tensors are left to the caller, who
// compares them. Returns whether all files are as listed; files that are not listed are warnings.
bool check_manifests(const Store& there, const Store& source, int threads, VerifyReport& report);

}  // namespace mckpt::impl
