// A path is found in a text by its first characters, at the beginning of a word.
#include "api/stable_paths.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/store/open/not_found.h"

namespace mckpt::impl {
namespace {

// "": it is not known.
std::string current_folder() {
  std::error_code fault;
  const std::string folder = std::filesystem::current_path(fault).string();
  return fault ? "" : cat(folder, folder.ends_with('/') ? "" : "/");
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool in_path(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("/._-~+@%").find(c) != std::string_view::npos;
}

// True if the text begins with one of the paths, or with a path in one of them.
bool begins_with(std::string_view text, const std::vector<std::string>& paths) {
  return std::ranges::any_of(paths, [&](const std::string& path) {
    if (!text.starts_with(path)) return false;
    const std::string_view rest = text.substr(path.size());
    return rest.empty() || rest[0] == '/' || !in_path(rest[0]);
  });
}

}  // namespace

void StablePaths::keep(std::string& path) {
  if (path.empty()) return;
  if (path.starts_with('/')) return absolute_.push_back(without_slashes(path));
  if (folder_.empty()) folder_ = current_folder();
  if (folder_.empty()) return;
  // In the root folder every text with a slash in front would be a path.
  relative_.push_back(folder_ == "/" ? folder_ + path.substr(0, path.find('/')) : without_slashes(folder_));
  path.insert(0, folder_);
}

void StablePaths::Fields::field(const Field& field, FieldValue value) {
  if (path_kind(field.value) == PathKind::kNone) return;
  if (auto* text = std::get_if<std::string*>(&value)) paths_.keep(**text);
  if (auto* text = std::get_if<std::optional<std::string>*>(&value); text && **text) paths_.keep(***text);
}

std::string StablePaths::as_given(std::string_view text) const {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const bool word = at == 0 || !in_path(text[at - 1]);
    if (word && begins_with(rest, absolute_)) {
      // An absolute path of the caller may begin with the folder, and is shown whole.
      const std::size_t end = std::ranges::find_if_not(rest, in_path) - rest.begin();
      out += rest.substr(0, end), at += end;
    } else if (word && begins_with(rest, relative_)) {
      const bool inside = rest.size() > folder_.size() && rest.starts_with(folder_);
      out += inside ? "" : ".";
      at += inside ? folder_.size() : folder_.size() - 1;
    } else {
      out += text[at++];
    }
  }
  return out;
}

ErrorFacts StablePaths::as_given(ErrorFacts facts) const {
  if (relative_.empty()) return facts;
  facts.file = as_given(facts.file);
  // The help about a path that leads to nothing looks at how the path begins.
  if (facts.code == code_name(Code::kNotFound))
    if (Error named = not_found(facts.file); named.message() == facts.message) facts.help = named.help();
  for (std::string* text : {&facts.message, &facts.expected, &facts.found, &facts.help})
    *text = as_given(*text);
  for (std::string& note : facts.notes) note = as_given(note);
  return facts;
}

}  // namespace mckpt::impl
