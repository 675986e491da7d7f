// Chooses the tensors of the result: names from the view, order from the save, ties, and what the folder has.
#include "convert/open/own_model.h"

#include <algorithm>
#include <map>

#include "convert/open/damage.h"
#include "convert/open/lost_shards.h"
#include "convert/open/megatron_names.h"
#include "convert/open/openers.h"
#include "convert/open/unsaid_order.h"
#include "convert/open/without_wrappers.h"
#include "convert/own/disk_names.h"
#include "convert/own/names.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/folder/computed_buffers.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/tied_names.h"
#include "io/dcp/check/check.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"
#include "mappings/model/accounting.h"

namespace mckpt::impl {
namespace {

// By own name, the place in the state dict that was saved.
NameMap<std::string, i64> saved_places(const Store& store, std::string_view section) {
  NameMap<std::string, i64> places;
  if (format_family(store.format()) != FormatFamily::kDcp) return places;
  for (std::string_view name : dcp_saved_order(store))
    if (name.starts_with(section)) places.emplace(name.substr(section.size()), std::ssize(places));
  return places;
}

// The tensors of the store in the order of the save. A tensor that the save has under another name follows
// the one before it in the store.
std::vector<OwnTensor> in_saved_order(const Store& store, std::string_view section) {
  NameMap<std::string, i64> places = saved_places(store, section);
  std::vector<std::pair<i64, i32>> order;
  i64 last = -1;
  for (i32 t = 0; t < store.tensor_count(); t++) {
    if (auto at = places.find(std::string(store.name(t))); at != places.end()) last = at->second;
    order.emplace_back(last, t);
  }
  std::ranges::stable_sort(order, {}, &std::pair<i64, i32>::first);
  std::vector<OwnTensor> out;
  for (auto [place, t] : order) out.push_back({std::string(store.name(t)), t});
  return out;
}

// Compares the tensors of one model with those that its folder has. Refers to its arguments.
class Chooser {
 public:
  Chooser(OwnModel& model, KnownTensors own, const OwnModelOptions& options)
      : model_(model), store_(*model.store), options_(options) {
    for (const KnownTensors::Tensor& t : own.tensors) listed_.insert(t.name);
    if (options.complete) known_ = known_tensors(model.folder, std::move(own), store_, model.notes);
    for (const KnownTensors::Tensor& t : known_.tensors) names_.insert(t.name);
    for (i32 t = 0; t < store_.tensor_count(); t++) stored_.emplace(store_.name(t), t);
  }

  void choose() {
    leave_copies_out();
    if (known_.tensors.empty()) return;
    model_.judged_by = known_.origin;
    model_.original = std::move(known_.original);
    add_tied();
    refuse_misfits();
    name_extra();
  }

 private:
  bool is_known(std::string_view name) const { return names_.contains(name); }

  // Whether the folder has the tensor, by what is known of it.
  bool is_own(const std::string& n) const { return names_.empty() ? listed_.contains(n) : is_known(n); }
  bool tied() const { return model_.folder.tied.value_or(false); }

  // A head with nothing in front has the name of a tie to every embedding, also to the embedding of a
  // reference model beside the model. It is known to be the head of this one if every other embedding of this
  // shape is tied to this one.
  bool is_only_embedding(const OwnTensor& embedding) const {
    return std::ranges::none_of(model_.tensors, [&](const OwnTensor& o) {
      return o.tensor != embedding.tensor && is_embedding(o.name) &&
             std::ranges::equal(store_.dims(o.tensor), store_.dims(embedding.tensor)) &&
             tie_of_names(o.name, embedding.name) != Tie::kModule;
    });
  }

  // Whether two tensors are one parameter of the model if they have the same bytes. Where the tensors of the
  // folder are not known, only a head that the config ties is, and an embedding beside the one that encoder
  // and decoder share.
  bool may_be_tied(const OwnTensor& copy, const OwnTensor& of) const {
    const Tie tie = tie_of_names(copy.name, of.name);
    if (names_.empty() && listed_.empty())
      return (tie == Tie::kHead && tied() && is_head(copy.name)) ||
             (tie == Tie::kModule && model_.folder.tied.value_or(true) && is_shared_embedding(of.name));
    if (tie == Tie::kHead && is_embedding(copy.name) && !is_only_embedding(copy)) return false;
    return is_own(of.name) &&
           (tie == Tie::kModule || (tie == Tie::kHead && model_.folder.tied.value_or(true)));
  }

