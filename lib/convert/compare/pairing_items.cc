// Sides that meet at the items of a model: one is a checkpoint of Megatron, the other has the model's own
// tensors.
#include <algorithm>
#include <iterator>
#include <set>

#include "convert/compare/checks/types.h"
#include "convert/compare/comparing.h"
#include "convert/compare/differences/read_values.h"
#include "convert/compare/differences/tensors.h"
#include "convert/compare/key_types.h"
#include "convert/compare/pairing.h"
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/sides.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "io/dcp/keys/key.h"
#include "io/file/folder.h"
#include "io/store/store.h"
#include "io/store/store_view.h"
#include "io/verify/verify.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {
namespace {

using Names = NameSet<std::string>;

// The tensors that an export of the checkpoint writes, as mckpt listed them when it made the checkpoint.
// Nothing if the checkpoint has no complete list, or the caller names other assets.
std::optional<Names> listed_tensors(const Store& checkpoint, const std::optional<std::string>& assets) {
  std::string own = assets ? "" : own_assets(checkpoint);
  std::string text = own.empty() ? "" : tensor_table_text(Folder(own, checkpoint.opening()));
  if (text.empty()) return std::nullopt;
  TensorTable table = with_file(cat(own, "/", kTensorTableName), [&] { return parse_tensor_table(text); });
  if (!table.complete) return std::nullopt;
  Names names;
  for (TensorTable::Entry& e : table.tensors) names.insert(std::move(e.name));
  return names;
}

constexpr const char* kNotKept = "no conversion keeps them";
constexpr const char* kBesideModel = "beside the model, whose tensors alone are compared";

bool is_of_vocab(const CheckpointModel& checkpoint, const CheckpointKey& key) {
  const ModelParameter& p = checkpoint.keys().parameter(key);
  return p.row->rule == "vocab" && p.sources.size() == 1 && p.sources[0] >= 0;
}

// Rows of the vocabulary behind the words of the model.
i64 padding_rows(const CheckpointModel& checkpoint) {
  return std::max<i64>(0, checkpoint.setup().vocab_rows - checkpoint.map().model().vocab);
}

std::string padding_text(const CheckpointModel& checkpoint) {
  return cat(counted(padding_rows(checkpoint), "row"), " of padding behind the ",
             counted(checkpoint.map().model().vocab, "word"), " of the vocabulary");
}

// Tensors of the checkpoint for which a folder of the model has no place, such as states of the optimizer.
void name_states_beside(const CheckpointModel& checkpoint, Comparison& comparison) {
  for (i64 t = 0; t < checkpoint.store().tensor_count(); t++)
    if (const std::string_view name = checkpoint.store().name(t); !model_key(name))
      comparison.leave_beside(kBesideModel, std::string(name));
  for (const std::string& name : checkpoint.left_states()) comparison.leave_beside(kBesideModel, name);
}

// The tensor of a vocabulary in a checkpoint, less its padding, under the name of a tensor that repeats it.
class Repeated final : public StoreView {
 public:
  Repeated(const Store& checkpoint, i64 tensor, i64 rows, std::string name)
      : StoreView(checkpoint), tensor_(tensor), name_(std::move(name)) {
    const std::span<const i64> dims = checkpoint.dims(tensor);
    dims_.assign(dims.begin(), dims.end());
    dims_[0] = rows;
    for (i64 c = 0; c < checkpoint.chunk_count(tensor); c++) {
      const Chunk chunk = checkpoint.chunk(tensor, c);
      if (chunk.offsets[0] >= rows) continue;
      std::vector<i64>& sizes = sizes_.emplace_back(chunk.sizes.begin(), chunk.sizes.end());
      sizes[0] = std::min(sizes[0], rows - chunk.offsets[0]);
      chunks_.push_back(c);
    }
  }

  i64 tensor_count() const override { return 1; }
  std::string_view name(i64) const override { return name_; }
  DType dtype(i64) const override { return source().dtype(tensor_); }
  std::span<const i64> dims(i64) const override { return dims_; }
  i64 chunk_count(i64) const override { return std::ssize(chunks_); }
  Chunk chunk(i64, i64 index) const override {
    Chunk out = source().chunk(tensor_, chunks_[static_cast<std::size_t>(index)]);
    out.sizes = sizes_[static_cast<std::size_t>(index)];
    return out;
  }
  ChunkData resolve(i64, i64 index) const override {
    return source().resolve(tensor_, chunks_[static_cast<std::size_t>(index)]);
  }

