// The manifest of a folder that mckpt writes, put beside its files before the folder is published; and what a
// reader of such a folder asks it.
#pragma once

#include <string>
#include <vector>

#include "core/base/name_hash.h"
#include "io/copy/part_sums.h"
#include "io/verify/verify.h"
#include "runtime/comm/comm.h"

namespace mckpt {

// Rank 0 gets the sums of all.
void gather_sums(WrittenSums& sums, Comm& comm);
void gather_sums(PartSums& sums, Comm& comm);

// Lists all files in `folder`; those of tensors as `summed` does. To be called when everything else is
// written.
void write_manifest(const std::string& folder, std::vector<ManifestFile> summed, bool durable);

}  // namespace mckpt
