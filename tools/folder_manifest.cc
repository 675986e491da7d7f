#include "tools/folder_manifest.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "io/folder.h"
#include "io/manifest_check.h"
#include "io/staged_folder.h"

namespace mckpt {
namespace {

template <typename T>
void gather(std::vector<T>& mine, Comm& comm) {
  Gathered all = comm.all_gather_v(std::as_bytes(std::span(mine)));
  if (comm.rank() != 0) return;
  mine.resize(all.bytes.size() / sizeof(T));
  std::memcpy(mine.data(), all.bytes.data(), all.bytes.size());
}

Check::Status status_of(const std::vector<Finding>& found) {
  if (found.empty()) return Check::Status::kPass;
  return std::ranges::all_of(found, &Finding::warning) ? Check::Status::kWarn : Check::Status::kFail;
}

// Files of another folder have other bytes, all but a few.
void tell_other_folder(i64 files, std::vector<Finding>& found) {
  i64 wrong = std::ranges::count(found, false, &Finding::warning);
  if (files < 2 || 2 * wrong <= files) return;
  found.insert(found.begin(), {.code = Code::kBadManifest,
                               .file = std::string(kManifestName),
                               .message = cat("describes another folder: ", wrong, " of the ", files,
                                              " files that it lists are not these"),
                               .help = "remove it, or copy the one that belongs to this folder"});
}

// What `look` finds in the store's folder, by its manifest. True: everything is as listed.
template <typename Look>
bool add_check(const Store& store, VerifyReport& report, Look&& look) {
  if (!has_manifest(store.root())) return true;
  Folder folder(store.root());
  std::vector<Finding> found;
  i64 files = 1;
  try {
    Manifest manifest = read_manifest(folder).value();
    files = std::ssize(manifest.files);
    found = look(folder, manifest);
    tell_other_folder(files, found);
  } catch (const Error& e) {
    found.push_back(to_finding(e));
    found.back().file = kManifestName;
  }
  Check::Status status = status_of(found);
  report.add({"manifest", status, files, "files"}, std::move(found));
  return status != Check::Status::kFail;
}

}  // namespace

void gather_sums(WrittenSums& sums, Comm& comm) {
  if (comm.size() == 1) return;
  gather(sums.data(), comm);
  gather(sums.stretches(), comm);
}

void gather_sums(PartSums& sums, Comm& comm) {
  if (comm.size() > 1) gather(sums.parts(), comm);
}

void write_manifest(const std::string& folder, std::vector<ManifestFile> summed, bool durable) {
  std::string text = make_manifest(folder, std::move(summed), MCKPT_VERSION, StagedFolder::is_own).text();
  OutputFiles out(folder, {{std::string(kManifestName), std::ssize(text)}}, OutputFiles::Begin::kReplace);
  out.write(0, 0, std::span(reinterpret_cast<const u8*>(text.data()), text.size()));
  if (durable) out.sync();
}

void check_manifest(const Store& store, int threads, VerifyReport& report) {
  add_check(store, report, [&](const Folder& folder, const Manifest& manifest) {
    std::vector<Finding> found = check_listed_files(folder, manifest);
    std::ranges::move(check_frames(folder, manifest, threads), std::back_inserter(found));
    std::ranges::move(unlisted_files(folder, manifest), std::back_inserter(found));
    return found;
  });
}

bool check_listed(const Store& store, const std::string& side, VerifyReport& report) {
  return add_check(store, report, [&](const Folder& folder, const Manifest& manifest) {
    std::vector<Finding> found = check_listed_files(folder, manifest);
    for (Finding& f : found)
      if (!side.empty()) f.file = cat(side, "/", f.file);
    return found;
  });
}

}  // namespace mckpt
