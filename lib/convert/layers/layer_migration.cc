// Every key is cut into front, name and tail; the name is found in the old form, which gives a layer, and is
// written in the new form:
//
//   optimizer.state.exp_avg. | decoder.layers.1.mlp.linear_fc1.weight |        flat, pattern [*-]M: the MLP, layer 1
//   optimizer.state.exp_avg. | decoder.layers.0.mlp.linear_fc1.weight |        logical
//
// Faults are collected over all keys and thrown at the end, so that a user sees all of them at once.
#include "convert/layers/layer_migration.h"

#include <algorithm>

#include "convert/layers/layer_forms.h"
#include "convert/layers/layer_modules.h"
#include "convert/layers/mixer_parts.h"
#include "core/base/error_code.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/hybrid/names.h"
#include "core/hybrid/spelled.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/pickle/value.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOutputState = "output_layer._extra_state";

// One migration; run() is called once.
class Migration {
 public:
  Migration(const Store& store, DcpDialect dialect, const LayerNames& from, const LayerNames& to,
            const MigrationOptions& options)
      : store_(store), dialect_(dialect), from_(from), to_(to), options_(options) {}

  LayerMigration run() {
    if (dialect_ == DcpDialect::kTorchDist && !is_gpt(from_.form()) && !is_gpt(to_.form()))
      mixers_.emplace(store_, from_);
    if (dialect_ == DcpDialect::kTorchDist) gather_weights();
    for (i32 t = 0; t < static_cast<i32>(store_.tensor_count()); t++) move_tensor(t);
    check_stacks();
    for (i32 o = 0; o < static_cast<i32>(store_.objects().size()); o++) move_object(o);
    throw_faults(faults_, store_, "nothing was written; `mckpt ls SRC` shows the keys");
    embedding_first();
    return std::move(out_);
  }

 private:
  // The new name of a parameter or module. Tensors and objects are renamed alike.
  struct Target {
    bool dropped = false;
    LayerName name;         // kOther: the key stays
    std::string parameter;  // in the new form
  };

  Target target_of(const LayerName& name, std::string_view key) {
    Target out{false, name, ""};
    bool main_layer = name.kind == LayerName::Kind::kLayer && name.depth < 0;
    bool same_mtp = name.depth >= 0 && is_gpt(from_.form()) == is_gpt(to_.form());
    if (name.kind == LayerName::Kind::kOther || same_mtp) {
      out.name.kind = LayerName::Kind::kOther;
    } else if (main_layer && !to_.has(name.layer)) {
      out.dropped = true;
      if (!options_.without_mixers)
        fault(key, Code::kNotHeld,
              cat("layer ", name.layer, " is ", to_.kind(name.layer).words,
                  ", which a GPT model does not have"));
    } else {
      LayerName moved = name;
      std::string rest(name.rest);
      if (main_layer) rest = moved_norm(name.rest, to_.kind(name.layer).kind, options_.norms);
      if (main_layer && options_.spelling)
        rest = spelled_rest(rest, to_.kind(name.layer).kind, *options_.spelling);
      moved.rest = rest;
      out.parameter = to_.text(moved);
    }
    return out;
  }

  void fault(std::string_view key, Code code, std::string message) {
    faults_.push_back({std::string(key), {code, std::move(message)}});
  }

  // Adds the fault of a state that belongs to no parameter: torch_dist can store the optimizer by buckets of
  // one run.
  bool refused(std::string_view key, const KeySection& section) {
    if (!section.name.empty() || dialect_ != DcpDialect::kTorchDist || !section.optimizer) return false;
    fault(
        key, Code::kNotHeld,
        "the optimizer state is stored by the buckets of one training run, not by parameter: `weights_only` skips it");
    return true;
  }
  // Whether a state is stored as a flat list of items. Its shape is recorded only in the mcore_data of
  // .metadata, which the result does not have.
  bool is_flat(i32 t, const KeySection& section) const {
    auto weight = section.optimizer ? weights_.find(section.name) : weights_.end();
    return weight != weights_.end() && !std::ranges::equal(store_.dims(t), store_.dims(weight->second));
  }

  // Moves the embedding to the front. Pipeline stages that all counted their layers from 0 (MC1313) are
  // recognized by an embedding behind layer 0, and names are read in the order of .metadata, which goes by
  // ranks.
  void embedding_first() {
    std::stable_partition(out_.tensors.begin(), out_.tensors.end(), [&](const MovedTensor& t) {
      return key_section(dialect_, t.name).name.starts_with("embedding.");
    });
  }

  void move_tensor(i32 t);
  void move_layer(i32 t, const KeySection& section, const LayerName& name, i64 from_layer);
  void move_parts(const KeySection& section, const LayerName& name, std::string_view fused, MovedPiece piece);
  void add(std::string name, i32 t, std::vector<i64> dims, MovedPiece piece);
  void check_stacks();
  void move_object(i32 o);
  std::string moved_shard(const KeySection& section, const Target& target, const LayerName& found,
                          std::string_view key);
  bool drop_output_state(i32 o, const KeySection& section);
  void drop_state(i32 o);
  void gather_weights();

