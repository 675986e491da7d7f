// Sides that meet at the items of a model: one is a checkpoint of Megatron, the other has the model's own tensors.
#include <algorithm>
#include <iterator>
#include <set>

#include "convert/compare/checks/types.h"
#include "convert/compare/comparing.h"
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
#include "io/verify/verify.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
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

// The tensors that can be compared, as pairs (tensor, key) of equal numbers; the others are reported. Throws
// kUnsupportedTensor for a tensor in several pieces.
std::vector<std::pair<i32, i32>> compared_tensors(const ModelMap& map, const Store& tested,
                                                  const std::optional<Names>& names, Comparison& comparison) {
  std::vector<bool> dropped = map.dropped();
  std::vector<std::pair<i32, i32>> compared;
  for (i32 t = 0; t < map.sources().size(); t++) {
    std::string name(map.sources()[t].name);
    if (tested.chunk_count(t) != 1)
      throw Error(Code::kUnsupportedTensor, "a tensor is stored in several pieces").tensor(name);
    if (dropped[t]) continue;
    if (!names || names->contains(name))
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
