// Only a few entries are looked at, each only if it has the expected type: configs of unknown models must not
// be an error here.
#include "io/safetensors/config_facts.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char *kConfig = "config.json", *kConfigBelow = "huggingface/config.json";

const JsonValue* entry(const JsonValue& object, const char* key, JsonType type) {
  const JsonValue* v = object.is(JsonType::kObject) ? object.find(key) : nullptr;
  return v != nullptr && v->is(type) ? v : nullptr;
}

std::string text_or(const JsonValue& object, const char* key, std::string_view otherwise) {
  const JsonValue* v = entry(object, key, JsonType::kString);
  return v != nullptr ? v->string(key) : std::string(otherwise);
}

// The settings of the weights in the first group of compressed-tensors.
const JsonValue* first_weights(const JsonValue& how) {
  const JsonValue* groups = entry(how, "config_groups", JsonType::kObject);
  if (groups == nullptr || groups->object("config_groups").empty()) return nullptr;
  return entry(groups->object("config_groups")[0].value, "weights", JsonType::kObject);
}

// "fp8, blocks of 128x128", "compressed-tensors pack-quantized, int 4 bits, groups of 32".
std::string quantization_text(const JsonValue& how) {
  std::string out = text_or(how, "quant_method", "by an unnamed method");
  if (std::string format = text_or(how, "format", text_or(how, "quant_algo", "")); !format.empty())
    out += cat(" ", format);
  if (const JsonValue* block = entry(how, "weight_block_size", JsonType::kArray)) {
    std::string sizes;
    for (const JsonValue& size : block->array("weight_block_size"))
      if (size.is(JsonType::kNumber))
        sizes += cat(sizes.empty() ? "" : "x", size.integer("weight_block_size"));
    out += cat(", blocks of ", sizes);
  }
  const JsonValue* weights = first_weights(how);
  const JsonValue& numbers = weights != nullptr ? *weights : how;
  const JsonValue* bits = entry(numbers, weights != nullptr ? "num_bits" : "bits", JsonType::kNumber);
  if (bits != nullptr) out += cat(", ", text_or(numbers, "type", "int"), " ", bits->integer("bits"), " bits");
  // -1 of GPTQ and compressed-tensors: a scale for each row.
  const JsonValue* group = entry(numbers, "group_size", JsonType::kNumber);
  if (group != nullptr && group->integer("group_size") > 0)
    out += cat(", groups of ", group->integer("group_size"));
  return out;
}

// The bits of a packed value: "bits" of GPTQ and AWQ, "num_bits" of compressed-tensors.
const JsonValue* packed_bits(const JsonValue& how) {
  const JsonValue* weights = first_weights(how);
  return weights != nullptr ? entry(*weights, "num_bits", JsonType::kNumber)
                            : entry(how, "bits", JsonType::kNumber);
}

void add_model_facts(const JsonValue& config, Store& store) {
  const JsonValue* names = entry(config, "architectures", JsonType::kArray);
  if (names != nullptr && !names->array("architectures").empty())
    store.add_fact("architecture", names->array("architectures")[0].string("architectures"));
  if (const JsonValue* type = config.find("model_type"))
    store.add_fact("model_type", type->string("model_type"));
  for (const char* key : {"quantization_config", "compression_config"})
    if (const JsonValue* how = entry(config, key, JsonType::kObject)) {
      store.add_fact("quantized", quantization_text(*how));
      if (const JsonValue* bits = packed_bits(*how))
        store.add_fact("packed bits", cat(bits->integer("bits")));
      return;
    }
}

void add_or_warn(const char* file, const std::function<void(Finding)>& warn,
                 const std::function<void()>& add) {
  try {
    add();
  } catch (const Error& e) {
    // Results depend on these facts.
    if (e.is_of_the_moment() || e.code() == Code::kReadFailed) throw;
    Finding finding = to_finding(e);
    finding.file = file;
    finding.warning = true;
    warn(std::move(finding));
  }
}

}  // namespace

std::string adapter_text(const Folder& folder) {
  // Beside files of ranks verl writes it in a folder below, or some of it in a file of its own.
  const auto* path =
      std::ranges::find_if(kConfigsBeside, [&](const char* file) { return folder.has_file(file); });
  if (path == std::end(kConfigsBeside)) return "";
  JsonValue config = parse_config(json_text(folder.open_file(*path)));
  std::string out =
      text_or(config, "peft_type", std::string_view(*path) == kTrainMeta ? "LORA" : "of an unnamed kind");
  if (const JsonValue* rank = entry(config, "r", JsonType::kNumber))
    out += cat(", rank ", rank->integer("r"));
  if (std::string base = text_or(config, "base_model_name_or_path", ""); !base.empty())
    out += cat(", of ", base);
  return out;
}

void add_config_facts(const Folder& folder, Store& store, const std::function<void(Finding)>& warn) {
  for (const char* file : {kConfig, kConfigBelow})
    if (folder.has_file(file)) {
      add_or_warn(file, warn,
                  [&] { add_model_facts(parse_config(json_text(folder.open_file(file))), store); });
      break;
    }
  add_or_warn(kAdapterConfig, warn, [&] {
    if (std::string text = adapter_text(folder); !text.empty()) store.add_fact("adapter", text);
  });
}

}  // namespace mckpt::impl
