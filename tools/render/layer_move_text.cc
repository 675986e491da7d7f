// The help texts of convert group, ungroup, hybrid-to-gpt and gpt-to-hybrid, in the order of LayerWay: the
// help of --pattern, the description, the examples.
#include "tools/render/layer_move_text.h"

namespace mckpt::impl {

const LayerWayText& text_of(LayerWay way) {
  static const LayerWayText kTexts[] = {
      {"the pattern of SRC, with its groups; by default that of its args",
       "A hybrid model with groups, such as [*-]M, stores the layers of a group under one number: as "
       "decoder.layers.0.mlp.* in torch_dist, as decoder.layers.0.layers.1.mlp.* in fsdp_dtensor. The result "
       "is the checkpoint of the same model without brackets, *-M, in which every layer has its own number: "
       "decoder.layers.1.mlp.*.",
       {"mckpt convert ungroup ckpt ckpt_flat",
        "mckpt convert ungroup ckpt/iter_0001000 out --pattern 'M[M*-]|[M*-]' --dry-run"}},
      {"the pattern that the result has, with groups",
       "The inverse of `convert ungroup`: the layers of SRC become the groups of --pattern. --keys says how "
       "groups are named: logical is decoder.layers.0.mlp.*, as a Transformer model names its layers and as "
       "torch_dist stores groups; member is decoder.layers.0.layers.1.mlp.*, as fsdp_dtensor stores them. "
       "SRC may already have groups, under names of the other kind.",
       {"mckpt convert group ckpt_flat ckpt --pattern '[*-]M[*-]'",
        "mckpt convert group ckpt out --pattern '[*-][*-]' --keys logical"}},
      {"the pattern of SRC; by default that of its args",
       "Layer i of a GPT model is a pair of layers of the hybrid model: its i-th * and its i-th - or E. The "
       "pattern must have equally many of both, and besides them only M. torch_dist stacks the layers of a "
       "GPT model in one tensor; --layers indexed keeps them apart, as models with unlike layers store them.",
       {"mckpt convert hybrid-to-gpt ckpt gpt",
        "mckpt convert hybrid-to-gpt ckpt gpt --pattern 'M*-M*-' --without-mixers"}},
      {"the pattern that the result has: one * and one - or E for each layer of SRC",
       "A layer of a GPT model becomes two layers of the hybrid model, attention and MLP: layer i becomes "
       "the i-th * and the i-th - or E of --pattern. With groups, '[*-][*-]', the result is the checkpoint "
       "of a grouped model.",
       {"mckpt convert gpt-to-hybrid gpt ckpt --pattern '*-*-*-'",
        "mckpt convert gpt-to-hybrid gpt ckpt --pattern 'M*-M*-' --without-mixers"}},
  };
  return kTexts[static_cast<int>(way)];
}

}  // namespace mckpt::impl
