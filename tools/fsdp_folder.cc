#include "tools/fsdp_folder.h"

#include <charconv>
#include <fstream>

#include "io/run_args.h"
#include "io/staged_file.h"
#include "io/staging_marks.h"

namespace mckpt {
namespace {

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr const char* kMetadata = ".metadata";
constexpr std::string_view kPrefix = "iter_";
// Of torch_dist: the mark of a whole checkpoint, the common state of older writers, hashes of all files.
constexpr std::string_view kMarker = "metadata.json", kHashes = "integrity.json";

std::string folder_name(std::optional<i64> iteration) {
  if (!iteration) return "release";
  std::string digits = cat(*iteration);
  return cat(kPrefix, std::string(7 - std::min<std::size_t>(digits.size(), 7), '0'), digits);
}

std::span<const u8> as_bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

}  // namespace

FsdpFolder::FsdpFolder(std::string target, std::optional<i64> iteration, bool durable)
    : target_(std::move(target)),
      path_(cat(target_, "/", folder_name(iteration))),
      iteration_(iteration),
      durable_(durable) {}

void FsdpFolder::write_rest(const DcpLayout& layout, OutputFiles& out, const std::string& folder,
                            const std::string& assets_from, std::string_view tensor_table) const {
  layout.write_objects(out);
  if (!assets_from.empty()) {
    std::string to = cat(folder, "/", kAssetsFolder);
    Folder from(assets_from);
    copy_assets(from, hf_assets(from), to, durable_);
    if (!tensor_table.empty())
      write_file(to, kTensorTableName, [&](const auto& take) { take(tensor_table); });
  }
  // Last, as torch writes it: a folder with .metadata is whole.
  write_file(folder, kMetadata, [&](const auto& take) { layout.write_metadata(take); });
}

void FsdpFolder::write_file(
    const std::string& folder, std::string_view name,
    const std::function<void(const std::function<void(std::string_view)>&)>& fill) const {
  OutputFiles file(folder, {{std::string(name), 0}}, OutputFiles::Begin::kGoOn);
  i64 at = 0;
  fill([&](std::string_view text) {
    file.write(0, at, as_bytes(text));
    at += std::ssize(text);
  });
  if (durable_) file.sync();
}

void FsdpFolder::write_rest_of(const Store& source, const DcpLayout& layout, OutputFiles& out,
                               const std::string& folder, std::string_view common) const {
  layout.write_objects(out);
  Folder from(source.root());
  std::vector<HfAsset> marker;
  for (const FolderEntry& e : from.entries()) {
    if (e.folder && e.name == kAssetsFolder) {
      Folder assets(from.inside(kAssetsFolder));
      std::vector<HfAsset> all;
      for (const FolderEntry& a : assets.entries())
        if (!a.folder) all.push_back({a.name, assets.file_bytes(a.name).value_or(0)});
      copy_assets(assets, all, cat(folder, "/", kAssetsFolder), durable_);
    }
    if (!e.folder && e.name == kMarker) marker.push_back({e.name, from.file_bytes(e.name).value_or(0)});
  }
  Changed changed;
  if (!common.empty()) changed.emplace(kCommonFile, common);
  copy_beside(from, folder, changed);
  write_file(folder, kMetadata, [&](const auto& take) { layout.write_metadata(take); });
  copy_assets(from, marker, folder, durable_);
}

// All but the data, what says that they are whole, and sums of the old files.
void FsdpFolder::copy_beside(const Folder& from, const std::string& folder, const Changed& changed) const {
  std::vector<HfAsset> files;
  for (const FolderEntry& e : from.entries()) {
    bool data =
        e.name.ends_with(kMetadata) || e.name.ends_with(".distcp") || e.name == kHashes || e.name == kMarker;
    if (e.folder || data || is_staging_mark(e.name)) continue;
    if (auto text = changed.find(e.name); text != changed.end())
      write_file(folder, e.name, [&](const auto& take) { take(text->second); });
    else
      files.push_back({e.name, from.file_bytes(e.name).value_or(0)});
  }
  copy_assets(from, files, folder, durable_);
}

void FsdpFolder::write_beside(const Store& source, const std::string& folder, const Changed& changed) const {
  copy_beside(Folder(source.root()), folder, changed);
}

std::vector<std::string> folders_left_behind(const Store& source) {
  std::vector<std::string> names;
  Folder from(source.root());
  for (const FolderEntry& e : from.entries())
    if (e.folder && e.name != kAssetsFolder) names.push_back(e.name);
  return names;
}

std::string FsdpFolder::tracker_path() const { return cat(target_, "/", kTracker); }

void FsdpFolder::write_tracker() const {
  std::string text = iteration_ ? cat(*iteration_) : "release";
  StagedFile staged(tracker_path(), {.durable = durable_, .replace = true});
  OutputFiles out(staged.folder(), {{staged.name(), std::ssize(text)}});
  out.write(0, 0, as_bytes(text));
  staged.publish(out);
}

std::optional<i64> FsdpFolder::later_tracked() const {
  std::ifstream file(tracker_path());
  i64 tracked = 0;
  // "release" is no number.
  if (!(file >> tracked) || tracked <= iteration_.value_or(0)) return std::nullopt;
  return tracked;
}

std::optional<i64> iteration_of(std::string_view folder) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  std::string_view name = folder.substr(folder.rfind('/') + 1);
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  i64 number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool whole = error == std::errc() && end == name.data() + name.size();
  return whole && number > 0 && number <= 9'999'999 ? std::optional(number) : std::nullopt;
}

}  // namespace mckpt
