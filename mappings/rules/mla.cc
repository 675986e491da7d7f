// Multi-head latent attention. The up projections, linear_q_proj and linear_proj are plain column and row
// parameters, the down projections are replicated. If the two down projections are one parameter, that
// parameter has the rows of one above the rows of the other, on every cell:
//
//   linear_qkv_down_proj   [q_lora rows of q_a_proj][kv_lora + rope rows of kv_a_proj_with_mqa]
//
// With q_lora = 3, kv_lora = 2 and rope = 1 it has 6 rows, on every cell the same:
//
//   q0 q1 q2   stored under the module name linear_q_down_proj
//   k0 k1 r0   stored under the module name linear_kv_down_proj
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"
#include "mappings/rules/sections.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"q_a_proj", "kv_a_proj_with_mqa"};

Holding hold_down(const RuleInput& in) {
  i64 hidden = positive(in.tower.hidden, "the hidden size");
  std::vector<FusedSection> sections = sections_of(KeySplit::kMlaDown, in.model);
  std::vector<RowBlock> blocks;
  for (int slot = 0; slot < 2; slot++) {
    i64 rows = sections[slot].rows;
    expect_shape(in, slot, kRoles[slot], {rows, hidden},
                 slot == 0 ? "the query rank" : "the key-value rank and the rotary part");
    blocks.push_back({slot, 0, rows});
  }
  Holding holding = hold_blocks(blocks, in.sources[0].shape, {0, 1}, "");
  holding.partition_dim = -1;
  return holding;
}

constexpr Rule kRules[] = {
    {"mla_down", kRoles, "both down projections of MLA, one below the other, on every cell", hold_down,
     KeySplit::kMlaDown},
};

}  // namespace

std::span<const Rule> mla_rules() { return kRules; }

}  // namespace mckpt::impl
