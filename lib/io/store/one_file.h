// One file of a checkpoint, as a store: the tensors that it has parts of, with these parts alone.
//
//   the folder        w [71, 4]: rows 0-23 in __0_0.distcp, 24-47 in __1_0.distcp, 48-70 in __2_0.distcp
//   __1_0.distcp      w [71, 4]: rows 24-47 in __1_0.distcp
//
// A .distcp file has no names in it: the .metadata of its folder tells what it has.
#pragma once

#include <memory>
#include <string_view>

namespace mckpt::impl {

class Store;

// `file`: its path inside the store. Null: the store has no such file. The result has the finding
// kShardAlone, also where one file has everything: conversions read folders.
std::unique_ptr<Store> one_file_of(std::unique_ptr<Store> store, std::string_view file);

// The store of all files; null for a store that one_file_of() did not make.
const Store* all_files_of(const Store& one_file);

}  // namespace mckpt::impl
