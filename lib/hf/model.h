// A Hugging Face model folder with its mapping: config.json, the safetensors files if they are in the folder,
// and a parameter of Megatron for every tensor.
//
//   Qwen3-30B-A3B/  config.json                         -> HfModel::config
//                   model-00001-of-00016.safetensors    -> HfModel::store   (or only the index, or only the config)
//                   family tables, rows of a map file   -> HfModel::map
//
// Opening reads config.json and the headers of the weights, and data only of tensors that repeat others. A
// folder without weights is a model too: its tensors come from mckpt's list, from the index, or from the
// tables alone, in this order.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "hf/config/json.h"
#include "hf/folder/expert_layout.h"
#include "hf/folder/front_of_names.h"
#include "hf/model_options.h"

namespace mckpt::impl {

class ModelMap;
class Notes;
class OwnFamily;
class PlainFamily;
class Store;
struct SafetensorsIndex;
struct SafetensorsOriginal;
struct TensorTable;

// An open model. It owns the store, the tables and the map, which refer to each other; it can be moved. A
// folder with weights has `store`; `table` and `index` are used only without weights.
struct HfModel {
  HfModel();
  HfModel(HfModel&&) noexcept;
  HfModel& operator=(HfModel&&) noexcept;
  ~HfModel();

  std::string path;
  OpenOptions opening;  // of the folder
  ExpertLayout expert_layout =
      ExpertLayout::kAuto;  // given by the options, or by an earlier conversion of the model
  std::string map_text;     // of the map file that applies; "" if there is none
  std::string map_over;  // mckpt's own family whose table a map replaces that came with the folder; "": none
  HfConfig config;
  std::unique_ptr<Store> store;        // null: the folder has no weights
  std::unique_ptr<TensorTable> table;  // set if the folder has mckpt's list of tensors and no weights
  std::unique_ptr<SafetensorsIndex>
      index;                           // set if the folder has the index but none of the files that it names
  std::unique_ptr<OwnFamily> own;      // set if a map file changes the family's tables
  std::unique_ptr<PlainFamily> plain;  // set for a model that no family knows
  std::string_view fronted;            // how the files' names differ from the store's, if they do
  std::unique_ptr<ModelMap> map;       // its source table has the store's tensors, in the store's order

  bool has_data() const { return store != nullptr; }
};

// Opens the model; with a base in the options, a folder with an adapter is the model of that base with the
// adapter in it. Throws what read_hf_config() and ModelMap throw, with the file; kNotFound without
// config.json; one error with all problems of the safetensors files; kContradiction if two different maps
// apply; kUnaccounted for tied tensors with other bytes.
HfModel open_hf_model(const std::string& path, const HfModelOptions& options = {});
// The same of a path that was opened as a store, or not (null). A store of the path itself is taken, and its
// files are not opened again; another one is left to the caller.
HfModel open_hf_folder(std::unique_ptr<Store>& opened, const std::string& path,
                       const HfModelOptions& options = {});

// The model whose config.json is in the folder, and whose weights are elsewhere: `weights` has the tensors
// that a folder of the model has, under their names. Weights in the folder itself are not looked at. Throws
// as above.
HfModel open_hf_model(const std::string& path, std::unique_ptr<Store> weights,
                      const HfModelOptions& options = {});

// The store of a model's folder under the names of the class (front_of_names.h), where its config.json and
// its tensors pair so; else none. `store` is left alone then. Throws kInterrupted, and what only this moment
// refuses; a folder that cannot be opened as a model has no such names.
FrontedStore with_names_of_class(std::unique_ptr<Store>& store, const HfModelOptions& options);

// The config.json of such a folder alone. Throws what read_hf_config() throws, with the file; kNotFound.
// `map_text`: the map file that applies to the model, or "".
HfConfig hf_config_of(const std::string& path, const OpenOptions& opening, const std::string& map_text);

// A model that no family knows, made of the tensors of a checkpoint that `name` gives a name; a tensor
// without a name is not a parameter. They are registered in the order of the store, or of `order`, which has
// every tensor once. The store outlives the model. Throws kNotHeld for a tensor that cannot be sharded.
HfModel plain_model(const Store& store, const std::function<std::optional<std::string>(i64 tensor)>& name,
                    std::span<const i64> order = {});

// The facts beside the tensors that decide which item goes where, as a text that differs if config.json, the
// map file or the layout of the experts differs. Part of the identity of a conversion.
std::string mapping_identity(const HfModel& model);

// The files of the model's tensors: the files of its folder, or the files in mckpt's list. Nothing if they
// are not known.
std::optional<SafetensorsOriginal> original_files(const HfModel& model);

// Inferred facts about the model, and the tensors that are not read.
Notes notes_of(const HfModel& model);

// A sentence about a map that came with the folder and replaces rows of mckpt's own table; "" if there is
// none. Such a map decides where every weight goes, and whoever gives a folder to somebody can put one into
// it.
std::string map_warning(const HfModel& model);

// "lm_head.weight differs from model.embed_tokens.weight": the tensors that are known as copies of other
// tensors but have other bytes. Such a tensor is lost, because only the other one is read. Empty for a model
// without data.
std::vector<std::string> unlike_copies(const HfModel& model, int threads);

}  // namespace mckpt::impl
