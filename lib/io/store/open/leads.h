// Folders that lead to another folder, which is the checkpoint: a tracker file names an iteration, `latest`
// of DeepSpeed a save, a part of a hub cache has one snapshot. The store gets a fact "chosen" that says which
// one, and why.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace mckpt::impl {

class Folder;
class Store;
struct FolderLook;

std::unique_ptr<Store> open_chosen(const Folder& folder, const std::string& name, std::string_view chosen_by);

// The iteration that Megatron's tracker file names. Throws kUnknownFormat, kNotFound.
std::unique_ptr<Store> open_tracked(const FolderLook& look);
// DeepSpeed's folder of the save that the file `latest` names. Null if it names no folder here, and the
// folder has another checkpoint. Throws kNotFound.
std::unique_ptr<Store> open_latest(const FolderLook& look);
// A copy of a part of a cache: what names a snapshot is not there. Null unless there is one snapshot.
std::unique_ptr<Store> open_only_snapshot(const FolderLook& look);

}  // namespace mckpt::impl
