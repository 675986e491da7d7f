// Manifest: the list of the files that mckpt wrote into a folder, with their digests, so that a later reader
// can tell that a file was damaged, replaced or left out. Every writer of a folder puts one beside its files;
// no reader needs it. docs/formats/manifest.md is the reference.
//
//   {"schema": "mckpt.manifest/1", "mckpt": "0.2.0", "files": [
//   {"name": "config.json", "bytes": 654, "sha256": "<64 hex digits>"},
//   {"name": "model.safetensors", "bytes": 4096, "rest_crc32": "<8 hex digits>",
//    "tensors": [[304, 512, "<8 hex digits>"], ...]}                                (one line in the file)
//   ],
//   "sha256": "<of all text before this line>"}
//
// A file with tensors has a CRC-32 for the data of each of them (offset, bytes, sum), so that a reader of one
// tensor can check that tensor alone, and one CRC-32 for all its other bytes, end to end: headers, and what
// is between the data. Every byte of the file is in exactly one of these sums.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "io/listing/row.h"

namespace mckpt::impl {

class Folder;
struct OpenOptions;

inline constexpr std::string_view kManifestName = "mckpt_manifest.json";

// The entry of a file: with `sha256`, or, if it has tensors, with `rest_crc32` and `sums`.
struct ManifestFile : ListedFile {
  u32 rest_crc32 = 0;  // of all bytes that are in none of the sums
  // The sums of the data of tensors, or of chunks of them: in the order of the file, without overlap.
  std::vector<SummedStretch> sums{};
};

// A manifest in memory: a value, made by the writer of a folder or by parse_manifest().
struct Manifest {
  std::string version;              // of the mckpt that wrote it
  std::vector<ManifestFile> files;  // ascending by name

  const ManifestFile* find(std::string_view name) const;  // null: not listed
  std::string text() const;                               // of the file; equal manifests have equal texts
};

// Throws kBadManifest if the last line does not seal the text, and what the JSON reader throws if the text is
// not such a list.
Manifest parse_manifest(std::string_view text);
// The manifest in the folder; nothing if the folder has none. Throws kBadManifest for a link that leads
// nowhere, and what parse_manifest() and reading throw, with the file.
std::optional<Manifest> read_manifest(const Folder& folder);

// Whether the folder at `path` contains the name of a manifest; false if `path` is not a folder.
bool has_manifest(const std::string& path, const OpenOptions& opening);

// Where a path may be listed: for a file, its folder and its name there; for a folder, the folder and "".
struct ListedPlace {
  std::string folder, name;
};
ListedPlace listed_place(const std::string& path, const OpenOptions& opening);

// The files of a folder and of those folders below it that contain a file of the manifest, sorted. Every
// other folder is one name, which ends with '/'. Without a manifest (null): all files in all folders below.
std::vector<std::string> files_of(const Folder& folder, const Manifest* manifest);

}  // namespace mckpt::impl
