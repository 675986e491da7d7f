// A place is found in three steps, each with one or two answers: the name of MTP's layers, the tensor of the
// experts, the tensor of the layers. Readers combine all answers.
#include "convert/dialects/torch_dist/table.h"

#include "core/base/text.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/key.h"
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

// The places of a parameter of one layer: under the layer's number, or in a tensor of all layers.
std::vector<TorchDistPlace> of_layers(TorchDistPlace place) {
  auto layer = numbered(place.name, "layers.");
  if (!layer || !layer->after.starts_with('.') || place.name.find("mtp.layers.") != place.name.npos)
    return {place};
  TorchDistPlace stacked{cat(layer->before.substr(0, layer->before.size() - 1), layer->after), place.at};
  stacked.at.insert(stacked.at.begin(), layer->number);
  return {std::move(place), std::move(stacked)};
}

// The rows of the parameter that its cell has of one part, or of all, under the name of the whole: the cells
// share the rows behind `before`.
TorchDistRow row_of(const ModelParameter& p, const SavedForm& form, Piece piece, i64 before) {
  TorchDistRow row{p.global_name, form.name, piece, {}, {p.shape().dims().begin(), p.shape().dims().end()}};
  if (!row.sizes.empty()) row.sizes[0] = piece.rows;
  row.offsets.resize(row.sizes.size());
  if (const int d = p.holding->partition_dim; d >= 0 && !row.sizes.empty())
    row.offsets[d] = p.part.index * row.sizes[d];
  if (!row.offsets.empty()) row.offsets[0] += before;
  return row;
}

}  // namespace

std::vector<TorchDistPlace> torch_dist_places(std::string_view name) {
  std::vector<TorchDistPlace> out;
  for (const std::string& of_version : mtp_names(name))
    for (const TorchDistPlace& expert : of_experts(of_version))
      for (TorchDistPlace& place : of_layers(expert)) out.push_back(std::move(place));
  return out;
}

TorchDistPlace torch_dist_place(std::string_view name, bool stacked) {
  std::vector<TorchDistPlace> places = of_layers(of_experts(mtp_names(name).back()).front());
  return stacked ? places.back() : places.front();
}

std::string torch_dist_state(std::string_view kind, std::string_view place) {
  return cat(kStateSection, kind, ".", place);
}

KeySplit torch_dist_split(const ModelParameter& p) {
  const KeySplit fused = rule_named(p.row->rule).parts;
  return fused == KeySplit::kSwiglu ? KeySplit::kNone : fused;
}

SavedForm torch_dist_form(const ModelParameter& p, bool own_norms) {
  SavedForm form{p.global_name, torch_dist_split(p)};
  if (std::optional<std::string> own = own_norms ? own_norm_of_experts(p) : std::nullopt) form.name = *own;
  if (std::optional<Respelt> other = other_name(form.name);
      other && other_names()[other->row].why == SpellingKind::kSubmoduleConv)
    form.name = std::move(other->name);
  return form;
}

std::vector<SavedForm> torch_dist_forms(const ModelParameter& p, const std::string& name) {
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
    if (apart) out.back().name = piece_key(parts, form.name, piece);
    before += piece.rows * cells;
  }
  return out;
}

}  // namespace mckpt::impl