  // Tensors that the folder does not have because they are others that it has: those that share the storage
  // of one, and those that the names and the bytes show to be tied. All other tensors are written, whatever
  // they are equal to.
  void leave_copies_out() {
    leave_shared_out();
    std::vector<std::pair<i64, i64>> pairs;
    for (const OwnTensor& copy : model_.tensors) {
      if (is_own(copy.name) || !has_name_of_tie(copy.name)) continue;
      for (const OwnTensor& of : model_.tensors)
        if (of.tensor != copy.tensor && may_be_tied(copy, of) &&
            std::ranges::equal(store_.dims(copy.tensor), store_.dims(of.tensor)))
          pairs.emplace_back(copy.tensor, of.tensor);
    }
    std::vector<bool> same = have_same_bytes(store_, pairs, options_.threads);
    std::vector<std::string_view> kept;
    for (std::size_t i = 0; i < pairs.size(); i++) {
      auto [copy, of] = pairs[i];
      bool last = i + 1 == pairs.size() || pairs[i + 1].first != copy;
      bool found = !model_.copies.empty() && model_.copies.back().first == copy;
      if (same[i] && !found) model_.copies.emplace_back(copy, of);
      if (!last || same[i] || found || !tied() || !is_head(store_.name(copy))) continue;
      if (!options_.keep_unlike_heads) refuse_unlike(copy, of);
      model_.unlike.push_back(unlike_tie(store_.name(copy), store_.name(of)));
      kept.push_back(store_.name(copy));
    }
    if (!names_.empty()) names_.insert(kept.begin(), kept.end());
    erase_copies();
    note_copies();
  }

  void leave_shared_out() {
    std::map<std::pair<i32, i64>, std::vector<i32>> own;  // by the record of the first chunk
    auto record = [&](i32 t) {
      const Chunk first = store_.chunk(t, 0);
      return std::pair(first.file, first.record_offset);
    };
    for (const OwnTensor& o : model_.tensors)
      if (is_own(o.name) && store_.chunk_count(o.tensor) > 0) own[record(o.tensor)].push_back(o.tensor);
    if (own.empty()) return;
    for (const OwnTensor& copy : model_.tensors) {
      if (is_own(copy.name) || store_.chunk_count(copy.tensor) == 0) continue;
      auto at = own.find(record(copy.tensor));
      if (at == own.end()) continue;
      auto of =
          std::ranges::find_if(at->second, [&](i32 t) { return share_storage(store_, copy.tensor, t); });
      if (of != at->second.end()) model_.copies.emplace_back(copy.tensor, *of);
    }
    erase_copies();
  }

  // A head that the config ties is expected; no note.
  void note_copies() {
    std::vector<std::string_view> names;
    for (auto [copy, of] : model_.copies)
      if (!tied() || !is_head(store_.name(copy))) names.push_back(store_.name(copy));
    if (names.empty()) return;
    const bool one = names.size() == 1;
    model_.notes.note(cat("tied    ", listed(names, 3), one ? " is" : " are", " left out, as in ",
                          escaped(known_.origin.empty() ? model_.folder.path : known_.origin, 4096), ": ",
                          one ? "a copy of a tensor that is written" : "copies of tensors that are written"));
  }

  void erase_copies() {
    std::erase_if(model_.tensors, [&](const OwnTensor& o) {
      return std::ranges::find(model_.copies, o.tensor, &std::pair<i32, i32>::first) != model_.copies.end();
    });
  }

  [[noreturn]] void refuse_unlike(i64 head, i64 embedding) const {
    const std::string unlike = unlike_tie(store_.name(head), store_.name(embedding));
    throw unlike_ties({&unlike, 1}).file(store_.root());
  }

  // A head that the folder has, of a model that was saved with the embedding alone.
  void add_tied() {
    if (!model_.folder.tied.value_or(false)) return;
    std::vector<const OwnTensor*> embeddings;
    for (const OwnTensor& o : model_.tensors)
      if (is_embedding(o.name)) embeddings.push_back(&o);
    if (embeddings.size() != 1) return;
    i32 source = embeddings[0]->tensor;
    for (const KnownTensors::Tensor& t : known_.tensors)
      if (is_head(t.name) && !stored_.contains(t.name)) model_.tensors.push_back({t.name, source, true});
  }

