// integrity.json, which Megatron can write beside the data of a torch_dist checkpoint:
//
//   {"algorithm": "sha256", "files": {"__0_0.distcp": "<64 hex digits>", ...}}
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;
struct Finding;

// Whether there is such a file, which says which data file is which.
bool has_integrity(const Folder& folder);

// Hashes every file that it lists, reading all of them, and reports those that differ or are missing.
// Returns nothing when there is no such file.
std::vector<Finding> check_integrity(const Folder& folder);

}  // namespace mckpt::impl
