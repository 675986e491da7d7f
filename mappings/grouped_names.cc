#include "mappings/grouped_names.h"

#include "core/layer_names.h"

namespace mckpt {
namespace {

// '?' for a layer that no pattern has.
char symbol_of(const LayerSpec& layer) {
  if (layer == LayerSpec{Mixer::kMamba, Ffn::kNone}) return 'M';
  if (layer == LayerSpec{Mixer::kAttention, Ffn::kNone}) return '*';
  if (layer == LayerSpec{Mixer::kNone, Ffn::kDense}) return '-';
  if (layer == LayerSpec{Mixer::kNone, Ffn::kMoe}) return 'E';
  return '?';
}

std::string words_of(const LayerSpec& layer) {
  constexpr const char* kMixers[] = {"", "attention", "latent attention", "a gated delta net", "Mamba"};
  constexpr const char* kFfns[] = {"", "a dense MLP", "a mixture of experts"};
  bool both = layer.mixer != Mixer::kNone && layer.ffn != Ffn::kNone;
  return cat(kMixers[static_cast<int>(layer.mixer)], both ? " and " : "", kFfns[static_cast<int>(layer.ffn)],
             both ? " at once" : "");
}

}  // namespace

void refuse_other_pattern(const LayerPattern& pattern, const ModelConfig& model) {
  std::string symbols;
  for (const LayerSpec& layer : model.text.layers) {
    symbols += symbol_of(layer);
    if (symbols.back() == '?')
      throw Error(Code::kBadPattern, "no pattern describes the layers of this model")
          .expected("a hybrid model: each layer is M, *, - or E alone")
          .found(cat("layer ", symbols.size() - 1, " is ", words_of(layer)));
  }
  if (symbols == physical_symbols(pattern)) return;
  throw Error(Code::kBadPattern, "the layers of the pattern are not those of the model")
      .expected(cat(symbols, ", with brackets"))
      .found(escaped(pattern.text));
}

void group_layers(const LayerPattern& pattern, std::vector<ModelParameter>& parameters) {
  LayerNames flat(pattern, LayerForm::kFlat), grouped(pattern, LayerForm::kMember);
  auto rename = [&](std::string& name) {
    std::optional<NameFault> fault;
    LayerName found = flat.find(name, fault);
    if (fault) throw Error(fault->code, fault->message).tensor(name);
    if (found.kind == LayerName::Kind::kLayer && found.depth < 0) name = grouped.text(found);
  };
  for (ModelParameter& p : parameters) rename(p.name), rename(p.global_name);
}

}  // namespace mckpt
