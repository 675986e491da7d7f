// RequestedPaths: the paths of the datasets of a request (io/hdf5/compose.h).
//
//   "/files/0/w"  -->  groups "/files" and "/files/0", each asked for once, before the dataset
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

namespace mckpt::impl {

class Hdf5Request;

// The request outlives this.
class RequestedPaths {
 public:
  explicit RequestedPaths(Hdf5Request& request) : request_(request) {}

  // Asks for the groups of a dataset's path that nobody asked for yet. Throws kNotHeld, with the tensor's
  // name, for a path that HDF5, or the program that reads its files, cannot have.
  void add(std::string_view path, std::string_view tensor);

 private:
  Hdf5Request& request_;
  std::set<std::string, std::less<>> groups_, objects_;
};

}  // namespace mckpt::impl
