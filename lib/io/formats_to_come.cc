// Openers that open_store() already chooses from, and that are not here yet. Each leaves this file for its
// own.
#include "io/store.h"

namespace mckpt {

std::unique_ptr<Store> open_dcp(const std::string& path) {
  throw Error(Code::kUnknownFormat, "this is a torch DCP folder, which this build does not read").file(path);
}

}  // namespace mckpt
