// A file is a copy, which is not in memory, or a text.
#include "hf/config/config_file.h"

#include <algorithm>

#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"

namespace mckpt::impl {
namespace {

constexpr const char* kConfigName = "config.json";

}  // namespace

std::string config_text(const SideFiles& files) {
  if (auto made = files.texts.find(kConfigName); made != files.texts.end()) return made->second;
  auto config = std::ranges::find(files.copies, kConfigName, &SideFile::name);
  if (config == files.copies.end()) return "";
  return json_text(Folder(files.from, files.opening).open_file(config->name));
}

bool set_config_text(SideFiles& files, std::string text) {
  if (config_text(files) == text) return false;
  std::erase_if(files.copies, [](const SideFile& file) { return file.name == kConfigName; });
  files.texts.insert_or_assign(kConfigName, std::move(text));
  return true;
}

}  // namespace mckpt::impl
