// The one config that a result has: without quantization_config, or with another one.
#include "hf/quantized/assets.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/notes.h"
#include "hf/quantized/config.h"
#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"

namespace mckpt::impl {

bool leave_out_quantization(SideFiles& files) {
  bool any =
      std::erase_if(files.copies, [](const SideFile& f) { return f.name == "hf_quant_config.json"; }) > 0;
  auto config = std::ranges::find(files.copies, "config.json", &SideFile::name);
  if (config == files.copies.end()) return any;
  Folder folder(files.from, files.opening);
  std::string text = json_text(folder.open_file(config->name));
  with_file(cat(files.from, "/", config->name), [&] { check_json(text, JsonNumbers::kPython); });
  std::string plain = without_quantization(text);
  if (plain == text) return any;
  files.texts.emplace(config->name, std::move(plain));
  files.copies.erase(config);
  return true;
}

void note_config_without_quantization(Notes& notes) {
  notes.note("config  without quantization_config, because the tensors are not quantised");
}

}  // namespace mckpt::impl
