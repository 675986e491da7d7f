// Manifest: the list of the files that mckpt wrote into a folder, with their digests, so that a later reader
// can tell that a file was damaged, replaced or left out. Every writer of a folder puts one beside its files;
// no reader needs it.
//
//   {"schema": "mckpt.manifest/1", "mckpt": "0.1.0", "files": [
//   {"name": "config.json", "bytes": 654, "sha256": "<64 hex digits>"},
//   {"name": "model.safetensors", "bytes": 4096, "rest_crc32": "<8 hex digits>", "tensors": [[304, 512, "<8
//   hex digits>"], ...]}
//   ],
//   "sha256": "<of all text before this line>"}
//
// A file of tensors has a CRC-32 for the data of each of them (offset, bytes, sum), which whoever takes a
// tensor compares, and one of all its other bytes, end to end: headers and what lies between.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Folder;
class Store;

inline constexpr std::string_view kManifestName = "mckpt_manifest.json";

struct ManifestSum {
  i64 offset = 0, bytes = 0;
  u32 crc32 = 0;
};

struct ManifestFile {
  std::string name;  // relative to the folder
  i64 bytes = 0;
  std::string sha256{};             // "" of a file of tensors, which has the sums below
  u32 rest_crc32 = 0;               // of the bytes that no sum is of
  std::vector<ManifestSum> sums{};  // in the order of the file, without overlap
};

struct Manifest {
  std::string version;              // of the mckpt that wrote it
  std::vector<ManifestFile> files;  // ascending by name

  const ManifestFile* find(std::string_view name) const;
  std::string text() const;
};

// Throws kBadManifest where a byte of the text was changed or it is not such a list.
Manifest parse_manifest(std::string_view text);
// Nothing where the folder has none. Throws what parse_manifest() and reading do, with the file.
std::optional<Manifest> read_manifest(const Folder& folder);

// Whether a manifest is in the folder at `path`; false where `path` is not a folder.
bool has_manifest(const std::string& path);

// The folder whose manifest lists what is at `path`, and its name there: of a file the folder that it is in,
// of a folder itself and "".
struct ListedPlace {
  std::string folder, name;
};
ListedPlace listed_place(const std::string& path);

// The files of a folder and of the folders below it that hold a file of the manifest. Other folders are one
// name each, which ends with '/'. Without a manifest: all files of the folder and of those below.
std::vector<std::string> files_of(const Folder& folder, const Manifest* manifest);

// What the manifest of a store's folder says of the store's files.
class ManifestSums {
 public:
  ManifestSums() = default;  // says nothing
  // Throws what read_manifest() does.
  explicit ManifestSums(const Store& store);

  // The sum of the data that begin there; null: none is known.
  const ManifestSum* find(i32 file, i64 offset) const;

 private:
  std::optional<Manifest> manifest_;
  std::vector<const ManifestFile*> files_;  // by file of the store; null: it is not listed
};

}  // namespace mckpt::impl
