// The contents of a checkpoint's folder beside the files that its store reads: other checkpoints (the state
// of an optimizer, a model of another format), JSON files, and files that mckpt does not read. `verify` and
// `inspect` report them, so that no file of a folder is passed over in silence.
//
//   run/  pytorch_model_fsdp_0/  scheduler.bin    trainer_state.json  README.md
//         kCheckpoint            read by a store  kJson               kOther
//
// Hidden files and folders belong to tools and are not listed, unless they have, or hold, the name of a
// checkpoint: these are not read. Only names are read, no contents, except to recognise a folder as a
// checkpoint by the names in it.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
class Store;
struct OpenOptions;

// A file, or a folder that is listed as one thing.
struct Beside {
  enum class Kind : u8 {
    kCheckpoint,  // a file or folder whose names look as if open_store() could open it
    kJson,
    kUnread,  // may be a checkpoint, and is not looked at: a hidden one, or one that the disk does not give
    kOther,   // nothing that mckpt reads
  };
  std::string path;  // relative to the folder
  Kind kind = Kind::kOther;
  std::string reason{};  // why it is not read, if its name does not show that: "a broken link"
  bool folder = false;
};

// Everything beside the store's files, folder by folder, in natural order. `path`: the path that was opened;
// a file has nothing beside it. `store`: what open_store(path) returned, or null to list everything.
std::vector<Beside> list_beside(const std::string& path, const Store* store, const OpenOptions& opening);

// The paths of the other checkpoints alone, without those that are not looked at.
std::vector<std::string> checkpoints_beside(const std::string& path, const Store& store);

// The path with all links resolved; the path itself if it leads nowhere.
std::string real_path_of(const std::string& path);

// Whether open_store() would take the folder `name` inside `folder` for a checkpoint, by the names in it.
bool is_checkpoint_folder(const Folder& folder, std::string_view name);

// Whether nothing in the folder itself is a model, by the names in it: only folders below may be, beside the
// states of a run such as data.pt.
bool is_folder_of_folders(const Folder& folder);

}  // namespace mckpt::impl
