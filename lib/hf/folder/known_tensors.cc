// The files of a folder come first, its family's table second.
#include "hf/folder/known_tensors.h"

#include <algorithm>
#include <utility>

#include "core/base/notes.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/assets.h"
#include "hf/folder/model_folder.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/safetensors/index.h"
#include "io/store/names/scale_names.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/store/tensor_numbers.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/needs.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kConfig = "config.json", kIndexEnd = ".safetensors.index.json";

// From the headers, if the folder has all its weights.
bool read_headers(const std::string& path, const OpenOptions& opening, KnownTensors& out) {
  std::unique_ptr<Store> store = open_safetensors_folder(path, opening);
  if (!is_sound(*store)) return false;
  out.of_shards = store->driver().open_ended;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    out.tensors.push_back({std::string(store->name(t)), std::nullopt});
    if (!out.of_shards) out.tensors.back().dims.emplace(store->dims(t).begin(), store->dims(t).end());
  }
  out.origin = cat("the headers in ", path);
  if (!out.of_shards) out.original = original_files(*store);
  return true;
}

bool read_files(const std::string& path, const OpenOptions& opening, KnownTensors& out) {
  Folder folder(path, opening);
  std::string index;
  bool weights = false;
  for (const FolderEntry& e : folder.entries()) {
    weights |= !e.folder && e.name.ends_with(".safetensors");
    if (!e.folder && e.name.ends_with(kIndexEnd)) index = e.name;
  }
  if (weights && read_headers(path, opening, out)) return true;
  if (!index.empty()) {
    out.origin = cat(path, "/", index);
    with_file(out.origin, [&] {
      for (const auto& entry : parse_safetensors_index(json_text(folder.open_file(index))).weight_map)
        out.tensors.push_back({entry.tensor, std::nullopt});
    });
    return true;
  }
  if (std::string text = tensor_table_text(folder); !text.empty()) {
    out.origin = cat(path, "/", kTensorTableName);
    TensorTable table = with_file(out.origin, [&] { return parse_tensor_table(text); });
    out.original = std::move(table.original);
    for (TensorTable::Entry& e : table.tensors) out.tensors.push_back({std::move(e.name), std::move(e.dims)});
  }
  return !out.tensors.empty();
}

using Tensors = std::vector<KnownTensors::Tensor>;

// A model as the table is asked for it. The model to look up. `model`: the folder's config, possibly reduced.
struct Asked {
  const ModelFolder& folder;
  const ModelConfig& model;
  const ClassKind* kind;  // null: the table's own class
};

// The tensors that the family's table promises with experts in that form; nothing if the table cannot say it.
Tensors promised_tensors(const Asked& asked, const MapOptions& form) {
  Tensors out;
  try {
    ModelMap map = ModelMap::promised(asked.model, *asked.folder.config->family, form);
    const std::vector<bool> computed = map.dropped();
    const std::vector<Shape> shapes = map.source_shapes();
    std::vector<bool> unread(shapes.size());
    for (const UnreadTensor& u : map.unread()) unread[u.tensor] = u.of < 0;
    for (i32 t = 0; t < map.sources().size(); t++) {
      if (computed[t]) continue;
      const std::span<const i64> dims = shapes[t].dims();
      out.push_back({std::string(map.sources()[t].name), std::nullopt});
      if (!unread[t]) out.back().dims.emplace(dims.begin(), dims.end());
    }
  } catch (const Error&) {
    out.clear();
  }
  if (out.empty() || !asked.kind) return out;
  return tensors_of_kind(std::move(out), *asked.kind, *asked.folder.config, asked.folder.labels);
}

// The forms in which the family stores experts; one that says nothing, if there is no choice.
std::vector<MapOptions> forms_of(const Family& family) {
  std::vector<MapOptions> out;
  for (Needs form : family.expert_forms) out.push_back({form});
  if (out.empty()) out.push_back({});
  return out;
}

// By name, in any form; names that have one shape in one form and another in another are left out.
TensorShapes promised_shapes(const ModelFolder& folder) {
  TensorShapes out;
  NameSet<std::string> unlike;
  const Asked asked{folder, folder.config->model, class_of(*folder.config).kind};
  for (const MapOptions& form : forms_of(*folder.config->family))
    for (KnownTensors::Tensor& t : promised_tensors(asked, form)) {
      if (!t.dims) continue;
      auto [at, is_new] = out.try_emplace(t.name, *t.dims);
      if (!is_new && at->second != *t.dims) unlike.insert(std::move(t.name));
    }
  for (const std::string& name : unlike) out.erase(name);
  return out;
}

