// The table of layer kinds. The symbols are from Megatron's hybrid patterns; their order here is the order in
// which counts are reported.
#include "core/hybrid/kind.h"

#include <array>

namespace mckpt::impl {
namespace {

constexpr LayerKindInfo kLayerKindTable[kLayerKinds] = {
    {LayerKind::kAttention, '*', "attention", "self attention", KeyFamily::kAttention},
    {LayerKind::kSparseAttention, 'D', "ds_attention", "DeepSeek sparse attention", KeyFamily::kAttention},
    {LayerKind::kGdn, 'G', "gdn", "gated delta net", KeyFamily::kAttention},
    {LayerKind::kMamba, 'M', "mamba", "Mamba mixer", KeyFamily::kMixer},
    {LayerKind::kLatentAttention, '+', "mla", "multi-latent attention", KeyFamily::kAttention},
    {LayerKind::kMlp, '-', "mlp", "dense MLP", KeyFamily::kMlp},
    {LayerKind::kMoe, 'E', "moe", "mixture of experts", KeyFamily::kMlp},
};

// The row of a symbol in the table; -1: not a layer. A pattern may be as long as its file, so a look-up is
// one load.
constexpr std::array<signed char, 256> kRowOfByte = [] {
  std::array<signed char, 256> rows{};
  rows.fill(-1);
  for (signed char i = 0; i < kLayerKinds; i++)
    rows[static_cast<unsigned char>(kLayerKindTable[i].symbol)] = i;
  return rows;
}();

static_assert([] {
  for (int i = 0; i < kLayerKinds; i++)
    if (static_cast<int>(kLayerKindTable[i].kind) != i) return false;
  return true;
}());

}  // namespace

std::span<const LayerKindInfo> all_layer_kinds() { return kLayerKindTable; }

const LayerKindInfo* find_layer_kind(char symbol) {
  int row = kRowOfByte[static_cast<unsigned char>(symbol)];
  return row < 0 ? nullptr : &kLayerKindTable[row];
}

std::string_view family_prefix(KeyFamily family) {
  static constexpr std::string_view kPrefixes[] = {"mixer.", "self_attention.", "mlp."};
  return kPrefixes[static_cast<int>(family)];
}

}  // namespace mckpt::impl
