// HDF5 files as a Store: every dataset of numbers is a tensor, named by its path ("encoder/layer.0/weight");
// strings, compounds, links and attributes ("encoder@units") are objects. mckpt-hdf5 finds them; the data are
// read here.
#pragma once

#include <memory>
#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;
class Store;

// What open_hdf5_file() gives, from the answer of mckpt-hdf5. Throws kBadHdf5, kUnsupportedHdf5,
// kHelperFailed.
std::unique_ptr<Store> hdf5_store(InputFile file, i64 superblock, std::span<const u8> answer,
                                  const OpenOptions& opening = {});

}  // namespace mckpt::impl
