// Files of two saves in one folder. A save into a folder that has one already replaces files of the same name
// and leaves the others; a copy that broke off leaves some of each. Where both saves were made by the same
// grid, every box, size and checksum is right, and only what the objects say gives it away.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;
class Store;
struct Finding;

// Data files that .metadata does not name. A rank that held nothing leaves an empty one.
void find_leftovers(const Folder& folder, std::span<const std::string> named, std::vector<Finding>& out);

// Reads one object a file. What cannot be read is somebody else's finding.
std::vector<Finding> check_mixed(const Store& store);

}  // namespace mckpt::impl