// The tensors that a table promises, compared with a store. Refers to the arguments of its constructor.
class Promises {
 public:
  Promises(const ModelFolder& folder, const Store& store) : folder_(folder), config_(*folder.config) {
    for (i64 t = 0; t < store.tensor_count(); t++) stored_.emplace(store.name(t), store.dims(t));
  }

  // Nothing if no table describes the class of the config.
  Tensors names(Notes& notes) const {
    const ModelClass stated = class_of(config_);
    if (stated.relation == ClassRelation::kUnknown) return {};
    const ClassKind* kind = stated.kind;
    if (!kind) {
      kind = kind_by_head();
      if (kind)
        notes.warn(cat("the checkpoint has ", kind->weight, " and no ", kLanguageHead, ", so it counts as *",
                       kind->ending, "; config.json names ",
                       config_.architecture.empty() ? "no class" : escaped(config_.architecture),
                       ": set architectures there, or the head is not loaded"));
    }
    return names(kind, notes);
  }

 private:
  // Among the kinds whose head the store has in place of a language head, the one with the fewest missing
  // tensors; null if there is none.
  const ClassKind* kind_by_head() const {
    const ClassKind* best = nullptr;
    i64 fewest = 0;
    if (stored_.contains(kLanguageHead)) return best;
    for (const ClassKind& kind : class_kinds()) {
      if (kind.weight.empty() || !stored_.contains(kind.weight)) continue;
      const Tensors all = names(config_.model, &kind);
      if (all.empty()) continue;
      if (i64 n = lacking(all); !best || n < fewest || (n == fewest && !kind.bias.empty())) {
        best = &kind;
        fewest = n;
      }
    }
    return best;
  }

  // With the experts in the form in which the store lacks fewest tensors, and has fewest of another shape.
  Tensors names(const ModelConfig& model, const ClassKind* kind) const {
    Tensors best;
    for (const MapOptions& form : forms_of(*config_.family)) {
      Tensors names = promised_tensors({folder_, model, kind}, form);
      if (best.empty() || (!names.empty() && misfit(names) < misfit(best))) best = std::move(names);
    }
    return best;
  }

  // The tensors of that class, without layers of multi-token prediction if the store has none: transformers
  // reads and writes such models without them.
  Tensors names(const ClassKind* kind, Notes& notes) const {
    Tensors all = names(config_.model, kind);
    if (config_.model.mtp.depths == 0 || lacking(all) == 0) return all;
    ModelConfig plain = config_.model;
    plain.mtp = {};
    Tensors without = names(plain, kind);
    NameSet<std::string_view> kept;
    for (const KnownTensors::Tensor& t : without) kept.insert(t.name);
    auto is_stored = [&](const auto& t) { return !kept.contains(t.name) && stored_.contains(t.name); };
    if (std::ranges::any_of(all, is_stored) || without.empty()) return all;
    notes.warn(std::string(kWithoutPrediction));
    return without;
  }

  i64 lacking(const Tensors& names) const {
    return std::ranges::count_if(names, [&](const auto& n) { return !stored_.contains(n.name); });
  }

  // The number of tensors that one side alone has, and of those with another shape. Where a layer is missing,
  // the form of experts that the store does not have may lack fewer tensors, because it has fewer.
  std::pair<i64, i64> misfit(const Tensors& names) const {
    NameSet<std::string_view> promised;
    for (const KnownTensors::Tensor& t : names) promised.insert(t.name);
    const i64 extra =
        std::ranges::count_if(stored_, [&](const auto& stored) { return !promised.contains(stored.first); });
    const i64 unlike = std::ranges::count_if(names, [&](const auto& n) {
      auto at = stored_.find(n.name);
      return n.dims && at != stored_.end() && !std::ranges::equal(*n.dims, at->second);
    });
    return {lacking(names) + extra, unlike};
  }

  const ModelFolder& folder_;
  const HfConfig& config_;
  NameMap<std::string_view, std::span<const i64>> stored_;
};

