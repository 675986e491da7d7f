// Turns what io/verify/manifest_check.h finds into a check of the report. A manifest that describes more than
// half of its files wrongly was most likely copied from another folder; one finding in front of the others
// says so, because the user then has to remove one file and not to repair many.
#include "io/verify/manifest_findings.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "io/verify/manifest_check.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

// Adds that finding. A list of one file says nothing about folders.
void tell_other_folder(i64 files, std::vector<Finding>& found) {
  i64 wrong = std::ranges::count(found, false, &Finding::warning);
  if (files < 2 || 2 * wrong <= files) return;
  found.insert(found.begin(), {.code = Code::kBadManifest,
                               .file = std::string(kManifestName),
                               .message = cat("the manifest describes another folder: ", wrong, " of the ",
                                              files, " files that it lists are not the files here"),
                               .help = "remove the manifest, or copy the one that belongs to this folder"});
}

// The findings by the manifest of one folder.
struct Looked {
  bool there = false;  // there is a manifest; it may list no file
  bool both = false;   // sides of a comparison have one
  i64 files = 0;       // that are listed; 1 if the manifest cannot be read
  std::vector<Finding> found;
};

// The findings of `look` in the folder, by its manifest; nothing if the folder has no manifest.
template <typename Look>
Looked look_by_manifest(const std::string& path, const OpenOptions& opening, Look&& look) {
  Looked out;
  if (!has_manifest(path, opening)) return out;
  Folder folder(path, opening);
  out.there = true, out.files = 1;
  try {
    std::optional<Manifest> manifest = read_manifest(folder);
    if (!manifest) return {};
    out.files = std::ssize(manifest->files);
    out.found = look(folder, *manifest);
    tell_other_folder(out.files, out.found);
  } catch (const Error& e) {
    out.found.push_back(to_finding(e));
    out.found.back().file = kManifestName;
  }
  return out;
}

// Adds the check "manifest" with these findings, if there is a manifest. Returns whether everything is as
// listed; warnings do not count.
bool add_check(Looked looked, VerifyReport& report) {
  if (!looked.there) return true;
  Check::Status status = status_of(looked.found);
  report.add({"manifest", status, looked.files, looked.both ? "files, both" : "files"},
             std::move(looked.found));
  return status != Check::Status::kFail;
}

// Everything that the list says of the folder, except the data of tensors.
std::vector<Finding> unlike_listed(const Folder& folder, const Manifest& manifest, int threads) {
  std::vector<Finding> found = check_listed_files(folder, manifest);
  std::ranges::move(check_frames(folder, manifest, threads), std::back_inserter(found));
  std::ranges::move(unlisted_files(folder, manifest), std::back_inserter(found));
  return found;
}

}  // namespace

void check_manifest(const Store& store, int threads, NameSet<std::string>& judged, VerifyReport& report) {
  if (has_manifest(store.root(), store.opening())) judged.emplace(kManifestName);
  NameSet<std::string> read;  // whose tensors are compared with their sums elsewhere
  for (const StoreFile& f : store.files()) read.insert(f.path);
  add_check(look_by_manifest(store.root(), store.opening(),
                             [&](const Folder& folder, const Manifest& manifest) {
                               for (const ManifestFile& f : manifest.files) judged.insert(f.name);
                               std::vector<Finding> found = unlike_listed(folder, manifest, threads);
                               std::ranges::move(check_data(folder, manifest, read, threads),
                                                 std::back_inserter(found));
                               return found;
                             }),
            report);
}

void check_manifest_of_folder(const std::string& path, const OpenOptions& opening, int threads,
                              VerifyReport& report) {
  NameSet<std::string> listed;
  if (has_manifest(path, opening)) listed.emplace(kManifestName);
  add_check(look_by_manifest(path, opening,
                             [&](const Folder& folder, const Manifest& manifest) {
                               for (const ManifestFile& f : manifest.files) listed.insert(f.name);
                               std::vector<Finding> found = unlike_listed(folder, manifest, threads);
                               std::ranges::move(check_data(folder, manifest, {}, threads),
                                                 std::back_inserter(found));
                               return found;
                             }),
            report);
  std::erase_if(report.unread, [&](const NotRead& u) { return listed.contains(u.path); });
}

bool check_manifests(const Store& there, const Store& source, int threads, VerifyReport& report) {
  auto look = [&](const Folder& folder, const Manifest& manifest) {
    return unlike_listed(folder, manifest, threads);
  };
  Looked mine = look_by_manifest(there.root(), there.opening(), look),
         other = look_by_manifest(source.root(), source.opening(), look);
  for (Finding& f : other.found) {
    f.file = cat(source.root(), "/", f.file);
    mine.found.push_back(std::move(f));
  }
  mine.both = mine.there && other.there;
  mine.there = mine.there || other.there, mine.files += other.files;
  return add_check(std::move(mine), report);
}

}  // namespace mckpt::impl
