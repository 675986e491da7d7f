// What a Hugging Face folder holds beside its weights: config, tokenizer, chat template, code. A checkpoint
// made of a model carries them along, byte for byte, with the table of the model's tensors, so that it can be
// exported without the original:
//
//   release/hf_assets/config.json, tokenizer.json, ..., mckpt_tensors.json
#pragma once

#include <string>
#include <vector>

#include "io/copy/side_files.h"
#include "io/file/folder.h"
#include "mappings/model/source_table.h"

namespace mckpt {

inline constexpr std::string_view kAssetsFolder = "hf_assets";
inline constexpr std::string_view kTensorTableName = "mckpt_tensors.json";

// Their names, in natural order, with those in additional_chat_templates/. Hidden files, other folders, weights
// and their indexes are none, nor are a tensor table, the tracker of a run and a manifest.
std::vector<std::string> hf_assets(const Folder& folder);

// The other folders, but hidden ones: "onnx/".
std::vector<std::string> folders_without_assets(const Folder& folder);

// Whether files of torch lie there, such as pytorch_model-00001-of-00002.bin.
bool has_torch_weights(const Folder& folder);

// What goes into the folder of assets of a checkpoint: those in the folder `from`, and the table of the
// model's tensors where it is not "". Throws where one of them cannot be copied.
SideFiles plan_assets(const std::string& from, std::string_view tensor_table);

// The tensors of a model as JSON: names, types and shapes in the order of the table, how experts are stored
// where the user said so, and the text of the map file that the model is read with. Where types and shapes
// are not known, of a config without headers, the tensors are left out; "" where there is no map either.
std::string tensor_table_json(const SourceTable& tensors, std::string_view expert_layout,
                              std::string_view map_text);

// The text of the table in a folder of assets; "" where it has none.
std::string tensor_table_text(const Folder& folder);

// The same, read back.
struct TensorTable {
  struct Entry {
    std::string name;
    DType dtype;
    std::vector<i64> dims;
  };
  bool complete = false;  // the tensors are listed
  std::vector<Entry> tensors;
  std::string expert_layout = "auto", map_text;
};
TensorTable parse_tensor_table(std::string_view json);  // throws kBadJson

}  // namespace mckpt
