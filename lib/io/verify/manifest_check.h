// Whether the files of a folder are those that its manifest lists. The comparisons, and their costs:
//
//   check_listed_files   presence and size of every file, SHA-256 of files without tensors      small files
//   check_frames         rest_crc32 of files with tensors: headers, what is between the data    headers
//   check_data           the sums of tensors, in files that no reader of tensors looks at        all data
//   unlisted_files       names that the manifest does not have                                  no reads
//
// The data of tensors that are read are not compared here: `verify` compares them by their own sums, and a
// conversion as it reads them (io/copy/read_sums.h).
#pragma once

#include <string>
#include <vector>

#include "core/base/name_hash.h"

namespace mckpt::impl {

class Folder;
struct Finding;
struct Manifest;
struct OpenOptions;

// A problem for each listed file that does not exist, has another size, or (a file without tensors) has
// another SHA-256, or cannot be read. Reads no data of tensors.
std::vector<Finding> check_listed_files(const Folder& folder, const Manifest& manifest);

// A problem for each file with tensors whose bytes around the data have another sum. Files of another size
// are left to check_listed_files().
std::vector<Finding> check_frames(const Folder& folder, const Manifest& manifest, int threads);

// A problem for each file with tensors, but those in `except`, whose data have other sums: of folders that
// are opened as something else than what was written. Reads all data.
std::vector<Finding> check_data(const Folder& folder, const Manifest& manifest,
                                const NameSet<std::string>& except, int threads);

// A warning for each file in the folder that is not listed; marks of staging are not files of the result.
std::vector<Finding> unlisted_files(const Folder& folder, const Manifest& manifest);

// The check before a conversion reads the folder, or the file, at `path`: throws an error about the first
// file that is not as listed, with the number of such files; headers of safetensors files are compared as
// well. Throws what read_manifest() throws. Does nothing if there is no manifest.
void require_listed_files(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
