// The check "archive": whether an archive has the bytes that its index says, and whether HDF5 shows the
// tensors that are in the files of the checkpoint.
//
//   sums       every row of the index, and all other bytes of the HDF5 files
//   datasets   each tensor of the store: type, shape, and for each chunk the place of its data, as HDF5 has them;
//              for the checkpoint that was archived, since others among its files have no datasets
#pragma once

#include <functional>

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Does nothing for a store that is in no archive. `going_on` is called after each read, from any thread; what
// it throws ends the work. Without mckpt-hdf5 the datasets are not looked at, which the check notes.
void check_archive(const Store& store, int threads, const std::function<void()>& going_on,
                   VerifyReport& report);

}  // namespace mckpt::impl
