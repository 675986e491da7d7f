// Reads one entry of config.json, with the checks that transformers makes of it.
#include "io/store/names/hf_weights.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/file_names.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/json/json_text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kConfigJson = "config.json";
constexpr std::string_view kAdapterFile = "adapter_model.bin";  // the one other name that transformers takes

// The entry, checked as a name; "" if there is none.
std::string weights_entry(const JsonValue& config) {
  const JsonValue* entry = config.is(JsonType::kObject) ? config.find(kWeightsEntry) : nullptr;
  if (!entry || entry->is(JsonType::kNull)) return "";
  const std::string name = entry->is(JsonType::kString) ? entry->string(kWeightsEntry) : "";
  if (name == kAdapterFile) return "";
  if (!name.ends_with(".safetensors") && !name.ends_with(".safetensors.index.json"))
    throw Error(Code::kBadConfig, cat("'", kWeightsEntry, "' names no file of weights"))
        .expected("a name that ends with .safetensors or .safetensors.index.json")
        .found(entry->is(JsonType::kString) ? cat("'", escaped(name), "'") : entry->summary())
        .help("name the file of the model there, or remove the entry from config.json");
  check_inside_name(name);
  return name;
}

}  // namespace

std::string named_by_config(const Folder& folder) {
  if (!folder.has_file(kConfigJson)) return "";
  JsonValue config;
  try {
    config = parse_config(json_text(folder.open_file(kConfigJson)));
  } catch (const Error& e) {
    if (e.code() != Code::kBadJson) throw;
    return "";
  }
  return with_file(cat(folder.path(), "/", kConfigJson), [&] {
    std::string name = weights_entry(config);
    if (!name.empty() && !folder.has_file(name))
      throw Error(Code::kShardMissing, cat("'", kWeightsEntry, "' names a file that is not there"))
          .found(escaped(name))
          .note("transformers loads this file and no other")
          .help("fetch or copy the file again, or remove the entry from config.json if it is out of date");
    return name;
  });
}

bool has_weights_entry(const Folder& folder) {
  return folder.has_file(kConfigJson) && !weights_named_in(json_text(folder.open_file(kConfigJson))).empty();
}

std::string chosen_weights(const Folder& folder) {
  const ModelFiles chosen = folder.opening().model_files;
  const auto is_index = [](const FolderEntry& e) {
    return !e.folder && e.name.ends_with(".safetensors.index.json");
  };
  if (chosen == ModelFiles::kSingle && folder.has_file(kHfWeights[0])) return "";
  if (chosen == ModelFiles::kShards && std::ranges::any_of(folder.entries(), is_index)) return "";
  return named_by_config(folder);
}

std::string loaded_by_transformers(const Folder& folder) {
  if (std::string name = named_by_config(folder); !name.empty()) return name;
  return std::string(first_weights(file_names(folder)));
}

std::string weights_named_in(std::string_view config_json) {
  try {
    const JsonValue config = parse_config(config_json);
    const JsonValue* entry = config.is(JsonType::kObject) ? config.find(kWeightsEntry) : nullptr;
    return entry && entry->is(JsonType::kString) ? entry->string(kWeightsEntry) : "";
  } catch (const Error& e) {
    if (e.code() != Code::kBadJson) throw;
    return "";
  }
}

std::string without_weights_entry(std::string_view config_json) {
  return without_member(config_json, 0, kWeightsEntry);
}

}  // namespace mckpt::impl
