// Queries, keys and values in one parameter, key-value group by group:
//
//   plain     q q q q k v | q q q q k v | ...          4 query heads a group
//   gated     q q q q g g g g k v | ...                output gate: Hugging Face has q g q g ... by head
//             q g q g q g q g k v | ...            the same, as the file has it: Qwen4-Exp in mcore-bridge
//             q q q q G G G G k v | ...                gates of heads: Hugging Face has one row for each head
//
// Every letter is one head of `dim` rows; values may have another size. G is the one row of the head's gate,
// `dim` times, since Megatron's gate has a row for every row of the head:
//
//   gate of head 1, dim 3     the file  G1      the parameter  G1 G1 G1     the first is the file's, two are its copies
// The rows of all groups are then cut into equal parts, also with
// fewer groups than cells: a cut may fall inside a group and even inside a head, and nothing is held twice.
//
// 4 query heads in 2 groups, heads of one row (8 rows):
//
//   whole      q0 q1 k0 v0 | q2 q3 k1 v1
//   2 cells    q0 q1 k0 v0   q2 q3 k1 v1              a group each
//   4 cells    q0 q1   k0 v0   q2 q3   k1 v1          half a group each
//
// The cells must divide the number of query heads, and be a multiple or a divisor of the number of groups; a
// divisor where Megatron does not cut a group (TowerConfig::whole_groups).
#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/rules/blocks.h"
#include "mappings/rules/families.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kRoles[] = {"q_proj", "k_proj", "v_proj"};
constexpr std::string_view kWithGates[] = {"q_proj", "k_proj", "v_proj", "g_proj"};
constexpr std::string_view kJoinedRoles[] = {"qkv"};
constexpr std::string_view kQueryAndKey[] = {"q_proj", "k_proj"};
constexpr std::string_view kQuery[] = {"q_proj"};

// The sizes of the fused parameter in rows. `rows` is the sum over all groups, and checked against overflow.
struct Heads {
  i64 groups, per_group, dim;
  i64 value_dim;               // of values
  i64 twins;                   // 2 with an output gate: a gate beside every query head
  i64 q_rows, k_rows, v_rows;  // of all heads
  i64 group_rows, rows;        // of one group, of all
};

Heads heads_of(const TowerConfig& tower) {
  Heads h{};
  h.groups = tower.kv_groups;
  h.per_group =
      quotient(tower.heads, "the number of query heads", h.groups, "the number of key-value groups");
  h.dim = positive(tower.head_dim, "the size of a head");
  h.value_dim = tower.value_size();
  h.twins = tower.output_gate ? 2 : 1;
  h.q_rows = product({tower.heads, h.dim, h.twins}, "the number of rows of the queries");
  h.k_rows = product({h.groups, h.dim}, "the number of rows of the keys");
  h.v_rows = product({h.groups, h.value_dim}, "the number of rows of the values");
  const i64 kv_rows = checked_add(h.k_rows, h.v_rows, "the number of rows of keys and values");
  const i64 gates = tower.head_gates ? h.q_rows : 0;
  h.rows = checked_add(checked_add(h.q_rows, gates, "the number of rows of queries and gates"), kv_rows,
                       "the number of rows of qkv");
  h.group_rows = h.rows / h.groups;
  return h;
}

// Megatron's own condition on heads, groups and the parallel size.
void check_cells(const TowerConfig& tower, Part part) {
  own_part(tower.heads, part, "the number of query heads");
  if (tower.whole_groups) own_part(tower.kv_groups, part, "the number of key-value groups");
  if (tower.kv_groups % part.count == 0 || part.count % tower.kv_groups == 0) return;
  throw Error(Code::kBadGrid,
              "of the number of key-value groups and the parallel size, neither divides the other")
      .expected(cat("a multiple or a divisor of ", part.count))
      .found(tower.kv_groups);
}

// Where the heads of one kind begin: the source and the row. Three sources begin at row 0; a joined source
// has three origins.
struct Origin {
  i32 slot = 0;
  i64 row = 0;  // the first row of the first head
};

// A tensor of gates that is not one of the sources.
constexpr i32 kNoGates = -1;

// Adds the rows of group g in Megatron's order: queries, gates if there are any, one key head, one value
// head.
void add_group(const Heads& h, i64 g, Origin q, Origin k, Origin v, i32 gates, RowRuns& rows) {
  i64 first = q.row + g * h.per_group * h.dim * h.twins;
  if (h.twins == 1) {
    rows.add(q.slot, first, h.per_group * h.dim);
  } else {
    rows.add(q.slot, first, h.dim, 2 * h.dim, h.per_group);
    rows.add(q.slot, first + h.dim, h.dim, 2 * h.dim, h.per_group);
  }
  for (i64 head = g * h.per_group; gates != kNoGates && head < (g + 1) * h.per_group; head++)
    for (i64 time = 0; time < h.dim; time++) rows.add(time == 0 ? gates : copy_of(gates), head, 1);
  rows.add(k.slot, k.row + g * h.dim, h.dim);
  rows.add(v.slot, v.row + g * h.value_dim, h.value_dim);
}

