// The files of a Hugging Face folder that are not weights: config, tokenizer, chat template, code. They are
// called assets. A checkpoint that is made of a model keeps a copy of them, byte for byte, together with the
// table of the model's tensors. So it can be exported without the original:
//
//   release/hf_assets/config.json, tokenizer.json, ..., mckpt_tensors.json
//
// The table is JSON: {"schema": "mckpt.tensors/1", "expert_layout": "auto",
//                     "tensors": [["model.embed_tokens.weight", "bfloat16", [151936, 2048]], ...],
//                     "files": [["model.safetensors", 1503300328, "{...}"], ...], "index": [name, text]}
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "hf/folder/expert_layout.h"
#include "io/safetensors/original.h"

namespace mckpt::impl {

enum class DType : u8;
class Folder;
class SourceTable;
struct SideFiles;
struct OpenOptions;

inline constexpr std::string_view kAssetsFolder = "hf_assets";
inline constexpr std::string_view kTensorTableName = "mckpt_tensors.json";
// A map file that a folder is read with, beside its config.json. It is an asset: whatever is made of the
// folder has it too.
inline constexpr std::string_view kMapName = "mckpt_map.json";

// The names of the assets in a folder, in natural order, including those in additional_chat_templates/.
// Hidden files, other folders, weights and their indexes, a tensor table, the tracker of a training run and a
// manifest are not assets.
std::vector<std::string> hf_assets(const Folder& folder);

// Names in a folder of what is not an asset, in natural order: weights that mckpt does not open, such as
// model.gguf, which are a model of their own; and the indexes of weights.
std::vector<std::string> other_weights(const Folder& folder);
std::vector<std::string> weight_indexes(const Folder& folder);

// The folders in `folder` that are not assets, except hidden ones, each with a slash at its end: "onnx/".
std::vector<std::string> folders_without_assets(const Folder& folder);

// Adds the text of a map to the assets of a folder, unless it is "" or the assets have one already.
void add_map(SideFiles& assets, std::string_view map_text);

// The text of the map in a folder; "" if it has none. Throws kBadJson for a file above the limit of
// io/json/json_file.h.
std::string folder_map_text(const Folder& folder);

// The side files that make the folder of assets of a checkpoint: the assets of the folder `from`, and the
// table of the model's tensors unless it is "". Throws for an asset that cannot be copied.
SideFiles plan_assets(const std::string& from, std::string_view tensor_table, const OpenOptions& opening);

// The assets in a folder that has files of a training run too: only files with names that transformers gives
// to config, tokenizer, processor and templates, and code. In such a folder any other file may be a state of
// the run.
SideFiles plan_known_assets(const std::string& from, const OpenOptions& opening);

// The tensors of a model as JSON: names, types and shapes in the order of the table, how experts are stored,
// and the text of the map file that the model is read with. The tensors are left out if their types and
// shapes are not known, because the folder has no headers of weights. The result is "" if there is no map
// either. `original`: the files in which the tensors were, if they are known.
std::string tensor_table_json(const SourceTable& tensors, ExpertLayout expert_layout,
                              std::string_view map_text, const std::optional<SafetensorsOriginal>& original);

// The text of the table in a folder of assets; "" if it has none. The text is not checked.
// Throws kBadJson for a file above the limit of io/json/json_file.h.
std::string tensor_table_text(const Folder& folder);

// A table that was read back, as tensor_table_json() wrote it.
struct TensorTable {
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<i64> dims;
  };
  bool complete = false;  // the tensors are listed
  std::vector<Entry> tensors;
  ExpertLayout expert_layout = ExpertLayout::kAuto;
  std::string map_text;
  std::optional<SafetensorsOriginal> original{};
};
TensorTable parse_tensor_table(std::string_view json);  // throws kBadJson

}  // namespace mckpt::impl
