// Reads the entries that all families have (model_type, dtype, tied embeddings, quantisation), and calls the
// family's reader for the rest. Models with vision have the language model's numbers in "text_config".
#include "hf/config/json.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "hf/config/any.h"
#include "hf/config/entry_limits.h"
#include "hf/config/fields.h"
#include "hf/config/steps.h"
#include "hf/config/usual_entries.h"
#include "hf/map_file/map_file.h"
#include "hf/quantized/config.h"
#include "io/json/json.h"
#include "mappings/family.h"
#include "mappings/map_file/map.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace {

// Notes that the config declares quantised weights. Throws kQuantized for a method that is not decoded,
// unless only shapes are wanted.
void read_quantization(const JsonValue& json, bool shapes_only, HfConfig& config) {
  const JsonValue* entry = quantization_entry(json);
  if (!entry) return;
  const JsonValue* name = entry->is(JsonType::kObject) ? entry->find("quant_method") : nullptr;
  std::string method =
      name && name->is(JsonType::kString) ? cat(": ", escaped(name->string("quant_method"))) : "";
  config.quantized = cat("config.json says that the weights are quantised", method);
  if (!shapes_only) quant_config_of(*entry);
}

// The type of the weights, under its new or its old name; nothing if the config does not give it or says
// "auto".
std::optional<DType> read_dtype(const ConfigFields& fields) {
  for (const char* key : {"dtype", "torch_dtype"}) {
    std::string name = fields.text_or(key, "");
    if (name.empty() || name == "auto") continue;
    DType dtype;
    try {
      dtype = dtype_from_name(name);
    } catch (const Error&) {
      throw fields.error(key, "is not known").expected("a data type").found(escaped(name));
    }
    if (dtype != DType::kBF16 && dtype != DType::kF16 && dtype != DType::kF32)
      throw fields.unsupported(key, "is not a data type of parameters")
          .expected("bfloat16, float16 or float32")
          .found(name);
    return dtype;
  }
  return std::nullopt;
}

// The first of "architectures"; "" if there is none.
std::string first_architecture(const ConfigFields& top) {
  if (!top.has("architectures")) return "";
  std::vector<std::string> names = top.texts("architectures");
  return names.empty() ? "" : names[0];
}

// The family of the model type, or the base that the map names; null for a map without a base.
const Family* family_for(const HfConfig& config, const MapFile* map) {
  if (map && !map->has_base()) return nullptr;
  if (!map || !map->base) return &family_of_model(config.model.model_type, config.architecture);
  try {
    return &family_named(*map->base);
  } catch (const Error& e) {
    Error bad(Code::kBadMap, cat("the base of the map: ", e.message()));
    for (const std::string& note : e.notes()) bad.note(note);
    throw bad.help(cat(e.help(), " lists the families; \"none\" is for a map that has all rows"));
  }
}

// Throws kBadMap for an entry of the map that nobody asked for: it is misspelt, or changes nothing.
void refuse_unasked(const MapFile& map, const ConfigFields::Asked& asked, const Family* family) {
  std::vector<std::string_view> known(asked.begin(), asked.end());
  for (const UsualEntry& usual : kUsualEntries) known.push_back(usual.key);
  for (const MapEntry& entry : map.config) {
    if (std::ranges::find(known, std::string_view(entry.key)) != known.end()) continue;
    Error e(Code::kBadMap, cat("the map gives '", escaped(entry.key), "' under \"config\", and ",
                               family ? cat("the family ", family->name) : "a map without a base",
                               " reads no such entry of config.json"));
    if (std::string_view near = nearest(entry.key, known); !near.empty())
      e.help(cat("did you mean '", near, "'?"));
    throw e;
  }
}

}  // namespace

HfConfig read_hf_config(std::string_view text, bool shapes_only, const MapFile* map) {
  JsonValue json = parse_config(text);
  if (!json.is(JsonType::kObject))
    throw Error(Code::kBadConfig, "the config is not a JSON object").found(json.summary());
  if (map && !map->config.empty()) json = with_entries(json, *map);
  ConfigFields::Asked asked;
  const ConfigFields top = ConfigFields(json, "").noting(asked);
  HfConfig config;
  config.architecture = first_architecture(top);
  config.transformers_version = top.text_or("transformers_version", "");
  config.model.model_type = top.text_or("model_type", "");
  if (config.model.model_type.empty())
    throw top.error("model_type",
                    config.architecture.empty() ? "is missing, and so is 'architectures'" : "is missing");
  config.family = family_for(config, map);
  read_quantization(json, shapes_only, config);
  config.model.dtype = read_dtype(top);
  if (top.has("text_config")) {
    ConfigFields language = top.object("text_config");
    if (!config.model.dtype) config.model.dtype = read_dtype(language);
  }
  // The flag at the top decides also for models with vision: the flag in text_config is often a wrong
  // default.
  config.model.tied = top.flag_or("tie_word_embeddings", false);
  if (config.family)
    read_steps(top, config.family->config, config.model);
  else
    read_any(top, config.model);
  const bool own_code = map || !config.family || top.has("auto_map");
  config.run = read_run_entries(top, own_code);
  config.doubts = check_entry_limits(json, config.model.moe.experts, own_code);
  if (map) refuse_unasked(*map, asked, config.family);
  return config;
}

}  // namespace mckpt::impl
