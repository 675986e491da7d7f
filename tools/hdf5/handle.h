// An id of the HDF5 library that is given back by itself, and the library's words about what went wrong last.
#pragma once

#include <hdf5.h>

#include <string>

namespace mckpt::impl {

// Closes the id at the end of its scope: Handle<H5Dclose> dataset(H5Dopen2(...)); false when the library gave
// none.
template <herr_t (*kClose)(hid_t)>
class Handle {
 public:
  explicit Handle(hid_t id) : id_(id) {}
  ~Handle() {
    if (id_ >= 0) kClose(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  operator hid_t() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
};

using TypeHandle = Handle<H5Tclose>;
using SpaceHandle = Handle<H5Sclose>;

// "can't open dataset: bad version number for layout message": the outermost and the innermost words. To be
// asked before the library is called again.
std::string library_words();

}  // namespace mckpt::impl
