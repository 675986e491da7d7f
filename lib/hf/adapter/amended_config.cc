// Entries of the text model are in `text_config` where a model has images, too.
#include "hf/adapter/amended_config.h"

#include <algorithm>

#include "core/base/text.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/json/json_file.h"
#include "io/json/json_text.h"

namespace mckpt::impl {

std::string amended(std::string_view config_json, const AmendedConfig& how) {
  std::string text(config_json);
  auto set = [&](std::string_view key, const std::string& value) {
    std::size_t part = 0, at = 0;
    const bool nested = JsonText(text).find(0, "text_config", &part).end > 0 && text[part] == '{';
    if (nested && JsonText(text).find(part, key).end > 0) at = part;
    text = with_member(text, at, key, value);
  };
  if (how.vocab) set("vocab_size", cat(*how.vocab));
  // Some configs of models with images say it in both places.
  if (how.untied && JsonText(text).find(0, "tie_word_embeddings").end > 0)
    text = with_member(text, 0, "tie_word_embeddings", "false");
  if (how.untied) set("tie_word_embeddings", "false");
  return text;
}

void amend(SideFiles& files, const AmendedConfig& how) {
  auto config = std::ranges::find(files.copies, "config.json", &SideFile::name);
  if (!how.any() || config == files.copies.end()) return;
  Folder folder(files.from, files.opening);
  files.texts.emplace(config->name, amended(json_text(folder.open_file(config->name)), how));
  files.copies.erase(config);
}

}  // namespace mckpt::impl