// Lists the groups that the cell's rows touch, then cuts the rows of other cells off at both ends.
Holding hold_heads(const RuleInput& in, const Heads& h, Origin q, Origin k, Origin v, i32 gates = kNoGates) {
  check_cells(in.tower, in.part);
  const Shape& like = in.sources[0].shape;
  ItemRange own = own_part(h.rows, in.part, "the number of rows of queries, keys and values");
  i64 first_group = own.begin / h.group_rows, skipped = first_group * h.group_rows;
  RowRuns rows(like.row_items());
  for (i64 g = first_group; g * h.group_rows < own.end; g++) add_group(h, g, q, k, v, gates, rows);
  ItemRange items = {(own.begin - skipped) * like.row_items(), (own.end - skipped) * like.row_items()};
  return {LocalShape{like.with_dim(0, own.items())}, 0, cut(rows.take(), items), 0};
}

// A tensor each for queries, keys, values and gates, or the first of them; weights or biases.
Heads check_apart(const RuleInput& in) {
  Heads h = heads_of(in.tower);
  i64 hidden = positive(in.tower.hidden, "the hidden size");
  for (int slot = 0; slot < static_cast<int>(in.sources.size()); slot++) {
    const i64 rows[] = {h.q_rows, h.k_rows, h.v_rows, in.tower.heads};
    const char* why[] = {
        h.twins > 1 ? "query heads * head size * 2 (an output gate for each)" : "query heads * head size",
        "key-value groups * head size", "key-value groups * head size", "query heads"};
    expect_rank(in, slot, kWithGates[slot], 1, 2);
    expect_shape(in, slot, kWithGates[slot], weight_or_bias(in, 0, rows[slot], hidden), why[slot]);
  }
  return h;
}

Holding hold_qkv(const RuleInput& in) { return hold_heads(in, check_apart(in), {0, 0}, {1, 0}, {2, 0}); }

// Queries and gates stay beside each other: twice as many heads without gates.
Holding hold_gates_by_head(const RuleInput& in) {
  Heads h = check_apart(in);
  h.per_group *= h.twins;
  h.twins = 1;
  return hold_heads(in, h, {0, 0}, {1, 0}, {2, 0});
}

Holding hold_with_gates(const RuleInput& in) {
  return hold_heads(in, check_apart(in), {0, 0}, {1, 0}, {2, 0}, 3);
}

// The layer has no projection of values: the keys, before their norm, are the values too.
Holding hold_keys_as_values(const RuleInput& in) {
  return hold_heads(in, check_apart(in), {0, 0}, {1, 0}, {copy_of(1), 0});
}

// The layer uses the keys and values of an earlier one; Megatron's parameter has rows for its own, of zeros.
Holding hold_queries(const RuleInput& in) {
  return hold_heads(in, check_apart(in), {0, 0}, {kPaddingSlot, 0}, {kPaddingSlot, 0});
}

// One tensor: all queries above all keys above all values.
Holding hold_joined(const RuleInput& in) {
  Heads h = heads_of(in.tower);
  expect_rank(in, 0, kJoinedRoles[0], 1, 2);
  i64 hidden = positive(in.tower.hidden, "the hidden size");
  expect_shape(in, 0, kJoinedRoles[0], weight_or_bias(in, 0, h.rows, hidden), "all queries, keys and values");
  return hold_heads(in, h, {0, 0}, {0, h.q_rows}, {0, h.q_rows + h.k_rows});
}

constexpr Rule kRules[] = {
    {"qkv", kRoles, "queries, keys and values by group, the rows in equal parts", hold_qkv},
    {"qkv_gates_by_head", kRoles, "qkv, where each query head has its output gate behind it, as in the file",
     hold_gates_by_head},
    {"qkv_head_gates", kWithGates,
     "qkv with a gate for each query head, whose one row is there for every row of the head",
     hold_with_gates},
    {"qkv_keys_as_values", kQueryAndKey, "qkv, where one tensor is both the keys and the values",
     hold_keys_as_values},
    {"qkv_queries_only", kQuery, "qkv, where the rows of keys and values are zeros", hold_queries},
    {"qkv_joined", kJoinedRoles, "queries, keys and values by group, from one tensor with all of them",
     hold_joined},
};

}  // namespace

std::span<const Rule> qkv_rules() { return kRules; }

}  // namespace mckpt::impl
