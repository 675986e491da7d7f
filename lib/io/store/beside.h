// What is in the folder of a checkpoint beside the files that its store reads: other checkpoints (the state
// of an optimizer, a model of another format), JSON files, and what mckpt does not read at all. Hidden files
// and folders belong to tools and are not looked at.
//
//   run/  pytorch_model_fsdp_0/  scheduler.bin    trainer_state.json  README.md
//         kCheckpoint            read by a store  kJson               kOther
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
class Store;

struct Beside {
  enum class Kind : u8 {
    kCheckpoint,  // a file or folder that open_store() knows by its name
    kJson,
    kOther,  // nothing that mckpt reads
  };
  std::string path;  // relative to the folder
  Kind kind = Kind::kOther;
  std::string reason{};  // why it is not read, where its name does not say it: "a link out of the folder"
};

// Everything of it, ordered as a person counts. `path`: what was opened; a file has nothing beside it.
// `store`: what open_store(path) gave, or null: none of what is there.
std::vector<Beside> list_beside(const std::string& path, const Store* store);

// The other checkpoints alone, by their paths.
std::vector<std::string> checkpoints_beside(const std::string& path, const Store& store);

// Without links; the path itself where it leads nowhere.
std::string real_path_of(const std::string& path);

// Whether open_store() would take the folder, of that name inside of `folder`, for a checkpoint.
bool is_checkpoint_folder(const Folder& folder, std::string_view name);

}  // namespace mckpt::impl
