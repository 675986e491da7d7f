// Compares a Hugging Face folder with what an export of the checkpoint would write into it: the export's job
// is made, and its writes are compared with the folder's files.

#include "convert/compare/against.h"
#include "convert/compare/checks/casts.h"
#include "convert/compare/checks/types.h"
#include "convert/compare/compare.h"
#include "convert/compare/differences/comparison.h"
#include "convert/compare/differences/tensors.h"
#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/key_table.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/checkpoint.h"
#include "convert/open/options.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "hf/model_options.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/store/store.h"
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

// The folder is opened twice, as a store and as a model. Throws kReadFailed if the two do not list the same
// tensors, kUnsupportedTensor for a tensor in several pieces.
void refuse_other_table(const Store& tested, const SourceTable& tensors) {
  for (i32 t = 0; t < tensors.size(); t++) {
    // The table is that of the same folder, in its order.
    if (t >= tested.tensor_count() || tested.name(t) != tensors[t].name)
      throw Error(Code::kReadFailed, "the folder was changed since it was looked at")
          .file(tested.root())
          .tensor(tensors[t].name);
    if (tested.chunk_count(t) != 1)
      throw Error(Code::kUnsupportedTensor, "a tensor is stored in several pieces").tensor(tensors[t].name);
  }
}

// The tensors that can be compared, as pairs (tensor, key) of equal numbers; the others are reported.
std::vector<std::pair<i32, i32>> compared_tensors(const ModelMap& map, const Store& tested,
                                                  const std::optional<Names>& names, Comparison& comparison) {
  std::vector<bool> dropped = map.dropped();
  std::vector<std::pair<i32, i32>> compared;
  for (i32 t = 0; t < map.sources().size(); t++) {
    std::string name(map.sources()[t].name);
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

bool against_export(const Store& tested, const std::string& path, std::unique_ptr<Store> source,
                    const Comparing& c) {
  if (dequantized_view(tested) && !c.options.counting.all)
    throw Error(Code::kUsage,
                "a quantised model is compared with a checkpoint as the source, not as what was made")
        .file(path)
        .help(cat("give the two the other way round: ", escaped(source->root(), 4096),
                  ", with this folder as the source"));
  HfModelOptions reading = c.options.opening.model;
  reading.kept_map = kept_map(*source);
  HfModel model = open_hf_model(path, reading);
  refuse_other_table(tested, model.map->sources());
  std::optional<Names> names = listed_tensors(*source, c.options.opening.assets);
  std::vector<std::pair<i32, i32>> compared = compared_tensors(*model.map, tested, names, c.comparison);
  ListedChunks whole(tested, compared);
  CheckpointOptions how = c.options.opening;
  how.records_apart = true;
  CheckpointModel checkpoint(std::move(source), std::move(model), how);
  c.note_oddities(checkpoint);
  std::vector<std::vector<i64>> stored = tensors_behind(checkpoint);
  std::vector<std::optional<DType>> types = checkpoint.stored_types();
  std::vector<ComparedTypes> casts;
  TypeCheck asked(c.options.types);
  for (auto [t, key] : compared) {
    if (!types[t] || !c.comparison.chooses(tested.name(t))) continue;
    casts.push_back({std::string(tested.name(t)), *types[t], tested.dtype(t)});
    asked.add(tested.name(t), asked.claim().of(tested.name(t), *types[t]), tested.dtype(t));
  }
  bool as_asked = asked.add_to(c.report);
  if (!c.options.counting.all) warn_of_casts(casts, c.report);
  c.report.compared_as =
      "each tensor of the Hugging Face model with the one that exporting the checkpoint would write";
  auto job = [&](const ChunkList& some) {
    return export_job(&checkpoint.store(), checkpoint.keys(), checkpoint.chunks(), some);
  };
  auto made_of = [&](i32 tensor) { return stored[tensor]; };
  auto name = [&](i32 tensor) { return std::string(checkpoint.map().sources()[tensor].name); };
  return c.comparison.run({tested, whole, checkpoint.store(), std::ssize(compared), name, job, made_of},
                          c.report) &&
         as_asked;
}

}  // namespace mckpt::impl
