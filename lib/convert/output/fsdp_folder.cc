// The names in an iteration's folder. Folders are `release` or `iter_` with the number in at least 7 digits;
// the tracker file contains `release` or the number. Files beside the data that describe the old data files
// (hashes, manifest, .metadata) are never copied.
#include "convert/output/fsdp_folder.h"

#include <fstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/args.h"
#include "io/file/folder.h"
#include "io/listing/manifest.h"
#include "io/output/output_rules.h"
#include "io/output/staging_marks.h"
#include "io/store/names/dcp_names.h"
#include "io/store/names/iteration_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Files of torch_dist: the mark of a complete checkpoint, and the hashes of all files.
constexpr std::string_view kMarker = "metadata.json", kHashes = "integrity.json";

}  // namespace

void check_iteration(std::optional<i64> iteration) {
  if (iteration && (*iteration <= 0 || *iteration > 9'999'999))
    throw Error(Code::kUsage, "`iteration` is a number from 1 to 9999999: Megatron takes 0 for no checkpoint")
        .found(*iteration);
}

namespace {

// "ckpt//" and "ckpt" are "ckpt/"; "/" stays.
std::string with_slash(std::string folder) {
  while (folder.ends_with('/')) folder.pop_back();
  return folder + "/";
}

}  // namespace

FsdpFolder::FsdpFolder(const std::string& target, std::optional<i64> iteration)
    : path_(cat(with_slash(target), iteration_folder(iteration))),
      tracker_{cat(with_slash(target), kTrackerName),
               iteration ? cat(*iteration) : std::string(kReleaseName)},
      iteration_(iteration) {
  refuse_empty_path(target, "the output");
}

FileNames FsdpFolder::Beside::names() const {
  FileNames names;
  for (const std::string& name : files.names()) names.insert(name);
  for (const std::string& name : assets.names()) names.insert(cat(kAssetsFolder, "/", name));
  return names;
}

SideFiles files_beside(const Store& source, const ChangedFiles& changed) {
  SideFiles out{.from = source.root(), .opening = source.opening()};
  Folder from(source.root(), source.opening());
  for (const FolderEntry& e : from.entries()) {
    bool data = is_dcp_name(e.name);
    bool sums = e.name == kHashes || e.name == kMarker || e.name == kManifestName || is_staging_mark(e.name);
    if (e.folder || data || sums) continue;
    if (auto text = changed.find(e.name); text != changed.end())
      out.texts.insert(*text);
    else
      out.add_copy(from, e.name);
  }
  return out;
}

SideFiles object_files(const Store& source) {
  SideFiles out{.from = source.root(), .opening = source.opening()};
  Folder from(source.root(), source.opening());
  for (const Object& o : source.objects())
    if (is_file(source, o)) out.add_copy(from, o.name);
  if (source.driver().dialect == DcpDialect::kTorchDist && from.has_file(kMarker))
    out.add_copy(from, std::string(kMarker));
  return out;
}

FsdpFolder::Beside all_beside(const Store& source, const ChangedFiles& changed) {
  FsdpFolder::Beside out{files_beside(source, changed),
                         {.from = cat(source.root(), "/", kAssetsFolder), .opening = source.opening()}};
  Folder from(source.root(), source.opening());
  for (const FolderEntry& e : from.entries()) {
    if (!e.folder && e.name == kMarker) out.files.add_copy(from, e.name);
    if (!e.folder || e.name != kAssetsFolder) continue;
    Folder assets(from.inside(kAssetsFolder), source.opening());
    for (const std::string& name : hf_assets(assets)) out.assets.add_copy(assets, name);
    if (std::string table(kTensorTableName); assets.has_file(table)) out.assets.add_copy(assets, table);
  }
  return out;
}

std::vector<std::string> folders_left_behind(const Store& source) {
  std::vector<std::string> names;
  Folder from(source.root(), source.opening());
  for (const FolderEntry& e : from.entries())
    if (e.folder && e.name != kAssetsFolder) names.push_back(e.name);
  return names;
}

std::optional<i64> FsdpFolder::later_tracked() const {
  std::ifstream file(tracker_.path);
  i64 tracked = 0;
  // "release" is not a number.
  if (!(file >> tracked) || tracked <= iteration_.value_or(0)) return std::nullopt;
  return tracked;
}

std::optional<i64> iteration_of(std::string_view folder) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  std::string_view name = folder.substr(folder.rfind('/') + 1);
  std::optional<i64> number = iteration_number(name);
  return number && *number > 0 && *number <= 9'999'999 ? number : std::nullopt;
}

}  // namespace mckpt::impl
