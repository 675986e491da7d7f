// A place is found in three steps, each with one or two answers: the name of MTP's layers, the tensor of the
// experts, the tensor of the layers. Readers combine all answers.
#include "convert/dialects/torch_dist/table.h"

#include <algorithm>

#include "convert/dialects/torch_dist/grouped_places.h"
#include "core/base/text.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/attention_kinds.h"
#include "io/dcp/keys/key.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// The places of a parameter of one expert: in a tensor of all experts, or under the expert's number.
std::vector<TorchDistPlace> of_experts(const std::string& name) {
  constexpr std::string_view kLocal = "local_experts.";
  for (std::string_view leaf :
       {"linear_fc1.weight", "linear_fc2.weight", "linear_fc1.bias", "linear_fc2.bias"}) {
    auto expert = numbered(name, cat(".experts.", leaf));
    if (!expert) continue;
    std::string_view before = expert->before.substr(0, expert->before.size() - leaf.size());
    return {{cat(before, "experts.", leaf, expert->after), {expert->number}},
            {cat(before, "experts.", expert->number, ".", leaf, expert->after), {}}};
  }
  // Experts that are modules of their own have the tensors of grouped ones.
  if (auto expert = numbered(name, ".experts.local_experts."); expert && expert->after.starts_with('.'))
    return {{cat(expert->before.substr(0, expert->before.size() - kLocal.size()), "experts", expert->after),
             {expert->number}}};
  return {{name, {}}};
}

constexpr std::string_view kLayers = "layers.";

// The places of a parameter of one layer: under the layer's number, or in a tensor of all layers.
std::vector<TorchDistPlace> of_layers(TorchDistPlace place, std::optional<i64> in_stack) {
  auto layer = numbered(place.name, kLayers);
  if (!layer || !layer->after.starts_with('.') || place.name.find("mtp.layers.") != place.name.npos)
    return {place};
  TorchDistPlace stacked{cat(layer->before.substr(0, layer->before.size() - 1), layer->after), place.at};
  stacked.at.insert(stacked.at.begin(), in_stack.value_or(layer->number));
  return {std::move(place), std::move(stacked)};
}

// The rows of the parameter that its cell has of one part, or of all, under the name of the whole: the cells
// share the rows behind `before`.
TorchDistRow row_of(const ModelParameter& p, const SavedForm& form, Piece piece, i64 before) {
  TorchDistRow row{p.global_name, form.name, piece, {}, {p.shape().dims().begin(), p.shape().dims().end()}};
  if (!row.sizes.empty()) row.sizes[0] = piece.rows;
  row.offsets.resize(row.sizes.size());
  if (const int d = p.holding->partition_dim; d >= 0 && !row.sizes.empty())
    row.offsets[d] = distinct_part(*p.holding, p.part).index * row.sizes[d];
  if (!row.offsets.empty()) row.offsets[0] += before;
  return row;
}

// The layer of the language model that the parameter is of; null if it is of none.
const LayerSpec* layer_of(const ModelParameter& p, const ModelConfig& model) {
  if (p.section->scope != Scope::kLayers || p.section->tower != Tower::kText) return nullptr;
  const auto layer = numbered(p.global_name, kLayers);
  return layer ? &model.text.layers.at(static_cast<std::size_t>(layer->number)) : nullptr;
}

}  // namespace

std::vector<TorchDistPlace> torch_dist_places(std::string_view name, std::optional<i64> in_stack) {
  std::vector<TorchDistPlace> out;
  for (const std::string& of_version : mtp_names(name))
    for (const TorchDistPlace& expert : of_experts(of_version))
      for (TorchDistPlace& place : of_layers(expert, in_stack)) out.push_back(std::move(place));
  return out;
}

TorchDistPlace torch_dist_place(std::string_view name, bool stacked, std::optional<i64> in_stack) {
  const std::string saved = old_mtp_name(name).value_or(std::string(name));
  std::vector<TorchDistPlace> places = of_layers(of_experts(saved).front(), in_stack);
  return stacked ? places.back() : places.front();
}

