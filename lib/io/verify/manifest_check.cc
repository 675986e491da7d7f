// Compares a folder with its manifest. A file without tensors that does not exist is MC1302 (incomplete):
// such a folder may still be converted, and the conversion checks whether the files that it needs exist.
// Every other difference is MC1314: the file is not the one that mckpt wrote.
#include "io/verify/manifest_check.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/file/parallel.h"
#include "io/listing/listed_file.h"
#include "io/listing/manifest.h"
#include "io/listing/stretches.h"
#include "io/output/staging_marks.h"
#include "io/store/findings.h"

namespace mckpt::impl {
namespace {

constexpr const char* kHelp =
    "copy the file again from its source; if it was changed on purpose, or if mckpt_manifest.json was copied from another folder, remove mckpt_manifest.json";

// A missing file with tensors: the list belongs to another folder, or the folder cannot be used.
std::optional<Finding> fault(const Folder& folder, const ManifestFile& f) {
  const Code missing = f.sha256.empty() ? Code::kBadManifest : Code::kIncomplete;
  return unlike_listed(folder, f, {kManifestName, Code::kBadManifest, missing, kHelp});
}

// The result of a check of a listed file; a file that cannot be read is a finding as well.
std::optional<Finding> finding_of(const ManifestFile& listed,
                                  const std::function<std::optional<Finding>()>& check) {
  try {
    return check();
  } catch (const Error& e) {
    Finding f = to_finding(e);
    f.file = listed.name;
    f.message = cat("cannot be compared: ", f.message);
    return f;
  }
}

// Compares the data of the tensors in a file; the first sum that does not fit is told.
std::optional<Finding> data_fault(const Folder& folder, const ManifestFile& listed) {
  if (!listed.sha256.empty() || folder.file_bytes(listed.name) != listed.bytes) return std::nullopt;
  const InputFile file = folder.open_file(listed.name);
  for (const SummedStretch& data : listed.sums)
    if (sum_bytes(0, file, data.offset, data.end()) != data.crc32)
      return Finding{.code = Code::kBadManifest,
                     .file = listed.name,
                     .message = cat("the data of a tensor, ", counted(data.bytes, "byte"),
                                    ", are not those that mckpt wrote (CRC-32)"),
                     .help = kHelp,
                     .offset = data.offset};
  return std::nullopt;
}

// Compares the bytes around the data of a file with tensors; a file of another size is not compared.
std::optional<Finding> frame_fault(const Folder& folder, const ManifestFile& listed) {
  if (!listed.sha256.empty() || folder.file_bytes(listed.name) != listed.bytes) return std::nullopt;
  if (sum_outside(listed.sums, folder.open_file(listed.name), listed.bytes) == listed.rest_crc32)
    return std::nullopt;
  return Finding{
      .code = Code::kBadManifest,
      .file = listed.name,
      .message = "the bytes around the data of the tensors are not those that mckpt wrote (CRC-32)",
      .help = kHelp};
}

}  // namespace

std::vector<Finding> check_listed_files(const Folder& folder, const Manifest& manifest) {
  Findings findings;
  for (const ManifestFile& listed : manifest.files)
    if (std::optional<Finding> f = finding_of(listed, [&] { return fault(folder, listed); }))
      findings.add(std::move(*f));
  return findings.take();
}

std::vector<Finding> check_frames(const Folder& folder, const Manifest& manifest, int threads) {
  PlacedFindings findings;
  parallel_for(std::ssize(manifest.files), threads, [&](int, i64 i) {
    const ManifestFile& listed = manifest.files[i];
    if (std::optional<Finding> f = finding_of(listed, [&] { return frame_fault(folder, listed); }))
      findings.add(i, std::move(*f));
  });
  return findings.take();
}

std::vector<Finding> check_data(const Folder& folder, const Manifest& manifest,
                                const NameSet<std::string>& except, int threads) {
  PlacedFindings findings;
  parallel_for(std::ssize(manifest.files), threads, [&](int, i64 i) {
    const ManifestFile& listed = manifest.files[i];
    if (except.contains(listed.name)) return;
    if (std::optional<Finding> f = finding_of(listed, [&] { return data_fault(folder, listed); }))
      findings.add(i, std::move(*f));
  });
  return findings.take();
}

std::vector<Finding> unlisted_files(const Folder& folder, const Manifest& manifest) {
  Findings findings;
  for (const std::string& name : files_of(folder, &manifest))
    if (name != kManifestName && !is_staging_mark(name) && !manifest.find(name))
      findings.add({.code = Code::kNotListed,
                    .file = name,
                    .message = "the file is not in mckpt_manifest.json, so nothing says whether it is whole",
                    .warning = true});
  return findings.take();
}

void require_listed_files(const std::string& path, const OpenOptions& opening) {
  ListedPlace place = listed_place(path, opening);
  if (!has_manifest(place.folder, opening)) return;
  Folder folder(place.folder, opening);
  std::optional<Manifest> manifest = read_manifest(folder);
  if (!manifest) return;
  if (!place.name.empty())
    std::erase_if(manifest->files, [&](const ManifestFile& f) { return f.name != place.name; });
  std::vector<Finding> found = check_listed_files(folder, *manifest);
  // A side file that does not exist is not copied either.
  std::erase_if(found, [](const Finding& f) { return f.code == Code::kIncomplete; });
  // No other check sums the headers of safetensors files. The frame of a record in a .distcp file contains
  // the sum of the record, which is compared when the record is read.
  std::erase_if(manifest->files, [](const ManifestFile& f) { return !f.name.ends_with(".safetensors"); });
  std::ranges::move(check_frames(folder, *manifest, 1), std::back_inserter(found));
  if (found.empty()) return;
  Error e(found[0].code, found[0].message);
  if (found.size() > 1) e.note(cat(found.size(), " files are not as mckpt_manifest.json lists them"));
  throw e.file(cat(place.folder, "/", found[0].file)).help(found[0].help);
}

}  // namespace mckpt::impl
