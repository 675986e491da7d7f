// HDF5 files as a Store: every dataset of numbers is a tensor, named by its path
// ("encoder/layer.0/weight"); strings, compounds, links and attributes ("encoder@units") are objects.
//
//   mckpt  --- file, place of the superblock --->  mckpt-hdf5 (sandboxed, has the HDF5 library)
//          <-- names, types, places of the data ---
//   mckpt  reads the data itself, at these places
//
// The HDF5 library has had many faults that a file can trigger, so it never runs in this process.
#pragma once

#include <memory>
#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class InputFile;
class Store;
struct OpenOptions;

// The store of a file, from the answer of mckpt-hdf5 about it; open_hdf5_file() calls it. Throws kBadHdf5,
// kUnsupportedHdf5, kHelperFailed.
std::unique_ptr<Store> hdf5_store(InputFile file, i64 superblock, std::span<const u8> answer,
                                  const OpenOptions& opening);

}  // namespace mckpt::impl
