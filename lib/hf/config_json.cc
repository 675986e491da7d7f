// Reads the entries that all families have (model_type, dtype, tied embeddings), refuses quantised
// models unless only shapes are wanted, and calls the family's reader for the rest. Models with vision have the language model's numbers in
// "text_config".
#include "hf/config_json.h"

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "hf/config_families.h"
#include "hf/config_fields.h"
#include "hf/config_readers.h"
#include "hf/map_file.h"
#include "io/json/json.h"
#include "mappings/family.h"
#include "mappings/map_file/map.h"
#include "mappings/registry.h"

namespace mckpt::impl {
namespace {

// "'quantization_config' says that the weights are quantised: fp8"; "" if the object does not declare it.
std::string quantized_by(const ConfigFields& fields) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (!fields.has(key)) continue;
    const JsonValue& how = *fields.find(key);
    std::string method = how.is(JsonType::kObject) ? ConfigFields(how, "").text_or("quant_method", "") : "";
    return cat("'", fields.key(key), "' says that the weights are quantised", method.empty() ? "" : ": ",
               escaped(method));
  }
  return "";
}

// Throws kQuantized if the object declares that the weights are quantised; if only shapes are wanted, notes it.
void check_quantized(const ConfigFields& fields, bool shapes_only, HfConfig& config) {
  std::string text = quantized_by(fields);
  if (!text.empty() && !shapes_only)
    throw Error(Code::kQuantized, text).help("dequantise the model first; mckpt reads bf16, fp16 and fp32");
  if (config.quantized.empty()) config.quantized = text;
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

}  // namespace

HfConfig read_hf_config(std::string_view text, bool shapes_only, const MapFile* map) {
  JsonValue json = parse_json(text, JsonNumbers::kPython);
  if (!json.is(JsonType::kObject))
    throw Error(Code::kBadConfig, "the config is not a JSON object").found(json.summary());
  if (map && !map->config.empty()) json = with_entries(json, *map);
  ConfigFields top(json, "");
  HfConfig config;
  config.architecture = first_architecture(top);
  config.transformers_version = top.text_or("transformers_version", "");
  config.model.model_type = top.text_or("model_type", "");
  if (config.model.model_type.empty())
    throw top.error("model_type",
                    config.architecture.empty() ? "is missing, and so is 'architectures'" : "is missing");
  config.family = family_for(config, map);
  check_quantized(top, shapes_only, config);
  config.model.dtype = read_dtype(top);
  if (top.has("text_config")) {
    ConfigFields language = top.object("text_config");
    check_quantized(language, shapes_only, config);
    if (!config.model.dtype) config.model.dtype = read_dtype(language);
  }
  // The flag at the top decides also for models with vision: the flag in text_config is often a wrong default.
  config.model.tied = top.flag_or("tie_word_embeddings", false);
  const FamilyReader read = config.family ? family_reader(config.family->name) : read_any;
  read(top, config.model);
  config.run = read_run_entries(top);
  return config;
}

}  // namespace mckpt::impl
