// A sharded checkpoint with the model that it is of: the store, the mapping from the assets of a Hugging Face
// folder, and every chunk under its key.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "convert/views/piece_store.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/name_hash.h"
#include "io/dcp/dcp.h"
#include "tools/hf_model.h"

namespace mckpt {

struct CheckpointModelFlags {
  std::optional<std::string> assets;
  bool any_model = false;  // take a model that no table knows
  // Layers keep their names: where those of the model are others, it is taken as one that no table knows.
  bool keep_layers = false;
  bool renamed = false;  // checkpoints of FSDP2 and of Megatron-FSDP alone get the names of fsdp_dtensor
  std::optional<i64> source_tp, source_etp;
  const char *tp_option = "--source-tp", *etp_option = "--source-etp";  // as the user calls them
  std::vector<std::string> accept;  // codes of damage that is taken as it is
  bool records_apart = false;       // what is wrong with single records is no damage: it is told elsewhere
  NamesOf parts = NamesOf::kModel;  // of the checkpoint, what has to be sound
  HfModelFlags model;

  void declare(CommandLine& line);
  bool weights_only() const { return parts == NamesOf::kModel; }
};

// --accept
void declare_accept(CommandLine& line, std::vector<std::string>& codes);
// Tells what is odd or wrong about the checkpoint; throws the first of what is wrong and not accepted.
// `except`: what is told elsewhere.
void refuse_damage(const Store& store, NamesOf parts, std::span<const std::string> accepted,
                   const GlobalFlags& global, bool (*except)(const Finding&) = nullptr);

class CheckpointModel {
 public:
  // Throws what open_store() and open_hf_model() throw, kUnknownAssets, what is wrong with the checkpoint,
  // and what KeyTable and StoredChunks throw.
  void open(const std::string& path, const CheckpointModelFlags& flags, const GlobalFlags& global);
  void open(std::unique_ptr<Store> store, const CheckpointModelFlags& flags, const GlobalFlags& global);
  // The same for a model that is known; the rows of the vocabulary are the store's.
  void open(std::unique_ptr<Store> store, HfModel model, const CheckpointModelFlags& flags,
            const GlobalFlags& global, RunSetup setup);

  // Under the names of fsdp_dtensor, also where a torch_dist checkpoint lies there.
  const Store& store() const { return *store_; }
  // The same, where the names are others than those on disk; null: they are the same.
  const PieceStore* translated() const { return pieces_; }
  // What lies there.
  const Store& on_disk() const { return pieces_ ? pieces_->source() : *store_; }
  // What the run says that wrote it, or else the user.
  const RunFacts& run() const { return run_; }
  const ModelMap& map() const { return *model_.map; }
  const HfModel& model() const { return model_; }
  const KeyTable& keys() const { return *keys_; }
  const RunSetup& setup() const { return setup_; }
  // The tensor of the model section with that key; -1: there is none.
  i32 tensor_of_key(const std::string& key) const;
  const StoredChunks& chunks() const { return *chunks_; }
  const std::string& assets_path() const { return model_.path; }
  // By Hugging Face tensor, the type in which it is stored; nothing where nothing holds it.
  std::vector<std::optional<DType>> stored_types() const { return chunks_->types_of_sources(); }
  // The types that the original model has. Where no header tells them they are those of its config; buffers
  // are no weights and have their own, in which they are stored.
  std::vector<DType> original_types() const;

 private:
  void translate(DcpDialect dialect, const CheckpointModelFlags& flags, const RunSetup& setup,
                 KeyTable::Cells& cells);

  std::unique_ptr<Store> store_;
  const PieceStore* pieces_ = nullptr;  // it, where it is one
  RunFacts run_;
  HfModel model_;
  RunSetup setup_;
  NameMap<std::string, i64> tensors_;  // of the model section, by key
  std::unique_ptr<KeyTable> keys_;
  std::unique_ptr<StoredChunks> chunks_;
};

// Where the assets of the checkpoint are that mckpt put beside it; "" where there are none.
std::string own_assets(const Store& store);
// The map file that the checkpoint was made with, as these have it; "" where it was made without one.
std::string kept_map(const Store& store);

// A number that the checkpoint says of its run, or else the user: `said`, with the option of this name.
// Throws kContradiction where both say it and differ.
std::optional<i64> agreed_ranks(const Store& store, std::optional<i64> stored, const char* option,
                                std::optional<i64> said);

// "'optim.state.w.exp_avg' and 3 more": of a folder of DCP that follows no convention, the tensors that no
// known format has; "" where there are none.
std::string keys_of_no_format(const Store& store);

// What changes when any file of the store is changed.
std::string source_identity(const Store& store);

}  // namespace mckpt
