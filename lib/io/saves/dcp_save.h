// Files of two saves in one folder. A save into a folder that has one already replaces files of the same
// name and leaves the others; an interrupted copy leaves some of each. Where both saves were made by the
// same grid, every box, size and checksum is right, and only the objects give it away:
//
//   __0_0.distcp   optimizer.param_to_group_meta....step = 2000
//   __1_0.distcp   optimizer.param_to_group_meta....step = 1000     <- of the save before
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;
class Store;
struct Finding;

// Reports data files in the folder `part` of the folder that .metadata does not name (`named`), unless they
// are empty: a rank that held nothing writes an empty file.
void find_leftovers(const Folder& folder, const std::string& part, std::span<const std::string> named,
                    std::vector<Finding>& out);

// Compares the optimizer's steps of all files, and the iteration with the iteration in the folder's name.
// Reads one object a file. A file that cannot be read is reported by DcpStore::check().
std::vector<Finding> check_mixed(const Store& store);

}  // namespace mckpt::impl