std::optional<SavedName> name_by_kind(const ModelParameter& p, const ModelConfig& model) {
  const LayerSpec* layer = layer_of(p, model);
  const std::size_t at = p.global_name.find(cat(kAttentionModule, "."));
  if (!layer || layer->kind == AttentionKind::kOne || at == std::string::npos) return std::nullopt;
  const std::string_view name = p.global_name, front = name.substr(0, at + kAttentionModule.size());
  auto same = [&](const LayerSpec& l) { return l.kind == layer->kind; };
  return SavedName{cat(front, layer->kind == AttentionKind::kGlobal ? kGlobalKind : kSlidingKind,
                       name.substr(front.size())),
                   std::count_if(model.text.layers.data(), layer, same)};
}

i64 layers_of_stack(const ModelParameter& p, const ModelConfig& model) {
  if (p.section->tower == Tower::kVision) return std::ssize(model.vision_tower.layers);
  if (!name_by_kind(p, model)) return std::ssize(model.text.layers);
  const AttentionKind kind = layer_of(p, model)->kind;
  return std::ranges::count(model.text.layers, kind, &LayerSpec::kind);
}

bool is_copied(const ModelParameter& p) {
  if (!p.section->own_layers) return true;
  return p.section->tower != Tower::kText && p.row->rule == "replicate" &&
         p.row->sources[0].name == p.row->megatron;
}

std::string torch_dist_state(std::string_view kind, std::string_view place) {
  return cat(kStateSection, kind, ".", place);
}

KeySplit torch_dist_split(const ModelParameter& p) {
  const KeySplit fused = rule_named(p.row->rule).parts;
  return fused == KeySplit::kSwiglu ? KeySplit::kNone : fused;
}

// No hybrid model has kinds of attention.
SavedForm torch_dist_form(const ModelParameter& p, const ModelConfig& model, bool own_norms,
                          const GroupedPlaces* groups) {
  SavedForm form{SavedName{p.global_name}, torch_dist_split(p)};
  if (std::optional<SavedName> kind = groups ? std::nullopt : name_by_kind(p, model)) form.name = *kind;
  if (std::optional<std::string> own = own_norms ? own_norm_of_experts(p) : std::nullopt)
    form.name.text = *own;
  if (std::optional<Respelt> other = other_name(form.name.text);
      other && other_names()[other->row].why == SpellingKind::kSubmoduleConv)
    form.name.text = std::move(other->name);
  if (groups) form.name.text = groups->of(form.name.text);
  return form;
}

std::vector<SavedForm> torch_dist_forms(const ModelParameter& p, const SavedName& name) {
  std::vector<SavedForm> forms{{name, KeySplit::kNone}};
  for (KeySplit split : {p.split, rule_named(p.row->rule).parts})
    if (split != forms.back().split) forms.push_back({name, split});
  return forms;
}

std::optional<std::string> own_norm_of_experts(const ModelParameter& p) {
  constexpr std::string_view kNorm = "pre_mlp_layernorm.", kFused = "mlp.linear_fc1.layer_norm_";
  const std::string_view name = p.global_name;
  const std::size_t at = name.find(kNorm);
  if (at == name.npos || p.row->megatron.find(kNorm) == p.row->megatron.npos) return std::nullopt;
  return cat(name.substr(0, at), kFused, name.substr(at + kNorm.size()));
}

std::vector<TorchDistRow> torch_dist_rows(const ModelParameter& p, const SavedForm& form,
                                          const ModelConfig& model) {
  const KeySplit parts = form.split == KeySplit::kNone ? rule_named(p.row->rule).parts : form.split;
  if (parts == KeySplit::kNone) return {row_of(p, form, {"", 0, p.shape().rank() ? p.shape()[0] : 1}, 0)};
  std::vector<TorchDistRow> out;
  const i64 cells = p.holding->partition_dim == 0 ? p.part.count : 1;
  i64 before = 0;  // rows of the parts before this one in the whole parameter
  for (const Piece& piece : pieces_of(parts, model, global_shape(*p.holding, p.part.count), p.part)) {
    const bool apart = form.split != KeySplit::kNone;
    out.push_back(row_of(p, form, piece, apart ? 0 : before));
    if (apart) out.back().key = piece_key(parts, p.global_name, piece);
    if (apart) out.back().name.text = piece_key(parts, form.name.text, piece);
    before += piece.rows * cells;
  }
  return out;
}

}  // namespace mckpt::impl
