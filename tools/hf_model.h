// A Hugging Face model folder with its mapping: config.json, the safetensors files if they are here, and
// every tensor accounted for.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "hf/assets.h"
#include "hf/config_json.h"
#include "io/safetensors/index.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/map_rows.h"
#include "mappings/model/plain_family.h"
#include "tools/options/command_line.h"

namespace mckpt {

struct HfModel {
  std::string path;
  std::string expert_layout;  // as the user, or who converted the model before, said
  std::string map_text;       // of the map file, likewise; "" where there is none
  HfConfig config;
  std::unique_ptr<Store> store;             // null: only the config, or the config and an index, is here
  std::unique_ptr<TensorTable> table;       // where the folder has mckpt's list of tensors and no weights
  std::unique_ptr<SafetensorsIndex> index;  // where the index is here but none of the files that it names
  std::unique_ptr<OwnFamily> own;           // where a map file changes the family's tables
  std::unique_ptr<PlainFamily> plain;       // of a model that no family knows
  std::unique_ptr<ModelMap> map;            // its source table has the store's tensors, in the store's order

  bool has_data() const { return store != nullptr; }
};

// The flags that say how to read a model; declared by every command that takes one.
struct HfModelFlags {
  std::string expert_layout = "auto", map_file;
  // The map that a checkpoint was made with, as it keeps it itself. --map-file must not say another.
  std::string kept_map = {};

  void declare(CommandLine& line);
  MapOptions options() const;
};

// Throws what read_hf_config() and ModelMap throw, with the file; kNotFound without config.json; what is
// wrong with the safetensors files, all at once; kContradiction.
HfModel open_hf_model(const std::string& path, const HfModelFlags& flags);

// The config.json of such a folder alone. Throws what read_hf_config() does, with the file; kNotFound.
HfConfig hf_config_of(const std::string& path);

// A model that no family knows, of the tensors of a checkpoint that `name` gives a name; nothing: it is no
// parameter. The store outlives it. Throws kNotHeld for a tensor that cannot be sharded.
HfModel plain_model(const Store& store, const std::function<std::optional<std::string>(i64 tensor)>& name);

// What decides, beside the tensors, which item goes where: another text for another config.json, map file or
// layout of experts.
std::string mapping_identity(const HfModel& model);

// Reads the tensors that are known as copies and warns of those that are not equal to what they repeat: such
// a model loses them. Without data it does nothing. Returns how many differ.
i64 warn_of_unlike_copies(const GlobalFlags& flags, const HfModel& model, int threads);

// The same as an error, for who would lose them. Throws kUnaccounted.
void refuse_unlike_copies(const HfModel& model, int threads);

// Tells what was inferred, and which tensors are not read, on stderr.
void tell_notes(const GlobalFlags& flags, const HfModel& model);

}  // namespace mckpt
