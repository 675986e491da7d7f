// integrity.json, which Megatron can write beside the data of a checkpoint:
//
//   {"algorithm": "sha256", "files": {"__0_0.distcp": "<64 hex digits>", ...}}
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;
struct Finding;

// Compares every file that it lists; reads all of them. Nothing when there is no such file.
std::vector<Finding> check_integrity(const Folder& folder);

}  // namespace mckpt::impl
