// Whether the files of a folder are those that its manifest lists.
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Folder;
struct Finding;
struct Manifest;

// What is not there, has another size, or is beside the tensors and has another SHA-256. Reads no tensors.
std::vector<Finding> check_listed_files(const Folder& folder, const Manifest& manifest);

// What of the bytes between the tensors' data is not as it was written, in files that have their size.
std::vector<Finding> check_frames(const Folder& folder, const Manifest& manifest, int threads);

// A warning for each file that is not listed.
std::vector<Finding> unlisted_files(const Folder& folder, const Manifest& manifest);

// What a conversion asks before it takes anything from the folder at `path`, or the file: throws the first of
// the files there that are not as listed, the headers of safetensors files too, and what read_manifest()
// throws. Nothing where there is no manifest.
void require_listed_files(const std::string& path);

}  // namespace mckpt::impl