  const Store& store_;
  DcpDialect dialect_;
  const LayerNames &from_, &to_;
  const MigrationOptions& options_;
  LayerMigration out_;
  std::vector<KeyFault> faults_;
  NameMap<std::string, std::size_t> by_name_;  // tensors of out_
  NameSet<std::string> object_names_;
  NameMap<std::string_view, i32> weights_;  // of torch_dist: the model section by name
  std::optional<MixerShapes> mixers_;       // where parts of mixers come out of whole ones
};

void Migration::gather_weights() {
  for (i32 t = 0; t < static_cast<i32>(store_.tensor_count()); t++)
    if (KeySection section = key_section(dialect_, store_.name(t)); section.model())
      weights_.emplace(section.name, t);
}

void Migration::move_tensor(i32 t) {
  std::string_view key = store_.name(t);
  KeySection section = key_section(dialect_, key);
  if (section.optimizer && options_.weights_only) {
    out_.dropped.push_back(t);
    return;
  }
  if (refused(key, section)) return;
  if (is_flat(t, section))
    return fault(
        key, Code::kNotHeld,
        "the optimizer state does not have its parameter's shape, but is flattened as in older saves: `weights_only` skips it, or load and save the checkpoint once with a newer Megatron");
  std::optional<NameFault> bad;
  LayerName name = from_.find(section.name, bad);
  if (bad) return fault(key, bad->code, bad->message);
  if (name.kind != LayerName::Kind::kStack) return move_layer(t, section, name, -1);
  for (i64 l = 0; l < from_.layers(); l++) {
    LayerName one = from_.of_stack(name.rest, l, bad);
    std::span<const i64> dims = store_.dims(t);
    if (!bad && (dims.empty() || dims[0] != from_.layers()))
      bad = {Code::kBadPattern, cat("the tensor is not a stack of ", counted(from_.layers(), "layer"))};
    if (bad) return fault(key, bad->code, bad->message);
    move_layer(t, section, one, l);
  }
}

void Migration::move_layer(i32 t, const KeySection& section, const LayerName& name, i64 from_layer) {
  std::string_view key = store_.name(t);
  Target target = target_of(name, key);
  if (target.dropped) {
    if (from_layer < 1) out_.dropped.push_back(t);
    return;
  }
  std::span<const i64> source = store_.dims(t);
  std::vector<i64> dims(source.begin() + (from_layer >= 0 ? 1 : 0), source.end());
  MovedPiece piece{t, from_layer};
  if (target.name.kind == LayerName::Kind::kOther) return add(std::string(key), t, dims, piece);
  bool in_main = name.kind == LayerName::Kind::kLayer && name.depth < 0;
  if (in_main && dialect_ == DcpDialect::kTorchDist && !is_gpt(to_.form()))
    if (std::optional<std::string_view> fused = fused_name(to_.kind(name.layer).kind, name.rest))
      return move_parts(section, name, *fused, piece);
  if (in_main && to_.form() == LayerForm::kStacked) {
    piece.to_layer = to_.number(name.layer);
    dims.insert(dims.begin(), to_.layers());
  }
  add(cat(section.front, target.parameter, section.tail), t, std::move(dims), piece);
}

void Migration::move_parts(const KeySection& section, const LayerName& name, std::string_view fused,
                           MovedPiece piece) {
  std::string_view key = store_.name(piece.tensor);
  std::span<const i64> dims = store_.dims(piece.tensor);
  std::optional<NameFault> bad;
  std::vector<NativePart> parts = mixers_->parts(piece.tensor, name.layer, fused, bad);
  if (bad) return fault(key, bad->code, bad->message);
  for (const NativePart& part : parts) {
    LayerName of_part = name;
    std::string rest = cat(fused, ".", part.name);
    of_part.rest = rest;
    piece.first_row = part.first_row, piece.rows = part.rows;
    std::vector<i64> part_dims(dims.begin(), dims.end());
    part_dims[0] = part.rows;
    add(cat(section.front, to_.text(of_part), section.tail), piece.tensor, std::move(part_dims), piece);
  }
}

void Migration::add(std::string name, i32 t, std::vector<i64> dims, MovedPiece piece) {
  std::string_view key = store_.name(t);
  if (store_.chunk_count(t) == 0) return fault(key, Code::kIncomplete, "the tensor has no chunk");
  auto [at, fresh] = by_name_.try_emplace(std::move(name), out_.tensors.size());
  if (fresh) {
    out_.tensors.push_back({at->first, store_.dtype(t), Shape(dims), {piece}});
    return;
  }
  MovedTensor& tensor = out_.tensors[at->second];
  for (const MovedPiece& p : tensor.pieces)
    if (p.to_layer == piece.to_layer)
      return fault(key, Code::kNotHeld,
                   cat("the tensor would be written to ", escaped(tensor.name), ", and so would ",
                       escaped(store_.name(p.tensor))));
  if (tensor.dtype != store_.dtype(t) || !std::ranges::equal(tensor.shape.dims(), dims))
    return fault(
        key, Code::kNotHeld,
        cat("the tensor has another type or shape than ", escaped(store_.name(tensor.pieces[0].tensor)),
            ", so they cannot be stacked: `layers` indexed keeps layers apart"));
  tensor.pieces.push_back(piece);
}

