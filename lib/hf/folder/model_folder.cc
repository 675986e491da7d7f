// A config of an unknown model is not an error here: the tensors need no table, and config.json is copied as
// it is.
#include "hf/folder/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "hf/adapter/adapted_store.h"
#include "hf/config/config_says.h"
#include "hf/folder/amended_model.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_class.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kConfig = "config.json";
constexpr i64 kMaxConfigBytes = 16 << 20;

bool has_config(const std::string& path, const OpenOptions& opening) {
  return is_folder(path, opening) && is_file(cat(path, "/", kConfig), opening);
}

std::string folder_around(const std::string& path) {
  const std::filesystem::path inner(path);  // "ckpt/" has no file name
  std::string outer = (inner.has_filename() ? inner : inner.parent_path()).parent_path().string();
  return outer.empty() ? "." : outer;
}

void read_config(ModelFolder& out, const OpenOptions& opening) {
  with_file(cat(out.path, "/", kConfig), [&] {
    std::string text = json_text(Folder(out.path, opening).open_file(kConfig), kMaxConfigBytes);
    JsonValue json = parse_config(text);
    ConfigSays says = config_says(json);
    out.model_type = std::move(says.model_type), out.architecture = std::move(says.architecture);
    out.tied = says.tied;
    out.labels = labels_of(json);
    out.numbers = tower_numbers(json);
    out.config_numbers = config_numbers(json);
    try {
      out.config = read_hf_config(text, true);
      if (!out.tied || out.config->family) out.tied = out.config->model.tied;
    } catch (const Error& e) {
      if (e.code() == Code::kBadJson) throw;
      out.not_read = e;
      out.not_read->default_file(cat(out.path, "/", kConfig));
    }
  });
}

}  // namespace

SideFiles ModelFolder::files(const OpenOptions& opening) const {
  SideFiles files = of_a_run ? plan_known_assets(path, opening) : plan_assets(path, "", opening);
  amend(files, amended);
  return files;
}

std::string fault_of_config(const ModelFolder& folder) {
  if (!folder.not_read || folder.not_read->code() != Code::kBadConfig) return "";
  return cat(escaped(folder.not_read->file(), 4096), ": ", folder.not_read->message(), " (",
             code_name(folder.not_read->code()), "), so no tensor is judged by it");
}

ModelFolder model_folder_beside(const Store& store, const std::string& source) {
  ModelFolder out;
  std::string inner = is_folder(store.root(), store.opening()) ? store.root() : folder_around(store.root());
  for (const std::string& place : {inner, source, folder_around(inner)}) {
    if (!is_folder(place, store.opening())) continue;
    out.around = place != inner && place != source;
    for (std::string_view apart :
         {std::string_view("huggingface"), std::string_view("model/huggingface"), kAssetsFolder})
      if (std::string path = cat(place, "/", apart); out.path.empty() && has_config(path, store.opening()))
        out.path = path;
    if (!out.path.empty()) return out;
    if (!has_config(place, store.opening())) continue;
    out.path = place;
    out.of_a_run = format_family(store.format()) != FormatFamily::kSafetensors;
    return out;
  }
  return {};
}

void require_config(const std::string& assets, const OpenOptions& opening) {
  if (!Folder(assets, opening).has_file(kConfig))
    throw Error(Code::kNotFound,
                "config.json was not found, and without it the folder is no Hugging Face model")
        .file(assets)
        .help(
            "`assets` names a folder with config.json, and with the tokenizer if the result is to have one");
}

ModelFolder find_model_folder(const Store& store, const std::string& source,
                              const std::optional<std::string>& assets) {
  ModelFolder out;
  if (!assets) {
    out = model_folder_beside(store, source);
  } else {
    require_config(*assets, store.opening());
    out.path = *assets;
  }
  if (!out.path.empty()) read_config(out, store.opening());
  if (const AdaptedStore* view = adapted_view(store)) {
    out.amended = view->amended();
    if (out.config) amend(*out.config, out.amended);
    if (out.amended.untied) out.tied = false;
  }
  return out;
}

}  // namespace mckpt::impl
