// A sharded checkpoint with the model that it is of, completely opened: the store under the names of
// fsdp_dtensor, the mapping to the tensors of a Hugging Face model, and every stored chunk under its key.
//
//   const CheckpointModel& checkpoint = *opened.sharded;      of what open() returned
//
//   checkpoint.on_disk()   a torch_dist folder      decoder.layers.mlp.linear_fc1.weight [2, 28, 12]
//   checkpoint.store()     the same, translated     model.module.decoder.layers.1.mlp.linear_fc1.weight_v [14, 12]
//   checkpoint.keys()      which items of which Hugging Face tensor that key has
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/keys/key_table.h"
#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "io/dcp/run/sizes.h"
#include "io/store/finding.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

enum class DType : u8;
enum class KeyNames : u8;
class ModelMap;
class Store;
class StoredChunks;
struct CheckpointOptions;
struct HfModel;
struct RunFacts;

// An open checkpoint. The object owns the store, the model, the key table and the list of chunks, which refer
// to each other; it can be moved, and all of them keep their addresses. const functions are thread-safe.
class CheckpointModel {
 public:
  // For a model that is known. The rows of the vocabulary and the spelling of names are the store's, whatever
  // `setup` says. `members`: the pattern by whose groups and members the layers are named, where the caller
  // does not keep it for `setup`.
  CheckpointModel(std::unique_ptr<Store> store, std::shared_ptr<const HfModel> model,
                  const CheckpointOptions& options, RunSetup setup = {0, std::nullopt},
                  std::shared_ptr<const LayerPattern> members = nullptr);

  CheckpointModel(CheckpointModel&&) noexcept;
  ~CheckpointModel();

  // Under the names of fsdp_dtensor, whatever the format on disk.
  const Store& store() const { return *store_; }
  // Whether its names are not those on disk.
  bool translated() const { return store_.get() != disk_; }
  // Whether the names on disk are of another format or of other layers, beside their spelling.
  bool of_other_form() const { return of_other_form_; }
  // The facts that its run saved beside the tensors.
  RunFacts facts() const;
  const Store& on_disk() const { return *disk_; }
  // Findings of the openers that are not problems, or are accepted: for the caller to report.
  const std::vector<Finding>& oddities() const { return oddities_; }
  // Facts about the training run that wrote the checkpoint, from the checkpoint or else from the options.
  const RunSizes& run() const { return run_; }
  const ModelMap& map() const;
  const HfModel& model() const { return *model_; }
  const KeyTable& keys() const { return *keys_; }
  const RunSetup& setup() const { return setup_; }
  // The spelling on disk; the spelling of setup() unless the names were changed.
  const Spelling& spelling_on_disk() const { return spelling_on_disk_; }
  const StoredChunks& chunks() const { return *chunks_; }
  const std::string& assets_path() const;
  // Tensors of the optimizer in the files of ranks that store() does not have: of a distributed one, or all
  // if they are not wanted.
  const std::vector<std::string>& left_states() const { return left_states_; }

  // The tensor of the model section with that key; -1 if there is none.
  i32 tensor_of_key(const std::string& key) const;
  // By Hugging Face tensor, the type in which it is stored; nothing for a tensor that is not stored.
  std::vector<std::optional<DType>> stored_types() const;
  // By Hugging Face tensor, the type that the original model has. If no header gives it, it is the type in
  // the config; buffers are not weights and have the type in which they are stored.
  std::vector<DType> original_types() const;

 private:
  void find_groups(KeyNames names);
  void translate(const CheckpointOptions& options, KeyTable::Cells& cells);
  void make_whole(bool weights_only);
  void list_tensors();
  void find_spelling();
  void respell(const CheckpointOptions& options);
  void lay_out(KeyTable::Cells cells);

  std::unique_ptr<Store> store_;
  const Store* disk_ = nullptr;  // the innermost store
  bool of_other_form_ = false;
  std::unique_ptr<RunFacts> facts_;  // null: each object of the store is one
  NameSet<std::string> made_whole_;  // parameters that a view made of their parts
  std::vector<Finding> oddities_;
  RunSizes run_;
  std::vector<std::string> left_states_;
  std::shared_ptr<const HfModel> model_;
  std::shared_ptr<const LayerPattern> members_;  // setup_ may point to it
  RunSetup setup_;
  Spelling spelling_on_disk_;
  NameMap<std::string, i64> tensors_;  // of the model section, by key
  std::unique_ptr<KeyTable> keys_;
  std::unique_ptr<StoredChunks> chunks_;
};

// A number that the checkpoint or else the user gives for its training run. `setting`: the name of the user's
// option. Throws kContradiction if both give it and differ.
std::optional<i64> agreed_ranks(const Store& store, std::optional<i64> stored, const char* setting,
                                std::optional<i64> given);

}  // namespace mckpt::impl
