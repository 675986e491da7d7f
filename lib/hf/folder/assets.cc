// Finds the assets of a Hugging Face folder; writes and reads the table of a model's tensors. A file is an
// asset unless its name shows that it contains weights, an index of weights, or something that mckpt wrote;
// so files that mckpt does not know are copied.
#include "hf/folder/assets.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/folder/known_assets.h"
#include "io/copy/side_files.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/json/json_writer.h"
#include "io/listing/manifest.h"
#include "io/store/names/iteration_names.h"
#include "io/store/names/torch_names.h"
#include "io/store/store.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

// Ends of the names of weights that mckpt opens; has_torch_suffix() knows the others.
constexpr std::string_view kWeightSuffixes[] = {".safetensors", ".h5"};
// Weights that it does not open, and indexes of weights:
constexpr std::string_view kOtherWeightSuffixes[] = {".gguf", ".msgpack", ".onnx", ".npz"};
constexpr std::string_view kIndexSuffixes[] = {".safetensors.index.json", ".bin.index.json"};

bool has_end(std::string_view name, std::span<const std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

// The names of files in the folder that end so, without hidden ones.
std::vector<std::string> names_with_end(const Folder& folder, std::span<const std::string_view> ends) {
  std::vector<std::string> out;
  for (const FolderEntry& e : folder.entries())
    if (!e.folder && !e.name.starts_with(".") && has_end(e.name, ends)) out.push_back(e.name);
  return out;
}

// The chat templates of a tokenizer that has several, as transformers writes them.
constexpr std::string_view kTemplatesFolder = "additional_chat_templates";

// The voices of Qwen2.5-Omni, a file of torch that is none of weights: transformers loads no model without
// it.
constexpr std::string_view kVoices = "spk_dict.pt";

// Whether an entry of a folder is an asset, by its name.
bool is_asset(const FolderEntry& e) {
  if (e.name == kVoices && !e.folder) return true;
  if (e.folder || e.name.starts_with(".") || has_torch_suffix(e.name)) return false;
  if (e.name == kTensorTableName || e.name == kTrackerName || e.name == kManifestName) return false;
  return !has_end(e.name, kWeightSuffixes) && !has_end(e.name, kOtherWeightSuffixes) &&
         !has_end(e.name, kIndexSuffixes);
}

// The assets of the folder and of the folder below it that belongs to a tokenizer.
std::vector<std::string> asset_names(const Folder& folder, std::string_view below) {
  std::vector<std::string> out;
  for (const FolderEntry& e : folder.entries(below)) {
    std::string name = below.empty() ? e.name : cat(below, "/", e.name);
    if (is_asset(e)) out.push_back(name);
    if (e.folder && name == kTemplatesFolder)
      std::ranges::move(asset_names(folder, name), std::back_inserter(out));
  }
  return out;
}

// Names, and ends of names, that transformers gives to assets.
constexpr std::string_view kKnownNames[] = {"config.json",
                                            "generation_config.json",
                                            "tokenizer.json",
                                            "tokenizer_config.json",
                                            "vocab.json",
                                            "vocab.txt",
                                            "merges.txt",
                                            "special_tokens_map.json",
                                            "added_tokens.json",
                                            "chat_template.json",
                                            "processor_config.json",
                                            "preprocessor_config.json",
                                            "video_preprocessor_config.json",
                                            kVoices,
                                            kMapName};
constexpr std::string_view kKnownSuffixes[] = {".jinja", ".model", ".tiktoken", ".py"};
// DeepSpeed writes this script beside its checkpoints.
constexpr std::string_view kScriptOfDeepSpeed = "zero_to_fp32.py";

constexpr std::array<std::string_view, 4> kLayoutNames = {"auto", "apart", "fused", "hub"};

}  // namespace

std::string_view expert_layout_name(ExpertLayout layout) {
  return kLayoutNames[static_cast<std::size_t>(layout)];
}

ExpertLayout expert_layout_of(std::string_view name) {
  auto at = std::ranges::find(kLayoutNames, name);
  return at == kLayoutNames.end() ? ExpertLayout::kAuto
                                  : static_cast<ExpertLayout>(at - kLayoutNames.begin());
}

bool is_known_asset(std::string_view name) {
  if (name == kScriptOfDeepSpeed) return false;
  auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
  return std::ranges::find(kKnownNames, name) != std::end(kKnownNames) ||
         std::ranges::any_of(kKnownSuffixes, ends);
}

std::vector<std::string> hf_assets(const Folder& folder) { return asset_names(folder, ""); }

std::vector<std::string> other_weights(const Folder& folder) {
  return names_with_end(folder, kOtherWeightSuffixes);
}

std::vector<std::string> weight_indexes(const Folder& folder) {
  return names_with_end(folder, kIndexSuffixes);
}

std::vector<std::string> folders_without_assets(const Folder& folder) {
  std::vector<std::string> out;
  for (const FolderEntry& e : folder.entries())
    if (e.folder && !e.name.starts_with(".") && e.name != kTemplatesFolder) out.push_back(cat(e.name, "/"));
  return out;
}

