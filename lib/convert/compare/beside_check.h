// The check "beside": what is in the folder of a checkpoint beside the checkpoint's own files. Other
// checkpoints there are verified like the one that was opened, JSON files are parsed, and everything else is
// named as not read.
#pragma once

#include <string>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Observer;
class Store;
struct VerifyReport;

// Makes the report of one checkpoint: its store, its assets and its manifest. Returns the files that were
// judged, relative to the store's root. `phase`: the name under which the observer hears of it. Throws
// kInterrupted.
NameSet<std::string> check_checkpoint(const Store& store, const std::string& phase, int threads,
                                      Observer& observer, VerifyReport& report);

// Adds the check, where anything beside the checkpoint was read, and the list of what was not. `store`: what
// is at `path`; null: nothing was opened there. `seen`: files, relative to the root of the store, that other
// checks judged.
void check_beside(const std::string& path, const Store* store, const NameSet<std::string>& seen, int threads,
                  Observer& observer, VerifyReport& report);

// Of a comparison: names the checkpoints beside the tested one, which were not compared.
void name_beside(const std::string& path, const Store& store, VerifyReport& report);

}  // namespace mckpt::impl