void Migration::check_stacks() {
  for (const MovedTensor& tensor : out_.tensors)
    if (tensor.pieces[0].to_layer >= 0 && std::ssize(tensor.pieces) != to_.layers())
      fault(store_.name(tensor.pieces[0].tensor), Code::kNotHeld,
            cat("only ", std::ssize(tensor.pieces), " of ", to_.layers(),
                " layers have this parameter, so it cannot be stacked: `layers` indexed keeps layers apart"));
}

bool Migration::drop_output_state(i32 o, const KeySection& section) {
  bool unwanted = is_gpt(to_.form()) || to_.form() == LayerForm::kLogical || to_.form() == LayerForm::kMember;
  if (section.name != kOutputState || section.optimizer || !unwanted) return false;
  drop_state(o);
  return true;
}

// Leaves out the state of a module that the new form does not have, if the state is empty; otherwise it is a
// fault.
void Migration::drop_state(i32 o) {
  const std::string& key = store_.objects()[o].name;
  std::shared_ptr<const PickleValue> value = store_.object(o);
  if (value && is_empty_state(*value))
    out_.dropped_objects.push_back(key);
  else
    fault(key, Code::kNotHeld, "the state is not empty, but models of the new form have no such state");
}

// The tail of an object's name when layers are stacked or taken apart. An object of one layer becomes a shard
// of the object that all layers share, or the other way round:
//
//   decoder.layers.2.mlp...._extra_state/shard_0_1   <-->   decoder.layers.mlp...._extra_state/shard_2_4
std::string Migration::moved_shard(const KeySection& section, const Target& target, const LayerName& found,
                                   std::string_view key) {
  std::optional<ObjectShard> shard = object_shard(section.tail);
  bool out_of_stack = found.kind == LayerName::Kind::kStack, into_stack = to_.form() == LayerForm::kStacked;
  if (target.name.kind != LayerName::Kind::kLayer || target.name.depth >= 0 || out_of_stack == into_stack)
    return std::string(section.tail);
  if (!shard || (out_of_stack && shard->shape[0] != from_.layers())) {
    fault(key, Code::kUnaccounted,
          "cannot determine its layer: the name has no /shard_<layer>_<count> suffix");
    return "";
  }
  bool one = shard->shape == std::vector<i64>{1};
  if (into_stack && one) shard->shape.clear(), shard->offset.clear();
  if (into_stack) {
    shard->shape.insert(shard->shape.begin(), to_.layers());
    shard->offset.insert(shard->offset.begin(), to_.number(target.name.layer));
  } else {
    shard->shape.erase(shard->shape.begin()), shard->offset.erase(shard->offset.begin());
    if (shard->shape.empty()) shard->shape = {1}, shard->offset = {0};
  }
  return to_string(*shard);
}

void Migration::move_object(i32 o) {
  const Object& object = store_.objects()[o];
  if (is_file(store_, object)) return;
  const std::string& key = object.name;
  KeySection section = key_section(dialect_, key);
  if ((section.optimizer && options_.weights_only) || drop_output_state(o, section)) return;
  if (refused(key, section)) return;
  std::optional<NameFault> bad;
  LayerName found = from_.find(section.name, bad), name = found;
  if (found.kind == LayerName::Kind::kStack) {
    std::optional<ObjectShard> shard = object_shard(section.tail);
    i64 layer = shard ? shard->offset[0] : -1;
    if (layer < 0 || layer >= from_.layers())
      bad = {Code::kUnaccounted, "cannot determine its layer: the name has no /shard_<layer>_<count> suffix"};
    else
      name = from_.of_stack(found.rest, layer, bad);
  }
  if (bad) return fault(key, bad->code, bad->message);
  Target target = target_of(name, key);
  if (target.dropped) return;
  bool main_layer = name.kind == LayerName::Kind::kLayer && name.depth < 0;
  if (main_layer && options_.norms == NormPlace::kFused &&
      is_state_of_norm(name.rest, to_.kind(name.layer).kind))
    return drop_state(o);
  std::string moved = key;
  if (target.name.kind != LayerName::Kind::kOther)
    moved = cat(section.front, target.parameter, moved_shard(section, target, found, key));
  if (!object_names_.insert(moved).second)
    return fault(key, Code::kNotHeld,
                 cat("the object would be written to ", escaped(moved), ", which exists already"));
  out_.objects.push_back({o, std::move(moved)});
}

}  // namespace

LayerMigration migrate_layers(const Store& store, DcpDialect dialect, const LayerNames& from,
                              const LayerNames& to, const MigrationOptions& options) {
  return Migration(store, dialect, from, to, options).run();
}

}  // namespace mckpt::impl