// The files are read for their digests here, so that one that cannot be copied is refused before anything is
// written.
SideFiles plan_assets(const std::string& from, std::string_view tensor_table, const OpenOptions& opening) {
  SideFiles out{.from = from, .opening = opening};
  Folder folder(from, opening);
  for (const std::string& name : asset_names(folder, "")) out.add_copy(folder, name);
  out.left_out = folders_without_assets(folder);
  if (!tensor_table.empty()) out.texts.emplace(kTensorTableName, tensor_table);
  return out;
}

void add_map(SideFiles& assets, std::string_view map_text) {
  bool has = std::ranges::any_of(assets.copies, [](const SideFile& file) { return file.name == kMapName; });
  if (!map_text.empty() && !has) assets.texts.emplace(kMapName, map_text);
}

std::string folder_map_text(const Folder& folder) {
  std::string name(kMapName);
  if (!folder.has_file(name)) return "";
  return with_file(cat(folder.path(), "/", name), [&] { return json_text(folder.open_file(name)); });
}

SideFiles plan_known_assets(const std::string& from, const OpenOptions& opening) {
  SideFiles out{.from = from, .opening = opening};
  Folder folder(from, opening);
  for (const std::string& name : asset_names(folder, ""))
    if (is_known_asset(name)) out.add_copy(folder, name);
  return out;
}

namespace {

void append_original(JsonWriter& json, const SafetensorsOriginal& original) {
  json.key("files").begin_array();
  for (const SafetensorsOriginal::File& f : original.files)
    json.begin_array().value(f.name).value(f.bytes).value(f.header).end_array();
  json.end_array();
  if (!original.index.empty())
    json.key("index").begin_array().value(original.index_name).value(original.index).end_array();
}

}  // namespace

// The JSON is written without spaces or line ends, one array [name, type, shape] for each tensor.
std::string tensor_table_json(const SourceTable& tensors, ExpertLayout expert_layout,
                              std::string_view map_text, const std::optional<SafetensorsOriginal>& original) {
  bool complete = true;
  for (i32 t = 0; t < tensors.size(); t++) complete &= tensors[t].header_known;
  if (!complete && map_text.empty()) return "";
  std::string text;
  JsonWriter json(text);
  json.begin_object()
      .field("schema", "mckpt.tensors/1")
      .field("expert_layout", expert_layout_name(expert_layout));
  if (!map_text.empty()) json.field("map_file", map_text);
  if (complete) json.key("tensors").begin_array();
  for (i32 t = 0; complete && t < tensors.size(); t++) {
    json.begin_array().value(tensors[t].name).value(dtype_name(tensors[t].dtype)).value(tensors[t].dims);
    json.end_array();
  }
  if (complete) json.end_array();
  if (complete && original) append_original(json, *original);
  json.end_object();
  return text;
}

std::string tensor_table_text(const Folder& folder) {
  std::string name(kTensorTableName);
  if (!folder.has_file(name)) return "";
  return with_file(cat(folder.path(), "/", name), [&] { return json_text(folder.open_file(name)); });
}

namespace {

// ["model.norm.weight", "bfloat16", [1024]]
TensorTable::Entry table_entry(const JsonListed& listed) {
  const JsonValue::Array& parts = listed.value.array("a tensor");
  if (parts.size() != 3)
    throw Error(Code::kBadJson, "a tensor has not just name, type and shape").offset(listed.offset);
  TensorTable::Entry e{parts[0].string("name"), dtype_from_name(parts[1].string("type")), {}};
  for (const JsonValue& size : parts[2].array("shape")) e.dims.push_back(size.integer("shape"));
  static_cast<void>(Shape(e.dims));  // throws for negative sizes and too many dimensions
  return e;
}

// [["model.safetensors", 1503300328, "{...}"]]
void read_files(const JsonValue& list, SafetensorsOriginal& out) {
  for (const JsonValue& entry : list.array("files")) {
    const JsonValue::Array& parts = entry.array("files");
    if (parts.size() != 3) throw Error(Code::kBadJson, "a file has not just name, size and header");
    out.files.push_back({parts[0].string("files"), parts[1].integer("files"), parts[2].string("files")});
  }
}

}  // namespace

TensorTable parse_tensor_table(std::string_view text) {
  TensorTable table;
  JsonValue json = parse_json_list(
      text, "tensors", [&](const JsonListed& listed) { table.tensors.push_back(table_entry(listed)); });
  for (const auto& [key, value] : json.object("the table of tensors")) {
    if (key == "expert_layout") table.expert_layout = expert_layout_of(value.string(key));
    if (key == "map_file") table.map_text = value.string(key);
    if (key == "tensors") {
      static_cast<void>(value.array(key));  // throws for another type
      table.complete = true;
    }
    if (key == "files") read_files(value, table.original.emplace());
  }
  if (const JsonValue* index = json.find("index"); index && table.original) {
    const JsonValue::Array& parts = index->array("index");
    if (parts.size() != 2) throw Error(Code::kBadJson, "the index has not just name and text");
    table.original->index_name = parts[0].string("index");
    table.original->index = parts[1].string("index");
  }
  return table;
}

}  // namespace mckpt::impl