  void refuse_misfits() const {
    NameSet<std::string_view> written;
    for (const OwnTensor& o : model_.tensors) written.insert(o.name);
    std::vector<std::string> missing;
    Mismatches mismatches;
    for (const KnownTensors::Tensor& t : known_.tensors)
      if (!written.contains(t.name)) {
        missing.push_back(escaped(t.name));
        mismatches.missing(t.name);
      }
    if (2 * std::ssize(missing) > std::ssize(known_.tensors)) refuse_other_names(missing);
    add_other_shapes(mismatches);
    if (mismatches.empty()) return;
    const std::string shapes = known_.shapes_origin.empty() ? known_.origin : known_.shapes_origin;
    Error e = mismatches.error();
    e.file(store_.root());
    e.expected(missing.empty() ? cat("the shapes of ", escaped(shapes, 4096))
                               : cat(counted(std::ssize(known_.tensors), "tensor"), ", by ",
                                     escaped(known_.origin, 4096)));
    if (std::string extra = missing.empty() ? "" : extra_names(); !extra.empty())
      e.found(cat("in the checkpoint, but not in the model: ", extra));
    if (options_.assets && missing.empty())
      e.help(cat("check that ", escaped(model_.folder.path, 4096), " is the folder of this model"));
    throw e;
  }

  // A model whose names in memory differ from the names of its folder, in a way that no rule of
  // convert/own/disk_rules.h says. Returns where the checkpoint has no names of its own.
  void refuse_other_names(const std::vector<std::string>& missing) const {
    std::vector<std::string_view> own;
    for (const OwnTensor& o : model_.tensors)
      if (!is_known(o.name)) own.push_back(o.name);
    if (2 * std::ssize(own) <= std::ssize(model_.tensors)) return;
    throw Error(Code::kUnaccounted, "most tensors have other names than in the model's folder")
        .file(store_.root())
        .expected(cat(listed(missing, 3), ", by ", escaped(known_.origin, 4096)))
        .found(listed(own, 3))
        .note(cat("docs/formats/own_names.md lists the models whose changed names mckpt knows; this one has ",
                  "model_type ", escaped(model_.folder.model_type)))
        .help("for a model that no table has, `assets` with config.json alone keeps the names");
  }

  void add_other_shapes(Mismatches& out) const {
    for (const KnownTensors::Tensor& t : known_.tensors) {
      auto at = stored_.find(t.name);
      if (!t.dims || at == stored_.end() || std::ranges::equal(*t.dims, store_.dims(at->second))) continue;
      out.wrong_shape(t.name, dims_to_string(*t.dims), "", dims_to_string(store_.dims(at->second)));
    }
  }

  std::string extra_names() const {
    std::vector<std::string_view> extra;
    for (const OwnTensor& o : model_.tensors)
      if (!is_known(o.name)) extra.push_back(o.name);
    return extra.empty() ? "" : listed(extra);
  }

  void name_extra() {
    if (std::string extra = extra_names(); !extra.empty())
      model_.notes.warn(
          cat("the checkpoint has tensors beside those of ", escaped(known_.origin, 4096), ": ", extra));
  }

