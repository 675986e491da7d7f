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
  auto has = [&](std::size_t at, std::string_view key) { return JsonText(text).find(at, key).end > 0; };
  // Where the text model's entries are; 0: at the top. A release may leave an entry out that has its default.
  auto text_part = [&] {
    std::size_t part = 0;
    return JsonText(text).find(0, "text_config", &part).end > 0 && text[part] == '{' ? part : 0;
  };
  if (how.vocab) {
    const bool above = !has(text_part(), "vocab_size") && has(0, "vocab_size");
    text = with_member(text, above ? 0 : text_part(), "vocab_size", cat(*how.vocab));
  }
  // Classes of models with images read it in either place.
  if (how.untied) {
    text = with_member(text, 0, "tie_word_embeddings", "false");
    if (text_part() > 0) text = with_member(text, text_part(), "tie_word_embeddings", "false");
  }
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
