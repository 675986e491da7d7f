// `verify`: what is in the folder beside the checkpoint's own files. Other checkpoints there are verified
// like the one that was opened, JSON files are parsed, and what is not read is named.
#pragma once

#include <string>

#include "core/base/name_hash.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "tools/options/command_line.h"

namespace mckpt {

// Makes the report of a checkpoint by itself: its store, its assets and its manifest, wherever it is. Returns
// the files that were judged, relative to the store's root. `label`: of the progress.
NameSet<std::string> check_checkpoint(const Store& store, const std::string& label, int threads,
                                      const GlobalFlags& flags, VerifyReport& report);

// Adds the check "beside" where something there was read, and what was not. `store`: what is at `path`; null:
// nothing was opened. `seen`: files, relative to the root of the store, that other checks have judged.
void check_beside(const std::string& path, const Store* store, const NameSet<std::string>& seen, int threads,
                  const GlobalFlags& flags, VerifyReport& report);

// Of a comparison: names the checkpoints beside PATH, which were not compared.
void name_beside(const std::string& path, const Store& store, VerifyReport& report);

}  // namespace mckpt