// Whether the store has a tensor that the folder has as scales of codes.
bool has_scales(const KnownTensors& own, const Store& store) {
  NameSet<std::string_view> scales;
  for (const KnownTensors::Tensor& t : own.tensors)
    if (!scaled_name(t.name).empty()) scales.insert(t.name);
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (scales.contains(store.name(t))) return true;
  return false;
}

// To the tensors of a folder that has no more than an index of them.
void add_shapes(const ModelFolder& assets, KnownTensors& own) {
  if (!assets.config || std::ranges::any_of(own.tensors, [](const auto& t) { return t.dims.has_value(); }))
    return;
  const TensorShapes shapes = promised_shapes(assets);
  for (KnownTensors::Tensor& t : own.tensors)
    if (auto at = shapes.find(t.name); at != shapes.end()) t.dims = at->second;
  own.shapes_origin = cat(assets.path, "/", kConfig);
}

}  // namespace

KnownTensors listed_tensors(const ModelFolder& folder, const OpenOptions& opening) {
  KnownTensors out;
  if (folder.path.empty() || !read_files(folder.path, opening, out)) return {};
  return out;
}

void amend(KnownTensors& own, const Store& store) {
  const AdaptedStore* view = adapted_view(store);
  if (!view || !view->amended().any() || own.tensors.empty()) return;
  auto dims_of = [&](i64 t) { return std::vector<i64>(view->dims(t).begin(), view->dims(t).end()); };
  NameSet<std::string> listed;
  TensorNumbers numbers(*view);
  for (KnownTensors::Tensor& t : own.tensors) {
    listed.insert(t.name);
    if (const i64 at = numbers.find(t.name); at >= 0) t.dims = dims_of(at);
  }
  for (i64 t = 0; t < view->tensor_count(); t++)
    if (std::string name(view->name(t)); !listed.contains(name)) own.tensors.push_back({name, dims_of(t)});
}

bool has_stacked_experts(const KnownTensors& own) {
  return std::ranges::any_of(own.tensors, [](const KnownTensors::Tensor& t) {
    return std::string_view(t.name).ends_with(".experts.gate_up_proj");
  });
}

TensorShapes known_shapes(const ModelFolder& assets, const KnownTensors& own) {
  TensorShapes out;
  const bool quantized = assets.config && !assets.config->quantized.empty();
  if (!quantized)
    for (const KnownTensors::Tensor& t : own.tensors)
      if (t.dims) out.emplace(t.name, *t.dims);
  if (out.empty() && assets.config) out = promised_shapes(assets);
  return out;
}

// The weights of a quantised folder have other names than the tensors that were trained, unless the store has
// its codes and scales.
KnownTensors known_tensors(const ModelFolder& assets, KnownTensors own, const Store& store, Notes& notes) {
  bool quantized = assets.config && !assets.config->quantized.empty();
  bool itself = format_family(store.format()) == FormatFamily::kSafetensors && assets.path == store.root();
  if (assets.path.empty() || (itself && !own.of_shards)) return {};
  bool codes = quantized && has_scales(own, store);
  if ((!quantized || codes) && !own.origin.empty() && !own.of_shards) {
    add_shapes(assets, own);
    return own;
  }
  KnownTensors out;
  std::string table = cat("mckpt has no table of model_type '", escaped(assets.model_type), "'");
  if (assets.not_read && assets.not_read->code() != Code::kUnknownModel)
    table =
        fault_of_config(assets).empty() ? assets.not_read->message() : "config.json is not read as a model";
  if (assets.config) {
    out.tensors = class_tensors(assets, store, notes);
    out.origin = cat("the table of ", assets.model_type, " with ", assets.path, "/", kConfig);
    table = no_table_text(assets);
  }
  if (!out.tensors.empty()) return out;
  if (store.driver().open_ended) notes.warn(unknown_shards(table));
  notes.note(cat("names   it was not judged whether tensors are missing: ", table, ", and ",
                 escaped(assets.path, 4096), " has no index of the weights"));
  return out;
}

std::vector<KnownTensor> class_tensors(const ModelFolder& folder, const Store& store, Notes& notes) {
  return Promises(folder, store).names(notes);
}

std::string no_table_text(const ModelFolder& folder) {
  return cat("no table describes the class ", escaped(folder.config->architecture));
}

std::string unknown_shards(std::string_view why) {
  return cat(
      "whether the shards of the last ranks are there cannot be known: no shard says how large a tensor is, ",
      "and ", why);
}

}  // namespace mckpt::impl
