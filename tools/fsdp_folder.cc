#include "tools/fsdp_folder.h"

#include <charconv>

#include "io/sha256.h"
#include "io/staged_file.h"

namespace mckpt {
namespace {

constexpr const char* kTracker = "latest_checkpointed_iteration.txt";
constexpr const char* kMetadata = ".metadata";
constexpr std::string_view kPrefix = "iter_";

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
  std::string to = cat(folder, "/", kAssetsFolder);
  Folder from(assets_from);
  copy_assets(from, hf_assets(from), to, durable_);
  auto write_text = [&](const std::string& in, std::string_view name, const auto& fill) {
    OutputFiles file(in, {{std::string(name), 0}}, OutputFiles::Begin::kGoOn);
    i64 at = 0;
    fill([&](std::string_view text) {
      file.write(0, at, as_bytes(text));
      at += std::ssize(text);
    });
    if (durable_) file.sync();
  };
  write_text(to, kTensorTableName, [&](const auto& take) { take(tensor_table); });
  // Last, as torch writes it: a folder with .metadata is whole.
  write_text(folder, kMetadata, [&](const auto& take) { layout.write_metadata(take); });
}

void FsdpFolder::write_tracker() const {
  std::string text = iteration_ ? cat(*iteration_) : "release";
  StagedFile staged(cat(target_, "/", kTracker), {.durable = durable_, .replace = true});
  OutputFiles out(staged.folder(), {{staged.name(), std::ssize(text)}});
  out.write(0, 0, as_bytes(text));
  staged.publish(out);
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

MetadataSummary summarize_metadata(const DcpLayout& layout) {
  MetadataSummary out;
  Sha256 sha;
  layout.write_metadata([&](std::string_view text) {
    out.bytes += std::ssize(text);
    sha.update(as_bytes(text));
  });
  out.sha256 = sha.hex_digest();
  return out;
}

}  // namespace mckpt
