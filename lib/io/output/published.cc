// Writes and judges the first line of .plan (io/output/staging_marks.h).
#include "io/output/published.h"

#include <sys/stat.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/file/file.h"
#include "io/file/place.h"
#include "io/listing/manifest.h"
#include "io/output/staging_marks.h"
#include "io/output/unfinished.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kComplete = "complete ";

bool is_file(const std::string& path, i64 bytes = -1) {
  struct stat st;
  return ::lstat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && (bytes < 0 || st.st_size == bytes);
}

std::string manifest_path(const std::string& folder) { return cat(folder, "/", kManifestName); }

std::string complete_text(const std::string& folder, std::string_view plan) {
  return cat(kComplete, folder_identity(folder), is_file(manifest_path(folder)) ? " listed\n" : " unlisted\n",
             plan);
}

// The last line of a manifest seals it, so that one that was cut lists nothing.
bool all_listed(const std::string& folder) {
  InputFile file(manifest_path(folder));
  const std::vector<u8> text = file.read(0, file.size());
  const Manifest manifest = parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()});
  return std::ranges::all_of(manifest.files, [&](const ManifestFile& listed) {
    return is_file(cat(folder, "/", listed.name), listed.bytes);
  });
}

}  // namespace

int mark_complete(const std::string& folder, std::string_view plan, bool durable) {
  return replace_plan(folder, complete_text(folder, plan), durable);
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
  if (plan.empty() || plan == kNotResumed || is_of_another_start(folder)) return false;
  if (read_mark(folder, kPlanMark) != complete_text(folder, plan)) return false;
  try {
    return !is_file(manifest_path(folder)) || all_listed(folder);
  } catch (const Error&) {
    return false;  // the manifest is damaged or cannot be read
  }
}

bool was_published_before_start(const std::string& folder) {
  const std::string text = read_mark(folder, kPlanMark);
  return text.starts_with(cat(kComplete, folder_identity(folder), " ")) && is_of_another_start(folder);
}

}  // namespace mckpt::impl
