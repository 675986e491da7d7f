// Which tensors a model's Hugging Face folder has, as far as it is known: what its files list, or what the
// table of its family promises for the class that config.json names.
//
//   model.safetensors.index.json   lm_head.weight, ...              names
//   headers, mckpt_tensors.json    lm_head.weight [151936, 1024]    names and shapes
//   config.json with a table       the same, by its sizes
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hf/folder/model_class.h"
#include "io/safetensors/original.h"

namespace mckpt::impl {

class Notes;
class Store;
struct ModelFolder;
struct OpenOptions;

// The warning of a model whose config states layers of multi-token prediction that nobody trained.
inline constexpr std::string_view kWithoutPrediction =
    "the checkpoint has no layers of multi-token prediction, which config.json states; transformers uses the model without them";

// The tensors that the model's Hugging Face folder has.
struct KnownTensors {
  using Tensor = KnownTensor;
  std::vector<Tensor> tensors;                    // in the order of the folder; empty: they are not known
  std::string origin;                             // for messages: "DIR/model.safetensors.index.json"
  std::string shapes_origin{};                    // of the shapes, if that is something else
  std::optional<SafetensorsOriginal> original{};  // the files, if the headers are known
  bool of_shards = false;                         // of ranks: what the lost ones had is in none of the others
};

// The tensors that the files of the folder list. The first that the folder has is asked: safetensors headers,
// their index, mckpt's own list. Without any of them, or without a folder, the result is empty. Throws what
// reading the headers throws.
KnownTensors listed_tensors(const ModelFolder& folder, const OpenOptions& opening);

// The same of a store with an adapter in it, which may have other shapes and tensors that its base has not.
void amend(KnownTensors& own, const Store& store);

// The shapes that the folder's files state, or else the shapes by the family's table with the config. `own`:
// what listed_tensors() returned for the folder.
TensorShapes known_shapes(const ModelFolder& assets, const KnownTensors& own);

// Whether the folder has the experts of a layer as one tensor.
bool has_stacked_experts(const KnownTensors& own);

// The tensors that the folder lists, or the tensors of the family's table with the class that config.json
// names; if a family stores experts in several forms, the form that `store` has. A head in `store` counts
// more than the name of a class with a language head, since programs that train a classifier from a language
// model leave its config as it was. The ground of the judgement becomes a note. `own`: what listed_tensors()
// returned for the folder. pre: `store` has the model's own names.
KnownTensors known_tensors(const ModelFolder& assets, KnownTensors own, const Store& store, Notes& notes);

// The same by the family's table alone, whatever the files of the folder list; empty if no table describes
// the class. pre: the folder has a `config`.
std::vector<KnownTensor> class_tensors(const ModelFolder& folder, const Store& store, Notes& notes);

// A warning of shards of ranks (io/safetensors/shards.h) that nothing judges: the last ones may be lost.
// `why`: "no config.json is beside it".
std::string unknown_shards(std::string_view why);

// For messages: "no table describes the class LlamaForRewardModel". pre: as above.
std::string no_table_text(const ModelFolder& folder);

}  // namespace mckpt::impl
