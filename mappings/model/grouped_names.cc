// Renames the parameters of a hybrid model from layer numbers to group and member. The layer is found by its
// flat name, and written again in the form of names in memory (core/hybrid/names.h). MTP layers and the final
// norm keep their names.
#include "mappings/model/grouped_names.h"

#include "core/base/error.h"
#include "core/hybrid/names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/segment.h"
#include "mappings/config.h"
#include "mappings/model/parameter.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

// The symbol of a layer that is a mixer or a feed-forward part; 0 for a layer that is both.
char symbol_of(const LayerSpec& layer) {
  if (layer.mixer != Mixer::kNone && layer.ffn != Ffn::kNone) return 0;
  switch (layer.mixer) {
    case Mixer::kAttention:
      return '*';
    case Mixer::kLatentAttention:
    case Mixer::kIndexedAttention:
      return '+';
    case Mixer::kGdn:
      return 'G';
    case Mixer::kMamba:
      return 'M';
    case Mixer::kSparseAttention:
    case Mixer::kAttentionAndMamba:
      return 0;
    case Mixer::kNone:
      return layer.ffn == Ffn::kMoe ? 'E' : layer.ffn == Ffn::kDense ? '-' : 0;
  }
  return 0;
}

// "attention and a dense MLP at once", for messages.
std::string words_of(const LayerSpec& layer) {
  constexpr const char* kMixers[] = {
      "",      "attention",        "latent attention",      "indexed attention", "a gated delta net",
      "Mamba", "sparse attention", "attention beside Mamba"};
  constexpr const char* kFfns[] = {"", "a dense MLP", "a mixture of experts"};
  bool both = layer.mixer != Mixer::kNone && layer.ffn != Ffn::kNone;
  return cat(kMixers[static_cast<int>(layer.mixer)], both ? " and " : "", kFfns[static_cast<int>(layer.ffn)],
             both ? " at once" : "");
}

// From the number of a layer to its group and member, for the layers of one pattern. The pattern outlives it.
class Renaming {
 public:
  explicit Renaming(const LayerPattern& pattern)
      : flat_(pattern, LayerForm::kFlat), grouped_(pattern, LayerForm::kMember) {}

  std::optional<NameFault> rename(std::string& name) const {
    std::optional<NameFault> fault;
    LayerName found = flat_.find(name, fault);
    if (!fault && found.kind == LayerName::Kind::kLayer && found.depth < 0) name = grouped_.text(found);
    return fault;
  }

 private:
  LayerNames flat_, grouped_;
};

}  // namespace

// "" if a layer has both a mixer and a feed-forward part: no symbol means that.
std::string hybrid_pattern(const ModelConfig& model) {
  std::string pattern, mtp;
  for (const LayerSpec& layer : model.text.layers) pattern += symbol_of(layer);
  for (const LayerSpec& layer : model.mtp.layers) mtp += symbol_of(layer);
  if (pattern.empty() || pattern.find('\0') != pattern.npos || mtp.find('\0') != mtp.npos) return "";
  for (i64 d = 0; d < model.mtp.depths; d++) pattern += cat("/", mtp);
  return pattern;
}

void refuse_other_pattern(const LayerPattern& pattern, const ModelConfig& model) {
  std::string symbols = hybrid_pattern(model);
  if (symbols.empty()) {
    Error e(Code::kBadPattern, "no pattern describes the layers of this model");
    e.expected("a hybrid model: each layer is M, G, *, +, - or E alone");
    i64 index = 0;
    for (const std::vector<LayerSpec>* layers : {&model.text.layers, &model.mtp.layers})
      for (const LayerSpec& layer : *layers)
        if (i64 at = index++; symbol_of(layer) == 0 && e.found().empty())
          e.found(cat("layer ", at, " is ", words_of(layer)));
    throw e;
  }
  std::string found = physical_symbols(pattern), mtp;
  for (const PatternItem& item : pattern.mtp_items) mtp += pattern.symbols(item);
  for (i64 d = 0; d < pattern.mtp_depths; d++) found += cat("/", mtp);
  if (symbols == found) return;
  throw Error(Code::kBadPattern, "the layers of the pattern are not those of the model")
      .expected(cat(symbols, pattern.text.find('[') == std::string::npos ? "" : ", with brackets"))
      .found(escaped(pattern.text));
}

// Throws for a name that the pattern does not have. A module that a layer does not have, such as the mixer of
// an MLP, is left out.
void group_layers(const LayerPattern& pattern, const StagePart& stage,
                  std::vector<ModelParameter>& parameters) {
  const LayerPattern own = pattern_of_layers(pattern, {stage.first_layer, stage.end_layer});
  const Renaming whole(pattern), local(own);
  auto is_missing = [&](std::string& module) {
    constexpr std::string_view kInside = ".x";  // a module is found by something inside it
    bool missing = local.rename(module += kInside).has_value();
    module.resize(module.size() - kInside.size());
    return missing;
  };
  for (ModelParameter& p : parameters) {
    for (auto [renaming, name] : {std::pair(&local, &p.name), std::pair(&whole, &p.global_name)})
      if (std::optional<NameFault> fault = renaming->rename(*name))
        throw Error(fault->code, fault->message).tensor(*name);
    std::erase_if(p.gathered_with, is_missing);
  }
}

}  // namespace mckpt::impl
