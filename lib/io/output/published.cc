// Writes and judges the first line of .plan (io/output/staging_marks.h).
#include "io/output/published.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/crc32.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/file/retried.h"
#include "io/listing/manifest.h"
#include "io/output/staging_marks.h"
#include "io/output/unfinished.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kComplete = "complete ";

// The text of the folder's manifest; nothing without one.
std::optional<std::string> manifest_text(const std::string& folder) {
  const std::string path = cat(folder, "/", kManifestName);
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  InputFile file(path);
  std::vector<u8> bytes = file.read(0, file.size());
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string sum_of(const std::optional<std::string>& text) {
  if (!text) return "-";
  return crc32_text(crc32(0, {reinterpret_cast<const u8*>(text->data()), text->size()}));
}

std::string complete_text(const std::string& folder, std::string_view plan,
                          const std::optional<std::string>& manifest) {
  return cat(kComplete, folder_identity(folder), " ", sum_of(manifest), "\n", plan);
}

bool all_listed(const std::string& folder, const std::string& manifest) {
  return std::ranges::all_of(parse_manifest(manifest).files, [&](const ManifestFile& listed) {
    struct stat st;
    return ::lstat(cat(folder, "/", listed.name).c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
           st.st_size == listed.bytes;
  });
}

}  // namespace

int mark_complete(const std::string& folder, std::string_view plan, bool durable) {
  try {
    return replace_plan(folder, complete_text(folder, plan, manifest_text(folder)), durable);
  } catch (const Error&) {
    return EIO;  // the manifest, which has just been written, cannot be read
  }
}

int mark_begun(const std::string& folder, std::string_view plan, bool durable) {
  if (int error = replace_plan(folder, plan, durable); error != 0) return error;
  return durable ? sync_folder(folder) : 0;
}

bool says_complete(std::string_view text) { return text.starts_with(kComplete); }

std::string_view plan_of(std::string_view text) {
  if (!says_complete(text)) return text;
  const std::size_t end = text.find('\n');
  return end == text.npos ? std::string_view() : text.substr(end + 1);
}

bool is_published(const std::string& folder, const std::string& plan) {
  const std::string text = read_mark(folder, kPlanMark);
  if (plan.empty() || plan == kNotResumed || !says_complete(text) || is_of_another_start(folder))
    return false;
  try {
    const std::optional<std::string> manifest = manifest_text(folder);
    return text == complete_text(folder, plan, manifest) && (!manifest || all_listed(folder, *manifest));
  } catch (const Error&) {
    return false;  // the manifest is damaged or cannot be read
  }
}

}  // namespace mckpt::impl
