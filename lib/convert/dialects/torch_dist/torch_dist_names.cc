// A place is found in three steps, each with one or two answers: the name of MTP's layers, the tensor of the
// experts, the tensor of the layers. Readers combine all answers.
#include "convert/dialects/torch_dist/torch_dist_names.h"

#include "core/base/text.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/key.h"

namespace mckpt::impl {
namespace {

// The places of a parameter of one expert: in a tensor of all experts, or under the expert's number.
std::vector<TorchDistPlace> of_experts(const std::string& name) {
  for (std::string_view leaf :
       {"linear_fc1.weight", "linear_fc2.weight", "linear_fc1.bias", "linear_fc2.bias"}) {
    auto expert = numbered(name, cat(".experts.", leaf));
    if (!expert) continue;
    std::string_view before = expert->before.substr(0, expert->before.size() - leaf.size());
    return {{cat(before, "experts.", leaf, expert->after), {expert->number}},
            {cat(before, "experts.", expert->number, ".", leaf, expert->after), {}}};
  }
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

}  // namespace

std::vector<TorchDistPlace> torch_dist_places(std::string_view name) {
  std::vector<TorchDistPlace> out;
  for (const std::string& of_version : mtp_names(name))
    for (const TorchDistPlace& expert : of_experts(of_version))
      for (TorchDistPlace& place : of_layers(expert)) out.push_back(std::move(place));
  return out;
}

TorchDistPlace torch_dist_place(std::string_view name, bool stacked) {
  std::string usual(name);
  if (std::optional<Respelt> other = other_name(usual);
      other && other_names()[other->row].why == SpellingKind::kSubmoduleConv)
    usual = other->name;
  std::vector<TorchDistPlace> places = of_layers(of_experts(mtp_names(usual).back()).front());
  return stacked ? places.back() : places.front();
}

std::optional<std::string> own_norm_of_experts(std::string_view name) {
  constexpr std::string_view kNorm = "pre_mlp_layernorm.", kFused = "mlp.linear_fc1.layer_norm_";
  const std::size_t at = name.find(kNorm);
  if (at == name.npos) return std::nullopt;
  return cat(name.substr(0, at), kFused, name.substr(at + kNorm.size()));
}

}  // namespace mckpt::impl
