// OpenOptions: how the files of checkpoints are opened. A caller gives them to open_store() or to what opens
// a model; Folder and Store keep them, so that all that is opened later is opened in the same way:
//
//   OpenOptions how{.stamps = std::make_shared<SourceStamps>()};
//   auto store = open_store(path, how);         every file that is opened from here on is noted in the stamps
//   check_unchanged(store->opening());          before anything is published or answered
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace mckpt::impl {

class AdapterBase;
class Containers;
class SourceStamps;

// All kinds that mckpt knows (io/file/container.h).
std::shared_ptr<Containers> new_containers();

// Which weights are read of a folder with two models: model.safetensors, and an index with shards that does
// not name it. Programs differ in what they load (io/safetensors/two_models.h).
enum class ModelFiles : unsigned char {
  kEqual,   // the shards, if the tensors of both are equal; else the folder is refused
  kSingle,  // model.safetensors
  kShards,  // those that the index names
};

// The role of a folder with two models, where `ModelFiles` chooses none of them.
enum class TwoModels : unsigned char {
  kRefused,        // an error, unless their data are equal
  kFinding,        // a problem of the folder, unless their data are equal
  kFindingUnread,  // the same by their headers alone: data are not read
};

// A value; copies share the stamps and the open containers.
struct OpenOptions {
  bool follow_links = false;  // follow links that lead out of a checkpoint's folder
  ModelFiles model_files = ModelFiles::kEqual;
  TwoModels two_models = TwoModels::kRefused;
  // Notes what is opened, to see whether it changes while it is read. Null: nobody looks for changes.
  std::shared_ptr<SourceStamps> stamps{};
  // Where mckpt-hdf5 is looked for first (runtime/system/module_folders.h).
  std::vector<std::string> helper_folders{};
  // Files that have files in them, as archives have (io/file/container.h). Null: they are files like others.
  std::shared_ptr<Containers> containers = new_containers();
  // The model that adapters change (io/store/open/adapter_base.h): a folder with an adapter is opened as that
  // model with the adapter in it. Null: as the tensors of the adapter.
  std::shared_ptr<const AdapterBase> base{};
};

// Throws kReadFailed if a file that was noted has changed; does nothing without stamps. To be called after
// the last read.
void check_unchanged(const OpenOptions& opening);

}  // namespace mckpt::impl
