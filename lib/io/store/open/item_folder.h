// Folders of torch_checkpointing: known by their metadata.pkl, opened by io/ranks/item_folder.cc.
#pragma once

#include <memory>

namespace mckpt::impl {

class Folder;
class Store;

inline constexpr const char* kItemMetadata = "metadata.pkl";

// The folder as one store; null if it has no metadata.pkl of torch_checkpointing. Throws kBadPickle for one
// that cannot be used.
std::unique_ptr<Store> open_item_folder(const Folder& folder);

}  // namespace mckpt::impl
