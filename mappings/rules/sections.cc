// The sections of each kind of fused parameter, from the numbers of the model, with the suffix of each
// section's key:
//
//   gated delta net, in_proj   .query .key (key heads * key size)  .value .z (value heads * value size)
//                              .beta .alpha (value heads)
//   gated delta net, conv1d    .query .key .value
//   Mamba, in_proj             .z .x (heads * head size)  .B .C (groups * state)  .dt (heads)
//   Mamba, conv1d              .x .B .C
//   MLA, joined down           linear_q_down_proj (query rank)  linear_kv_down_proj (key-value rank + rotary part)
//
// 2 key heads of 2 rows and 4 value heads of 1 row: .query 4, .key 4, .value 4, .z 4, .beta 4, .alpha 4,
// together 24 rows.
#include "mappings/rules/sections.h"

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"

namespace mckpt::impl {
namespace {

std::vector<FusedSection> gdn_sections(const GdnConfig& gdn, bool conv) {
  positive(gdn.key_heads, "the number of linear-attention key heads");
  quotient(gdn.value_heads, "the number of linear-attention value heads", gdn.key_heads,
           "the number of key heads");
  i64 qk = product({gdn.key_heads, positive(gdn.key_dim, "the size of a linear-attention key head")},
                   "the number of rows of linear-attention keys");
  i64 v = product({gdn.value_heads, positive(gdn.value_dim, "the size of a linear-attention value head")},
                  "the number of rows of linear-attention values");
  std::vector<FusedSection> sections = {{".query", qk}, {".key", qk}, {".value", v}};
  if (conv) return sections;
  sections.insert(sections.end(), {{".z", v}, {".beta", gdn.value_heads}, {".alpha", gdn.value_heads}});
  return sections;
}

std::vector<FusedSection> mamba_sections(const MambaConfig& mamba, bool conv) {
  quotient(mamba.heads, "the number of Mamba heads", mamba.groups, "the number of Mamba groups");
  i64 inner = product({mamba.heads, positive(mamba.head_dim, "the size of a Mamba head")},
                      "the number of rows of Mamba heads");
  i64 state = product({mamba.groups, positive(mamba.state, "the size of a Mamba state")},
                      "the number of rows of Mamba states");
  std::vector<FusedSection> sections;
  if (!conv) sections.push_back({".z", inner});
  sections.insert(sections.end(), {{".x", inner}, {".B", state}, {".C", state}});
  if (!conv) sections.push_back({".dt", mamba.heads});
  return sections;
}

std::vector<FusedSection> mla_sections(const MlaConfig& mla) {
  i64 compressed = positive(mla.kv_lora, "the key-value rank");
  i64 rotary = positive(mla.rope, "the size of the rotary part of a head");
  return {{"linear_q_down_proj", positive(mla.q_lora, "the query rank")},
          {"linear_kv_down_proj",
           checked_add(compressed, rotary, "the number of rows of the key-value down projection")}};
}

}  // namespace

std::vector<FusedSection> sections_of(KeySplit split, const ModelConfig& model) {
  switch (split) {
    case KeySplit::kGdnInProj:
    case KeySplit::kGdnConv:
      return gdn_sections(model.gdn, split == KeySplit::kGdnConv);
    case KeySplit::kMambaInProj:
    case KeySplit::kMambaConv:
      return mamba_sections(model.mamba, split == KeySplit::kMambaConv);
    case KeySplit::kMlaDown:
      return mla_sections(model.mla);
    case KeySplit::kNone:
    case KeySplit::kSwiglu:
      break;
  }
  throw Error(Code::kInternal, "this split has no sections of its own");
}

i64 rows_of(std::span<const FusedSection> sections) {
  i64 rows = 0;
  for (const FusedSection& s : sections)
    rows = checked_add(rows, s.rows, "the number of rows of a fused parameter");
  return rows;
}

}  // namespace mckpt::impl
