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

// Adds the check "manifest": the list itself, every file that it names and those that it does not. What of
// the tensors' data is not as it was is said by the check of the CRC-32 sums. No check where the folder has
// none. Adds the names of the files that it read to `judged`.
void check_manifest(const Store& store, int threads, NameSet<std::string>& judged, VerifyReport& report);

// The same for both sides of `verify --against`, without the data of tensors, which are compared. Returns
// whether all are as listed.
bool check_listed(const Store& there, const Store& source, VerifyReport& report);

}  // namespace mckpt
