// AdaptedStore: a model with an adapter of PEFT (LoRA) in it, seen as a model. It has the tensors of the
// base, under their names, in their types and shapes; those that the adapter changes are computed when they
// are read (adapted_bytes.h):
//
//   base      q_proj.weight BF16 [32, 16], k_proj.weight BF16 [16, 16], ...
//   adapter   q_proj.lora_A.weight F32 [4, 16], q_proj.lora_B.weight F32 [32, 4]
//   view      q_proj.weight BF16 [32, 16] = base + scale * B A, k_proj.weight BF16 [16, 16], ...
//
// Two adapters make more of a base than that: with another vocabulary, whose embedding and output layer the
// adapter has whole, and with an output layer of its own where the base's is the embedding. Then config.json
// says something else, too (amended()).
//
// It says of itself where the base is: config, tokenizer and files are the base's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "hf/adapter/amended_config.h"
#include "hf/adapter/lora/pairing.h"
#include "io/store/open/adapter_base.h"
#include "io/store/store_view.h"
#include "io/store/unrounded.h"

namespace mckpt::impl {

class AdapterMemory;
class LostValues;
struct LoraConfig;

// The view. It owns both stores, and is as thread-safe.
class AdaptedStore final : public StoreView, public UnroundedValues {
 public:
  // Throws what pair_adapter() throws, with the adapter's folder.
  AdaptedStore(std::unique_ptr<Store> base, std::unique_ptr<Store> adapter, const LoraConfig& config,
               std::string folder, const BaseFacts& facts = {});
  ~AdaptedStore() override;

  const Store& base() const { return source(); }
  const Store& adapter() const { return *adapter_; }
  const std::string& folder() const { return folder_; }  // of the adapter
  // How the adapter changes the tensor; null: not at all.
  const AdaptedTensor* adapted(i64 t) const;
  // "LoRA of rank 4 in ckpt/adapter, 14 of 291 tensors changed"
  std::string text() const;
  const std::string& config_text() const { return config_text_; }  // of adapter_config.json
  const AmendedConfig& amended() const { return amended_; }
  // The notes of a conversion about the adapter and its base.
  const std::vector<std::string>& notes() const { return notes_; }
  // Which modules the adapter's config chooses without factors in the adapter, in a sentence; empty: none.
  const std::string& untouched() const { return untouched_; }
  void add_note(std::string text) { notes_.push_back(std::move(text)); }
  // Says that the base is another model than the adapter's: a warning of every command.
  void warn_of_base(std::string text);
  // Finite values that reads have found to be infinite with the adapter.
  void add_losses(LostValues& lost) const;

  i64 tensor_count() const override { return base().tensor_count() + std::ssize(added_); }
  std::string_view name(i64 t) const override { return is_added(t) ? added(t).name : base().name(t); }
  DType dtype(i64 t) const override { return base().dtype(from(t)); }
  std::span<const i64> dims(i64 t) const override;
  i64 chunk_count(i64 t) const override { return is_added(t) ? 1 : base().chunk_count(t); }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override { return resolve_as(t, index, dtype(t)); }
  bool is_rounded(i64 t) const override { return adapted(t) != nullptr; }
  ChunkData resolve_unrounded(i64 t, i64 index) const override { return resolve_as(t, index, DType::kF32); }
  const UnroundedValues* unrounded() const override { return this; }

 private:
  bool is_added(i64 t) const { return t >= base().tensor_count(); }
  const AdaptedTensor& added(i64 t) const { return *added_[t - base().tensor_count()]; }
  // The tensor of the base that the tensor is made of.
  i64 from(i64 t) const { return is_added(t) ? added(t).from : t; }
  ChunkData resolve_as(i64 t, i64 index, DType type) const;
  void amend();

  std::unique_ptr<Store> adapter_;
  std::string folder_, config_text_;
  i64 rank_ = 0;
  std::vector<AdaptedTensor> adapted_;       // in the order of the base, those that it has not behind them
  std::vector<const AdaptedTensor*> added_;  // these
  std::vector<AdaptedTensor> plain_;         // by tensor of the base, as if the adapter changed nothing
  AmendedConfig amended_;
  std::vector<std::string> notes_;
  std::string untouched_;
  std::unique_ptr<AdapterMemory> memory_;
};

// The view that a store is; null for any other store.
const AdaptedStore* adapted_view(const Store& store);

// The model that adapters change, by its folder or file. Nothing is opened yet; opening an adapter throws
// kUnknownFormat if the base is none of safetensors, kQuantized if it is quantised, kUsage if it is an
// adapter itself; kNotFound for an adapter without weights; what read_lora_config() throws, and what
// AdaptedStore throws.
// `names`: of models whose tensors have other names in memory; null: adapters have the names on disk.
std::shared_ptr<const AdapterBase> adapter_base(std::string path, MakeMemoryNames names = nullptr);
// The model `base` for adapters among `paths`, as a user names both. Throws kUsage if all exist and none is
// an adapter: the answer would be about something else than was meant.
std::shared_ptr<const AdapterBase> adapter_base_for(std::string base, std::span<const std::string> paths,
                                                    const OpenOptions& opening,
                                                    MakeMemoryNames names = nullptr);

// The error for an adapter where a model is needed and no base is named.
Error adapter_alone(const Folder& folder);

// The path of the model that is read at `path`: the base's path, for a folder with an adapter, or the path
// itself.
const std::string& model_path(const std::string& path, const OpenOptions& opening);

}  // namespace mckpt::impl
