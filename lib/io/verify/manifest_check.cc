#include "io/verify/manifest_check.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "io/verify/checksums.h"
#include "io/values/digest.h"
#include "io/store/findings.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/file/staging_marks.h"
#include "io/verify/manifest.h"

namespace mckpt::impl {
namespace {

constexpr const char* kHelp =
    "copy the file again from its source; where it was changed on purpose, or mckpt_manifest.json was copied "
    "from "
    "another folder, remove mckpt_manifest.json";

std::optional<Finding> fault(const Folder& folder, const ManifestFile& listed) {
  auto finding = [&](std::string message, Code code = Code::kBadManifest) {
    return Finding{.code = code, .file = listed.name, .message = std::move(message), .help = kHelp};
  };
  std::optional<i64> bytes = folder.file_bytes(listed.name);
  // Without a file of tensors it is another folder's list, or the folder is of no use.
  if (!bytes)
    return finding("is missing, but mckpt_manifest.json lists it",
                   listed.sha256.empty() ? Code::kBadManifest : Code::kIncomplete);
  if (*bytes != listed.bytes)
    return finding(cat("has ", *bytes, " bytes, but ", listed.bytes, " in mckpt_manifest.json"));
  if (listed.sha256.empty()) return std::nullopt;
  std::string found = sha256_of(folder.open_file(listed.name));
  if (found == listed.sha256) return std::nullopt;
  return finding(cat("is not the file that mckpt wrote: SHA-256 ", found, ", in mckpt_manifest.json ",
                     escaped(listed.sha256, 80)));
}

// What cannot be read is a finding as well.
std::optional<Finding> readable_fault(const Folder& folder, const ManifestFile& listed) {
  try {
    return fault(folder, listed);
  } catch (const Error& e) {
    Finding f = to_finding(e);
    f.file = listed.name;
    return f;
  }
}

u32 sum_of_frames(const InputFile& file, const ManifestFile& listed) {
  u32 sum = 0;
  i64 at = 0;
  for (const ManifestSum& data : listed.sums) {
    if (at < data.offset) sum = sum_bytes(sum, file, at, data.offset);
    at = data.offset + data.bytes;
  }
  return sum_bytes(sum, file, at, listed.bytes);
}

}  // namespace

std::vector<Finding> check_listed_files(const Folder& folder, const Manifest& manifest) {
  Findings findings;
  for (const ManifestFile& listed : manifest.files)
    if (std::optional<Finding> f = readable_fault(folder, listed)) findings.add(std::move(*f));
  return findings.take();
}

std::vector<Finding> check_frames(const Folder& folder, const Manifest& manifest, int threads) {
  PlacedFindings findings;
  parallel_for(std::ssize(manifest.files), threads, [&](int, i64 i) {
    const ManifestFile& listed = manifest.files[static_cast<std::size_t>(i)];
    if (!listed.sha256.empty() || folder.file_bytes(listed.name) != listed.bytes) return;
    try {
      if (sum_of_frames(folder.open_file(listed.name), listed) == listed.rest_crc32) return;
      findings.add(i,
                   {.code = Code::kBadManifest,
                    .file = listed.name,
                    .message = "the bytes around its tensors' data are not those that mckpt wrote (CRC-32)",
                    .help = kHelp});
    } catch (const Error& e) {
      Finding f = to_finding(e);
      f.file = listed.name;
      findings.add(i, std::move(f));
    }
  });
  return findings.take();
}

std::vector<Finding> unlisted_files(const Folder& folder, const Manifest& manifest) {
  Findings findings;
  for (const std::string& name : files_of(folder, &manifest))
    if (name != kManifestName && !is_staging_mark(name) && !manifest.find(name))
      findings.add({.code = Code::kNotListed,
                    .file = name,
                    .message = "is not in mckpt_manifest.json: nothing says whether it is whole",
                    .warning = true});
  return findings.take();
}

void require_listed_files(const std::string& path) {
  ListedPlace place = listed_place(path);
  if (!has_manifest(place.folder)) return;
  Folder folder(place.folder);
  Manifest manifest = read_manifest(folder).value();
  if (!place.name.empty())
    std::erase_if(manifest.files, [&](const ManifestFile& f) { return f.name != place.name; });
  std::vector<Finding> found = check_listed_files(folder, manifest);
  // A side file that is not there is not taken either.
  std::erase_if(found, [](const Finding& f) { return f.code == Code::kIncomplete; });
  // Nothing else sums the headers of safetensors files; what frames a record of a .distcp file has a sum
  // inside, which is compared when the record is read.
  std::erase_if(manifest.files, [](const ManifestFile& f) { return !f.name.ends_with(".safetensors"); });
  std::ranges::move(check_frames(folder, manifest, 1), std::back_inserter(found));
  if (found.empty()) return;
  Error e(found[0].code, cat(escaped(found[0].file), " ", found[0].message));
  if (found.size() > 1) e.note(cat(found.size(), " files are not as mckpt_manifest.json lists them"));
  throw e.file(cat(place.folder, "/", found[0].file)).help(found[0].help);
}

}  // namespace mckpt::impl
