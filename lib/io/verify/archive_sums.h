// The sums that an archive has of the files of a store in it.
#pragma once

#include <vector>

#include "io/store/checksum.h"

namespace mckpt::impl {

class Store;

// By file and offset: one for each row of the archive's index. Empty for a store that is in no archive.
std::vector<Checksum> archive_sums(const Store& store);

}  // namespace mckpt::impl