 private:
  i64 tensor_;
  std::string name_;
  std::vector<i64> dims_, chunks_;
  std::vector<std::vector<i64>> sizes_;
};

// Compares tensors of the source that repeat another one, as an output layer repeats the embedding that it is
// tied to, with what the checkpoint has of that one. Returns how many there are.
i64 compare_copies(const CheckpointModel& checkpoint, const Store& source, const Comparing& c) {
  i64 count = 0;
  const KeyTable& keys = checkpoint.keys();
  const SourceTable& tensors = checkpoint.map().sources();
  for (const UnreadTensor& u : checkpoint.map().unread()) {
    const std::string name(tensors[u.tensor].name);
    if (u.of < 0 || !c.comparison.chooses(name)) continue;
    i32 stored = -1;
    for (i32 k = 0; k < keys.size() && stored < 0; k++)
      if (is_of_vocab(checkpoint, keys[k]) && keys.parameter(keys[k]).sources[0] == u.of)
        stored = checkpoint.tensor_of_key(keys[k].name);
    if (stored >= 0) {
      const Repeated repeated(checkpoint.store(), stored, checkpoint.map().model().vocab, name);
      if (compare_read_values(repeated, source, 0, u.tensor, c.comparison, c.observer)) {
        count++;
        continue;
      }
    }
    c.comparison.leave_beside(std::string(u.reason), name);
  }
  return count;
}

// The tensors that can be compared, as pairs (tensor, key) of equal numbers; the others are reported. Throws
// kUnsupportedTensor for a tensor in several pieces.
std::vector<std::pair<i32, i32>> compared_tensors(const ModelMap& map, const Store& tested,
                                                  const std::optional<Names>& names, Comparison& comparison) {
  const std::vector<bool> dropped = map.dropped();
  // An export of a model that came without the copies writes none; a folder that has them has the same model.
  std::set<i32> copies;
  for (const UnreadTensor& u : map.unread())
    if (u.of >= 0) copies.insert(u.tensor);
  std::vector<std::pair<i32, i32>> compared;
  for (i32 t = 0; t < map.sources().size(); t++) {
    std::string name(map.sources()[t].name);
    if (tested.chunk_count(t) != 1)
      throw Error(Code::kUnsupportedTensor, "a tensor is stored in several pieces").tensor(name);
    if (dropped[t])
      comparison.leave_beside(kNotKept, name);
    else if (!names || names->contains(name) || copies.contains(t))
      compared.emplace_back(t, t);
    else
      comparison.leave_out({.code = Code::kUnequal,
                            .tensor = name,
                            .message = cat("the tensor is not in the model that the checkpoint was made of: ",
                                           kAssetsFolder, "/", kTensorTableName, " does not list it")},
                           {UnlikeTensor::Kind::kOnlyTested, name, type_and_shape(tested, t)});
  }
  return compared;
}

// For every tensor of the model, the tensors of the checkpoint that contain items of it.
std::vector<std::vector<i64>> tensors_behind(const CheckpointModel& checkpoint) {
  const KeyTable& keys = checkpoint.keys();
  const ModelMap& map = checkpoint.map();
  std::vector<std::vector<i64>> stored(map.sources().size());
  for (i32 k = 0; k < keys.size(); k++)
    if (i32 at = checkpoint.tensor_of_key(keys[k].name); at >= 0)
      for (i32 t : keys.parameter(keys[k]).sources)
        if (t >= 0) stored[t].push_back(at);
  for (const UnreadTensor& u : map.unread())
    if (u.of >= 0) stored[u.tensor] = stored[u.of];  // a copy has the items of what it repeats
  return stored;
}

}  // namespace

