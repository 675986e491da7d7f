// Several folders of torch_dist that are one checkpoint, as verl saves them.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace mckpt::impl {

class Store;
struct OpenOptions;

// Folders of torch_dist that are one checkpoint: the model in one, its optimizer in another.
struct DcpParts {
  std::vector<std::string> folders;  // relative to the root
  std::size_t common = 0;  // the one whose common state counts; the common states of the others are objects
                           // of any name
};

// One folder. Throws what is wrong with it, as open_store() does.
std::unique_ptr<Store> open_dcp(const std::string& path, const OpenOptions& opening);
// Opens them as one store, whose root is `path`. Throws kIncomplete for a part without .metadata, and what
// opening a DCP folder throws.
std::unique_ptr<Store> open_dcp_parts(const std::string& path, DcpParts parts, const OpenOptions& opening);

}  // namespace mckpt::impl
