// The files of a checkpoint that go into an archive: the files of its tensors and everything beside them.
//
//   ckpt/.metadata, __0_0.distcp, common.pt, run_config.yaml     the files of the folder
//   ckpt/hf_assets/config.json, tokenizer.json                   folders that belong to a checkpoint
//   ckpt/mp_rank_00/model_optim_rng.pt                           folders with files of tensors
//   ckpt/logs/, .cache/, .gitattributes                          left out, and named
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/plan/source_identity.h"
#include "core/base/int.h"
#include "io/file/folder.h"

namespace mckpt::impl {

class Store;

struct ArchivedFile {
  std::string name;  // in the archive
  i64 bytes = 0;
  i32 store_file = -1;    // of the store; -1: none
  i32 folder = 0;         // of the folders
  std::string in_folder;  // its name there
};

// A value that keeps the folders open.
struct ArchivedFiles {
  std::vector<std::unique_ptr<const Folder>> folders;
  std::vector<ArchivedFile> files;    // in natural order
  std::vector<std::string> left_out;  // hidden files, and folders, each with a slash at its end
  std::string opened;                 // the file that is the checkpoint; "": the folder is

  // By file of the store, the number of the file.
  std::vector<i64> by_store_file(const Store& store) const;
  // Sizes and times of the files that the store does not have.
  SourceIdentity identity() const;
};

// `assets`: a folder of a Hugging Face model, whose config and tokenizer go with the checkpoint as
// hf_assets/; none: those where training frameworks put them, unless they are in the checkpoint's own folder.
// `source`: the path that the user gave. Throws kNotHeld for a name that is not a line of UTF-8,
// kContradiction for assets beside those that the checkpoint has, and what opening throws.
ArchivedFiles archived_files(const Store& store, const std::string& source,
                             const std::optional<std::string>& assets);

}  // namespace mckpt::impl
