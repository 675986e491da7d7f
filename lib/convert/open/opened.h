// Opened: what opening a path gives, whatever its format. Planners, comparisons and commands ask it and not
// the format.
//
//   Qwen3-0.6B/                      table       tensors of a model with the map that its family's table gives
//   a safetensors file, FSDP2, verl  own         tensors under the model's own names; no table is needed
//   fsdp_dtensor, torch_dist, ranks  sharded     keys of Megatron with their model, as a side: keys and chunks
//   anything, as it is               plain       tensors as the files have them, without a meaning
//
// One of the four is set, or none if a model is in memory. A conversion keeps what it opened until it has
// run.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/notes.h"
#include "io/copy/side_files.h"
#include "io/file/open_options.h"
#include "io/safetensors/original.h"
#include "io/store/soundness.h"

namespace mckpt::impl {

class AdaptedStore;
class CheckpointModel;
class Store;
struct HfModel;
struct ModelFolder;
struct OwnModel;

struct Opened {
  Opened();
  Opened(Opened&&) noexcept;
  Opened& operator=(Opened&&) noexcept;
  ~Opened();

  std::shared_ptr<HfModel> table;  // a sharded checkpoint that is compared with the model shares it
  std::unique_ptr<OwnModel> own;
  std::unique_ptr<CheckpointModel> sharded;
  std::unique_ptr<Store> plain;
  // The store as which the path was opened at first, where the model is read in another way; null: it is not.
  std::unique_ptr<Store> looked_at;

  std::vector<std::string> folders{};  // and files that are read, as a report of the source names them
  OpenOptions opening{};               // how files are opened
  std::vector<Oddities> damage{};      // that was accepted, or is only odd
  Notes notes{};                       // of opening
  Notes left_out{};                    // what is there and not the model's
  i64 objects = 0;                     // that are not the model's
  bool has_sums = true;  // sums of the bytes are known: the format has them, a manifest or an archive
  // The base with an adapter in it, which is in `own` or `table`; null: there is none.
  const AdaptedStore* adapted = nullptr;
  // The folder of the model, where that is not the folder of its weights; null: it is, or there is none.
  std::unique_ptr<ModelFolder> folder;
  // Names of tensors beside a model under its own names, of which `table` was made; and of those, the tensors
  // that may be weights.
  std::vector<std::string> beside{}, floats_beside{};
  std::optional<SafetensorsOriginal> own_original{};  // what `own` knew of it, where `table` was made of it

  // Nothing is open: the model is in memory.
  bool in_memory() const { return !table && !own && !sharded && !plain; }
  // Under the names that were asked for.
  const Store& store() const;
  // As the files have them.
  const Store& on_disk() const;
  // With a map between its tensors and Megatron's parameters; null: no table was asked for.
  const HfModel* model() const;
  // The files in which the model's own folder has its tensors; nothing where they are not known.
  std::optional<SafetensorsOriginal> original() const;
  // Config, tokenizer, code; with the table of tensors, unless that is "". Nothing of a model that was made
  // in memory.
  SideFiles assets(std::string_view tensor_table = "") const;
  // The same with the table of the model's tensors, by which an export finds their names, order and files
  // again. pre: model() is known.
  SideFiles assets_with_table() const;
};

}  // namespace mckpt::impl