  OwnModel& model_;
  const Store& store_;
  const OwnModelOptions& options_;
  KnownTensors known_;
  NameSet<std::string_view> names_;
  NameSet<std::string> listed_;  // by the files of the model's folder
  NameMap<std::string_view, i32> stored_;
};

void refuse_unknown(const Store& store, const ModelFolder& folder) {
  if (!folder.path.empty()) return;
  throw Error(Code::kUnknownAssets,
              "no config.json was found, and a Hugging Face folder needs the one of its model")
      .file(store.root())
      .help("`assets` HF_DIR   the folder of the model, or one with its config.json and tokenizer");
}

// The tensors that the files of the folder list, or else its table.
ExpectedTensors expected_tensors(const ModelFolder& folder, const KnownTensors& own) {
  ExpectedTensors out;
  for (const KnownTensors::Tensor& t : own.tensors) out.emplace(t.name, t.dims);
  if (out.empty())
    for (const auto& [name, dims] : known_shapes(folder, own)) out.emplace(name, dims);
  return out;
}

// The shapes of a model whose tensors were saved flat. Its config is needed where names are kept, too.
FlatModel flat_model(const Store& source, const OwnModelOptions& options) {
  const ModelFolder folder =
      find_model_folder(source, options.source, options.shapes ? options.shapes : options.assets);
  return {known_shapes(folder, listed_tensors(folder, source.opening())), folder.model_type};
}

}  // namespace

bool has_own_names(const Store& store) {
  std::optional<DcpDialect> dialect = dcp_dialect(store);
  if (format_family(store.format()) == FormatFamily::kMegatron || dialect == DcpDialect::kTorchDist ||
      dialect == DcpDialect::kFsdpDtensor)
    return false;
  return !has_megatron_names(store);
}

OwnModel open_own_model(std::unique_ptr<Store> source, const OwnModelOptions& options) {
  if (!has_own_names(*source))
    throw Error(Code::kUnknownFormat, "the tensors have the names of Megatron's modules")
        .file(source->root())
        .expected("the model's own names, as in model.layers.0.mlp.down_proj.weight")
        .found(format_text(source->format()))
        .help(
            "mckpt export makes a Hugging Face folder of it, and mckpt convert to-fsdp a checkpoint of Megatron-FSDP");
  refuse_lone_shards(*source, "converted");
  OwnModel model;
  warn_of_unsaid_order(*source, model.notes);
  model.oddities = refuse_damage(*source, CheckedPart::kModel, options.accept, options.apart);
  judge_shards(*source, options, model.notes);
  model.objects = std::ssize(source->objects());
  if (options.merge_adapter && is_wrapped_model(*source))
    model.adapted =
        adapted_view(*(source = without_wrappers(std::move(source), options.source, options.assets)));
  if (!options.keep_names || options.assets)
    model.folder = find_model_folder(*source, options.source, options.assets);
  if (model.folder.around)
    model.notes.note(
        cat("assets  of ", escaped(model.folder.path, 4096), ", the folder around the checkpoint"));
  if (options.complete) refuse_unknown(*source, model.folder);
  if (std::string fault = fault_of_config(model.folder); !fault.empty()) model.notes.warn(std::move(fault));
  KnownTensors own_tensors = listed_tensors(model.folder, source->opening());
  amend(own_tensors, *source);
  if (const std::vector<std::string> left = leave_out_buffers(own_tensors, *source);
      !left.empty() && options.complete)
    model.notes.note(cat("left    ", counted(std::ssize(left), "buffer"), " of ",
                         escaped(model.folder.path, 4096),
                         ", which the checkpoint lacks and the model computes: ", listed(left, 3)));
  // One file of a model of which nothing is known keeps the stacks that it has in memory.
  const bool unknown = !options.complete && !model.folder.config && model.folder.model_type.empty();
  OwnNamesOptions how{.config = model.folder.config ? &*model.folder.config : nullptr,
                      .model_type = model.folder.model_type,
                      .architecture = model.folder.architecture,
                      .numbers = model.folder.numbers,
                      .config_numbers = model.folder.config_numbers,
                      .stacks = unknown || has_stacked_experts(own_tensors),
                      .as_saved = options.keep_names,
                      .model_dict = options.model_dict,
                      .dict_if_there = options.dict_if_there,
                      .with_adapter = !options.merge_adapter,
                      .in_model = options.in_model};
  if (source->driver().flat) how.flat = flat_model(*source, options);
  how.expected = expected_tensors(model.folder, own_tensors);
  OwnNames own = own_names(std::move(source), how);
  model.store = std::move(own.store);
  model.beside = std::move(own.beside);
  model.floats_beside = std::move(own.floats_beside);
  model.section = std::move(own.section);
  model.convention = std::move(own.convention);
  model.dict_taken = own.dict_taken;
  if (model.store->tensor_count() == 0)
    throw Error(Code::kUnaccounted, "the source has no tensor of a model")
        .file(model.store->root())
        .found(model.beside.empty() ? std::string("no tensor") : listed(model.beside));
  if (unknown && !options.keep_names && has_stacks(*model.store))
    model.notes.warn(
        "the experts of a layer stay one tensor, as in memory: `assets` names a folder whose config.json says how the model has them");
  model.tensors = in_saved_order(*model.store, model.section);
  Chooser(model, std::move(own_tensors), options).choose();
  return model;
}

std::unique_ptr<Store> take_written(OwnModel& model) {
  auto view = std::make_unique<PieceStore>(std::move(model.store));
  const Store& source = view->source();
  for (const OwnTensor& t : model.tensors) {
    std::span<const i64> dims = source.dims(t.tensor);
    view->add(t.name, {dims.begin(), dims.end()}, {{t.tensor}});
  }
  return view;
}

void refuse_model_dict(const std::string& model_dict, const std::string& source) {
  if (model_dict.empty()) return;
  throw Error(Code::kUsage,
              "`model_dict` is for checkpoints with the model's own names of which one dict is converted")
      .file(source)
      .found(escaped(model_dict));
}

void note_left_out(Notes& notes, const OwnModel& model) {
  if (!model.beside.empty())
    notes.note(cat("left    ", counted(std::ssize(model.beside), "tensor"),
                   model.beside.size() == 1 ? " that is" : " that are",
                   " not of the model: ", listed(model.beside, 3)));
  if (!model.floats_beside.empty())
    notes.note(cat("left    ", counted(std::ssize(model.floats_beside), "tensor"),
                   " of these may be weights: ", listed(model.floats_beside, 20)));
  if (model.objects > 0)
    notes.note(cat("left    ", counted(model.objects, "object"),
                   model.objects == 1 ? " that is no tensor" : " that are no tensors"));
}

}  // namespace mckpt::impl
