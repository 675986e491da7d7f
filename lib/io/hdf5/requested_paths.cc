#include "io/hdf5/requested_paths.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/hdf5/compose.h"
#include "io/hdf5/wire.h"

namespace mckpt::impl {
namespace {

Error not_held(const char* message, std::string_view tensor) {
  return Error(Code::kNotHeld, message)
      .tensor(tensor)
      .help("rename the tensor, or keep the checkpoint in its format");
}

}  // namespace

void RequestedPaths::add(std::string_view path, std::string_view tensor) {
  if (path.size() - 1 > hdf5_wire::kMostName || std::ranges::count(path, '/') > hdf5_wire::kMostDepth)
    throw not_held("the name is too long, or has too many slashes, for HDF5", tensor);
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    std::string_view outer = path.substr(0, at);
    std::string_view last = outer.substr(outer.rfind('/') + 1);
    if (last.empty() || last == "." || last.find('\0') != last.npos)
      throw not_held("HDF5 cannot have this name: parts between slashes are names of groups", tensor);
    if (at == path.npos) break;
    if (objects_.contains(outer)) throw not_held("HDF5 cannot have a dataset that is also a group", tensor);
    if (groups_.insert(std::string(outer)).second) request_.group(outer);
  }
  if (groups_.contains(path) || !objects_.insert(std::string(path)).second)
    throw not_held("HDF5 cannot have two objects of one name", tensor);
}

}  // namespace mckpt::impl
