// Which files of a folder a card lists: all regular files in it and below it, links followed, but not
//
//   .git .gitattributes .github .gitignore .cache    at the top: those of tools that fetch the folder
//   what mckpt has not finished                      .NAME.mckpt-tmp, marks of publishing
//   names that the caller leaves out                 the card itself, other iterations of the training run
//   other entries than regular files                 links without a target or to a folder above, sockets
//
// Files that were left out are listed under `ignored`, as OpenSSF model signing wants it.
#pragma once

#include <string>
#include <vector>

#include "io/file/open_options.h"

namespace mckpt::impl {

class Folder;

// A card is of the files on the disk: an HDF5 archive is one of them, and not the files in it.
OpenOptions as_files(OpenOptions opening);

struct CardFiles {
  std::vector<std::string> names;    // ascending, byte by byte
  std::vector<std::string> ignored;  // files and folders, ascending
};

// `left_out`: names relative to the folder; what is below them is left out too. Throws kReadFailed, and
// kBadPath for a link out of the folder, unless the folder's options allow such links.
CardFiles card_files(const Folder& folder, const std::vector<std::string>& left_out);

// The name of `path` relative to `folder`, both as the system resolves them; "" if it is not inside. The last
// part of `path` need not exist.
std::string name_inside(const std::string& folder, const std::string& path);

}  // namespace mckpt::impl
