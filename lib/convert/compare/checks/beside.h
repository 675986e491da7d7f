// The check "beside": everything in the folder of a checkpoint beside the checkpoint's own files. Other
// checkpoints there are verified like the one that was opened, JSON files are parsed, and everything else is
// listed as not read.
//
//   ckpt/.metadata, __0_0.distcp     the store: verified by check_checkpoint()
//   ckpt/optimizer_0/.metadata       beside: a checkpoint, verified with its own assets and manifest
//   ckpt/notes.json                  beside: parsed
//   ckpt/run.log                     beside: listed as not read
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error_code.h"
#include "core/base/name_hash.h"

namespace mckpt::impl {

class Observer;
class Store;
struct Beside;
struct OpenOptions;
struct VerifyReport;

// How a checkpoint is checked; plain values.
struct CheckedAs {
  std::optional<std::string>
      assets{};                // the folder of the model whose tensors it must have, with a config.json
  std::string model_dict{};    // which dict of the save they are in; empty: it is found
  std::vector<Code> accept{};  // as in CheckpointOptions; a config of another model is a warning then
  bool archive = true;         // whether the archive that it is in is checked: once for all that it has
};

// Makes the report of one checkpoint: its store, its assets and its manifest. Returns the files that were
// checked, relative to the store's root. `phase`: the name of the work for the observer. Throws kInterrupted,
// and kUsage for a dict where none is looked at.
NameSet<std::string> check_checkpoint(const Store& store, const std::string& phase, int threads,
                                      Observer& observer, VerifyReport& report, const CheckedAs& as = {});

// Adds the check, if anything beside the checkpoint was read, and lists what was not read. `store`: the
// checkpoint at `path`. `seen`: files, relative to the root of the store, that other checks have read.
// Follows links, and visits every checkpoint once. `accept`: as in CheckedAs, of these checkpoints.
void check_beside(const std::string& path, const Store& store, const NameSet<std::string>& seen, int threads,
                  const OpenOptions& opening, Observer& observer, VerifyReport& report,
                  std::span<const Code> accept = {});
// Adds the check of these checkpoints alone, which are in the folder `path`.
void check_beside(const std::string& path, const std::vector<Beside>& some, int threads,
                  const OpenOptions& opening, Observer& observer, VerifyReport& report,
                  std::span<const Code> accept = {});

// For a comparison: lists the checkpoints beside one side's, which are not compared, and files and folders
// that may be some and that nobody looks at, such as hidden ones. `whole`: with the path in front.
void name_beside(const std::string& path, const Store& store, bool whole, VerifyReport& report);

}  // namespace mckpt::impl