// An import: the keys of the tested checkpoint, made of the tensors of the source.
void Pairing::pair_keys(const Comparing& c) {
  const CheckpointModel& checkpoint = *sides_.tested.sharded;
  TypeCheck asked(c.options.types);
  ask_keys(checkpoint, nullptr, asked);
  as_asked_ = asked.add_to(c.report);
  const KeyTable& keys = checkpoint.keys();
  chunks_ = &checkpoint.chunks(), tensors_ = keys.size();
  job_ = [this, &keys](const ChunkList& some) { return import_job(sides_.source_store(), keys, some); };
  made_of_ = [&keys](i32 key) {
    std::vector<i64> tensors;
    for (i32 t : keys.parameter(keys[key]).sources)
      if (t >= 0) tensors.push_back(t);
    return tensors;
  };
  name_ = [&keys](i32 key) { return cat(kModelFront, keys[key].name); };
  bool vocab = false;  // padding is left out, which an import writes as zeros
  for (i32 k = 0; k < keys.size() && c.options.counting.all; k++)
    vocab |=
        padding_rows(checkpoint) > 0 && is_of_vocab(checkpoint, keys[k]) && c.comparison.chooses(name_(k));
  if (vocab) {
    rows_ = [&checkpoint, &keys](i32 key) -> std::optional<i64> {
      if (!is_of_vocab(checkpoint, keys[key])) return std::nullopt;
      return checkpoint.map().model().vocab;
    };
    name_padding(padding_text(checkpoint), c.report);
  }
  name_states_beside(checkpoint, c.comparison);
  const std::vector<bool> dropped = checkpoint.map().dropped();
  for (i32 t = 0; t < std::ssize(dropped); t++)
    if (dropped[t]) c.comparison.leave_beside(kNotKept, std::string(checkpoint.map().sources()[t].name));
  tensors_ += compare_copies(checkpoint, sides_.source_store(), c);
  std::set<i64> chosen;  // tensors of the source
  for (i32 k = 0; k < keys.size(); k++)
    if (c.comparison.chooses(name_(k))) std::ranges::copy(made_of_(k), std::inserter(chosen, chosen.end()));
  const SourceTable& tensors = checkpoint.map().sources();
  const std::vector<std::optional<DType>> stored = checkpoint.stored_types();
  for (i32 t = 0; t < tensors.size(); t++)
    if (stored[t] && tensors[t].header_known && chosen.contains(t))
      casts_.push_back({std::string(tensors[t].name), tensors[t].dtype, *stored[t]});
}

// An export: the tensors of the tested folder, made of the chunks of the source.
void Pairing::pair_tensors(const Comparing& c) {
  const CheckpointModel& checkpoint = *sides_.source.sharded;
  const Store& tested = sides_.tested_store();
  const std::vector<std::pair<i32, i32>> compared = compared_tensors(
      checkpoint.map(), tested, listed_tensors(checkpoint.on_disk(), c.options.opening.assets), c.comparison);
  name_states_beside(checkpoint, c.comparison);
  const KeyTable& keys = checkpoint.keys();
  bool vocab = false;  // an export leaves padding out
  for (i32 k = 0; k < keys.size() && padding_rows(checkpoint) > 0; k++)
    vocab |= is_of_vocab(checkpoint, keys[k]) &&
             c.comparison.chooses(checkpoint.map().sources()[keys.parameter(keys[k]).sources[0]].name);
  if (vocab) name_padding(padding_text(checkpoint), c.report);
  made_ = std::make_unique<ListedChunks>(tested, compared);
  chunks_ = made_.get(), tensors_ = std::ssize(compared);
  behind_ = tensors_behind(checkpoint);
  const std::vector<std::optional<DType>> types = checkpoint.stored_types();
  TypeCheck asked(c.options.types);
  for (auto [t, key] : compared) {
    if (!types[t] || !c.comparison.chooses(tested.name(t))) continue;
    casts_.push_back({std::string(tested.name(t)), *types[t], tested.dtype(t)});
    asked.add(tested.name(t), asked.claim().of(tested.name(t), *types[t]), tested.dtype(t));
  }
  as_asked_ = asked.add_to(c.report);
  job_ = [&checkpoint](const ChunkList& some) {
    return export_job(&checkpoint.store(), checkpoint.keys(), checkpoint.chunks(), some);
  };
  made_of_ = [this](i32 tensor) { return behind_[tensor]; };
  name_ = [&checkpoint](i32 tensor) { return std::string(checkpoint.map().sources()[tensor].name); };
}

}  // namespace mckpt::impl
