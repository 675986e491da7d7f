#include "tests/unit/mappings/rules/naive_rules.h"

#include <map>

#include "mappings/config.h"

namespace mckpt::impl {
namespace {

// t of T cells, expert e; H is the width of the rows of the first source.
struct Walk {
  const RuleCase& c;
  const ModelConfig& m;
  i64 t, T, e;
  NaiveHolding out;

  i64 dim(int slot, int d) const { return c.sources[static_cast<std::size_t>(slot)][d]; }
  i64 row_items(int slot) const { return c.sources[static_cast<std::size_t>(slot)].row_items(); }

  void item(int slot, i64 i) { out.items.push_back(slot * kSlotItems + i); }
  void zero_row() { out.items.insert(out.items.end(), static_cast<std::size_t>(row_items(0)), -1); }
  void row_again(int slot, i64 r) {
    for (i64 j = 0; j < row_items(slot); j++)
      out.items.push_back(-2 - (slot * kSlotItems + r * row_items(slot) + j));
  }
  void row(int slot, i64 r) {
    for (i64 j = 0; j < row_items(slot); j++) item(slot, r * row_items(slot) + j);
  }
  // Item (i, j, k) of a tensor with three dimensions.
  void item3(i64 i, i64 j, i64 k, int slot = 0) { item(slot, (i * dim(slot, 1) + j) * dim(slot, 2) + k); }

  void finish(Shape shape, int partition_dim) {
    out.shape = shape;
    out.partition_dim = partition_dim;
  }
  void finish_rows() {
    i64 rows = static_cast<i64>(out.items.size()) / row_items(0);
    finish(c.sources[0].with_dim(0, rows), 0);
  }
};

void column(Walk& w) {
  i64 n = w.dim(0, 0) / w.T;
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++) w.row(0, r);
  w.finish_rows();
}

// The rows of all parts, one after the other: row r of all is row r - (rows before the part) of its part.
void column_joined(Walk& w) {
  std::vector<std::pair<int, i64>> all;
  for (int slot = 0; slot < static_cast<int>(w.c.sources.size()); slot++)
    for (i64 r = 0; r < w.dim(slot, 0); r++) all.emplace_back(slot, r);
  const i64 n = std::ssize(all) / w.T;
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++)
    w.row(all[static_cast<std::size_t>(r)].first, all[static_cast<std::size_t>(r)].second);
  w.finish_rows();
}

// Row r of the cell is column r of the file.
void column_transposed(Walk& w) {
  i64 n = w.dim(0, 1) / w.T;
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++)
    for (i64 j = 0; j < w.dim(0, 0); j++) w.item(0, j * w.dim(0, 1) + r);
  w.finish({n, w.dim(0, 0)}, 0);
}

void column_swapped(Walk& w) {
  i64 n = w.dim(0, 0) / w.T, columns = w.dim(0, 1);
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++)
    for (i64 j = 0; j < columns; j++) w.item(0, r * columns + (j + columns / 2) % columns);
  w.finish_rows();
}

void row(Walk& w) {
  i64 n = w.dim(0, 1) / w.T;
  for (i64 i = 0; i < w.dim(0, 0); i++)
    for (i64 j = 0; j < n; j++) w.item(0, i * w.dim(0, 1) + w.t * n + j);
  w.finish({w.dim(0, 0), n}, 1);
}

void replicate(Walk& w) {
  for (i64 i = 0; i < w.c.sources[0].items(); i++) w.item(0, i);
  w.finish(w.c.sources[0], -1);
}

void head_norm_of_ones(Walk& w) {
  for (i64 i = 0; i < w.m.text.head_dim; i++) w.out.items.push_back(-1);
  w.finish({w.m.text.head_dim}, -1);
  w.out.addend = 1;
}

void zero_centered_norm(Walk& w) {
  replicate(w);
  w.out.addend = -1;
}

void replicate_row(Walk& w) {
  replicate(w);
  w.finish({w.dim(0, 1)}, -1);
}

void replicate_slice(Walk& w) {
  w.row(0, w.e);
  w.finish({w.row_items(0)}, -1);
}

void replicate_transposed(Walk& w) {
  for (i64 i = 0; i < w.dim(0, 1); i++)
    for (i64 j = 0; j < w.dim(0, 0); j++) w.item(0, j * w.dim(0, 1) + i);
  w.finish({w.dim(0, 1), w.dim(0, 0)}, -1);
}

// Cell by cell: which group has the cell's first item, if every group is on so many cells.
void column_by_group(Walk& w) {
  i64 groups = w.m.text.kv_groups, dim = w.m.text.head_dim, shared = groups < w.T ? w.T / groups : 1;
  i64 own = groups < w.T ? 1 : groups / w.T;
  for (i64 g = w.t / shared * own; g < w.t / shared * own + own; g++)
    for (i64 d = 0; d < dim; d++) w.item(0, g * dim + d);
  w.finish({own * dim}, groups == 1 && w.T > 1 ? -1 : 0);
  w.out.copies = groups == 1 ? 1 : shared;
}

void vocab(Walk& w) {
  i64 V = w.dim(0, 0), Vp = w.c.padded_vocab == 0 ? V : w.c.padded_vocab, n = Vp / w.T;
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++) {
    if (r < V) {
      w.row(0, r);
    } else {
      w.zero_row();
    }
  }
  w.finish_rows();
}

constexpr int kNothing = -1;                          // the rows are zeros
constexpr int again(int slot) { return 100 + slot; }  // the rows are the slot's a second time

// The fused rows, each filled by its formula, then cut in T equal parts. k and v of one head are dk and dv
// rows further than where their source begins.
void attention(Walk& w, int q_slot, int k_slot, i64 k_row, int v_slot, i64 v_row, int g_slot = kNothing) {
  const TowerConfig& a = w.m.text;
  i64 nh = a.heads, ng = a.kv_groups, D = a.head_dim, V = a.value_dim > 0 ? a.value_dim : D, qp = nh / ng;
  bool gates = g_slot != kNothing;
  i64 B = ((a.output_gate || gates ? 2 * qp : qp) + 1) * D + V;
  struct From {
    int slot;
    i64 row;
  };
  std::vector<From> fused(static_cast<std::size_t>(B * ng), From{-1, -1});
  auto at = [&](i64 r) -> From& { return fused[static_cast<std::size_t>(r)]; };
  for (i64 g = 0; g < ng; g++)
    for (i64 d = 0; d < D; d++) {
      for (i64 j = 0; j < qp; j++) {
        if (a.output_gate) {
          at(g * B + j * D + d) = {q_slot, (g * qp + j) * 2 * D + d};
          at(g * B + qp * D + j * D + d) = {q_slot, (g * qp + j) * 2 * D + D + d};
        } else {
          at(g * B + j * D + d) = {q_slot, (g * qp + j) * D + d};
        }
        if (gates) at(g * B + (qp + j) * D + d) = {d == 0 ? g_slot : again(g_slot), g * qp + j};
      }
      at((g + 1) * B - V - D + d) = {k_slot, k_row + g * D + d};
    }
  for (i64 g = 0; g < ng; g++)
    for (i64 d = 0; d < V; d++) at((g + 1) * B - V + d) = {v_slot, v_row + g * V + d};
  i64 n = B * ng / w.T;
  for (i64 r = w.t * n; r < (w.t + 1) * n; r++) {
    if (at(r).slot == kNothing)
      w.zero_row();
    else if (at(r).slot >= again(0))
      w.row_again(at(r).slot - again(0), at(r).row);
    else
      w.row(at(r).slot, at(r).row);
  }
  w.finish_rows();
}

void qkv_keys_as_values(Walk& w) { attention(w, 0, 1, 0, again(1), 0); }
void qkv_queries_only(Walk& w) { attention(w, 0, kNothing, 0, kNothing, 0); }

void qkv(Walk& w) { attention(w, 0, 1, 0, 2, 0); }
void qkv_head_gates(Walk& w) { attention(w, 0, 1, 0, 2, 0, 3); }

// Group by group: rows of the file's queries with their gates, then its keys and values.
void qkv_gates_by_head(Walk& w) {
  const TowerConfig& a = w.m.text;
  const i64 q = a.heads / a.kv_groups * a.head_dim * (a.output_gate ? 2 : 1), k = a.head_dim;
  const i64 v = a.value_dim > 0 ? a.value_dim : k;
  std::vector<std::pair<int, i64>> all;
  for (i64 g = 0; g < a.kv_groups; g++)
    for (auto [slot, rows] : {std::pair<int, i64>{0, q}, {1, k}, {2, v}})
      for (i64 r = 0; r < rows; r++) all.emplace_back(slot, g * rows + r);
  const i64 n = std::ssize(all) / w.T;
  for (i64 i = w.t * n; i < (w.t + 1) * n; i++) {
    auto [slot, row] = all[static_cast<std::size_t>(i)];
    w.row(slot, row);
  }
  w.finish_rows();
}

void qkv_joined(Walk& w) {
  const TowerConfig& a = w.m.text;
  i64 q_rows = a.heads * a.head_dim * (a.output_gate ? 2 : 1), k_rows = a.kv_groups * a.head_dim;
  attention(w, 0, 0, q_rows, 0, q_rows + k_rows);
}

void mla_down(Walk& w) {
  for (int slot : {0, 1})
    for (i64 r = 0; r < w.dim(slot, 0); r++) w.row(slot, r);
  w.finish_rows();
  w.out.partition_dim = -1;
}

void gated_mlp(Walk& w) {
  i64 n = w.dim(0, 0) / w.T;
  for (int half : {0, 1})
    for (i64 r = 0; r < n; r++) w.row(half, w.t * n + r);
  w.finish_rows();
}

void gated_mlp_joined(Walk& w) {
  i64 width = w.dim(0, 0) / 2, n = width / w.T;
  for (i64 first : {w.t * n, width + w.t * n})
    for (i64 r = first; r < first + n; r++) w.row(0, r);
  w.finish_rows();
}

// Fused experts: unit u of the cell, gate or up (half 0 or 1), column h.
i64 hidden(const Walk& w) { return w.m.moe.latent > 0 ? w.m.moe.latent : w.m.text.hidden; }

template <typename Item>
void gated_units(Walk& w, Item&& item) {
  i64 n = w.m.moe.ffn / w.T;
  for (int half : {0, 1})
    for (i64 u = w.t * n; u < (w.t + 1) * n; u++)
      for (i64 h = 0; h < hidden(w); h++) item(half, u, h);
  w.finish({2 * n, hidden(w)}, 0);
}

void gated_expert(Walk& w) {
  gated_units(w, [&](int half, i64 u, i64 h) { w.item3(w.e, half * w.m.moe.ffn + u, h); });
}

void gated_expert_transposed(Walk& w) {
  gated_units(w, [&](int half, i64 u, i64 h) { w.item3(w.e, h, half * w.m.moe.ffn + u); });
}

void gated_expert_interleaved(Walk& w) {
  gated_units(w, [&](int half, i64 u, i64 h) { w.item3(w.e, h, 2 * u + half); });
}

void gated_expert_interleaved_rows(Walk& w) {
  gated_units(w, [&](int half, i64 u, i64 h) { w.item3(w.e, 2 * u + half, h); });
}

void gated_expert_interleaved_bias(Walk& w) {
  i64 n = w.m.moe.ffn / w.T;
  for (int half : {0, 1})
    for (i64 u = w.t * n; u < (w.t + 1) * n; u++) w.item(0, w.e * 2 * w.m.moe.ffn + 2 * u + half);
  w.finish({2 * n}, 0);
}

void gated_expert_of_two(Walk& w) {
  gated_units(w, [&](int half, i64 u, i64 h) { w.item3(w.e, u, h, half); });
}

void expert_column(Walk& w) {
  i64 n = w.m.moe.ffn / w.T;
  for (i64 u = w.t * n; u < (w.t + 1) * n; u++)
    for (i64 h = 0; h < hidden(w); h++) w.item3(w.e, u, h);
  w.finish({n, hidden(w)}, 0);
}

template <typename Item>
void down_items(Walk& w, Item&& item) {
  i64 n = w.m.moe.ffn / w.T;
  for (i64 h = 0; h < hidden(w); h++)
    for (i64 u = w.t * n; u < (w.t + 1) * n; u++) item(h, u);
  w.finish({hidden(w), n}, 1);
}

void expert_row(Walk& w) {
  down_items(w, [&](i64 h, i64 u) { w.item3(w.e, h, u); });
}

void expert_row_transposed(Walk& w) {
  down_items(w, [&](i64 h, i64 u) { w.item3(w.e, u, h); });
}

void expert_replicate(Walk& w) {
  for (i64 h = 0; h < hidden(w); h++) w.item(0, w.e * hidden(w) + h);
  w.finish({hidden(w)}, -1);
}

// Calls row(head, d) for d in [0, size) of each of the cell's heads.
template <typename Row>
void heads(const Walk& w, i64 all, i64 size, Row&& row) {
  for (i64 h = w.t * all / w.T; h < (w.t + 1) * all / w.T; h++)
    for (i64 d = 0; d < size; d++) row(h, d);
}

void gdn_in_proj(Walk& w) {
  const GdnConfig& g = w.m.gdn;
  i64 qk = g.key_heads * g.key_dim;
  heads(w, g.key_heads, g.key_dim, [&](i64 h, i64 d) { w.row(0, h * g.key_dim + d); });
  heads(w, g.key_heads, g.key_dim, [&](i64 h, i64 d) { w.row(0, qk + h * g.key_dim + d); });
  heads(w, g.value_heads, g.value_dim, [&](i64 h, i64 d) { w.row(0, 2 * qk + h * g.value_dim + d); });
  heads(w, g.value_heads, g.value_dim, [&](i64 h, i64 d) { w.row(1, h * g.value_dim + d); });
  heads(w, g.value_heads, 1, [&](i64 h, i64) { w.row(2, h); });
  heads(w, g.value_heads, 1, [&](i64 h, i64) { w.row(3, h); });
  w.finish_rows();
}

void gdn_in_proj_grouped(Walk& w) {
  const GdnConfig& g = w.m.gdn;
  i64 dk = g.key_dim, dv = g.value_dim, vp = g.value_heads / g.key_heads, W = 2 * dk + 2 * vp * dv;
  heads(w, g.key_heads, dk, [&](i64 h, i64 d) { w.row(0, h * W + d); });
  heads(w, g.key_heads, dk, [&](i64 h, i64 d) { w.row(0, h * W + dk + d); });
  for (i64 z : {0, 1})
    heads(w, g.value_heads, dv,
          [&](i64 h, i64 d) { w.row(0, h / vp * W + 2 * dk + z * vp * dv + h % vp * dv + d); });
  heads(w, g.value_heads, 1, [&](i64 h, i64) { w.row(1, h / vp * 2 * vp + h % vp); });
  heads(w, g.value_heads, 1, [&](i64 h, i64) { w.row(1, h / vp * 2 * vp + vp + h % vp); });
  w.finish_rows();
}

void gdn_conv(Walk& w) {
  const GdnConfig& g = w.m.gdn;
  i64 qk = g.key_heads * g.key_dim;
  heads(w, g.key_heads, g.key_dim, [&](i64 h, i64 d) { w.row(0, h * g.key_dim + d); });
  heads(w, g.key_heads, g.key_dim, [&](i64 h, i64 d) { w.row(0, qk + h * g.key_dim + d); });
  heads(w, g.value_heads, g.value_dim, [&](i64 h, i64 d) { w.row(0, 2 * qk + h * g.value_dim + d); });
  w.finish_rows();
}

// The cell's key heads in turn, and of each first its q, k and values.
template <typename Rest>
void by_head(Walk& w, Rest&& rest) {
  const GdnConfig& g = w.m.gdn;
  const i64 qk = g.key_heads * g.key_dim, vp = g.value_heads / g.key_heads * g.value_dim;
  for (i64 h = w.t * g.key_heads / w.T; h < (w.t + 1) * g.key_heads / w.T; h++) {
    for (i64 d = 0; d < g.key_dim; d++) w.row(0, h * g.key_dim + d);
    for (i64 d = 0; d < g.key_dim; d++) w.row(0, qk + h * g.key_dim + d);
    for (i64 d = 0; d < vp; d++) w.row(0, 2 * qk + h * vp + d);
    rest(h, vp);
  }
  w.finish_rows();
}

void gdn_qkvz(Walk& w) {
  by_head(w, [&](i64 h, i64 vp) {
    for (i64 d = 0; d < vp; d++) w.row(1, h * vp + d);
  });
}

void gdn_conv_by_head(Walk& w) {
  by_head(w, [](i64, i64) {});
}

void gdn_ba(Walk& w) {
  const GdnConfig& g = w.m.gdn;
  const i64 each = g.value_heads / g.key_heads;
  for (i64 h = w.t * g.key_heads / w.T; h < (w.t + 1) * g.key_heads / w.T; h++)
    for (int slot : {0, 1})
      for (i64 v = 0; v < each; v++) w.row(slot, h * each + v);
  w.finish_rows();
}

// x begins at row `x`; B and C follow.
void mamba_channels(Walk& w, i64 x) {
  const MambaConfig& b = w.m.mamba;
  i64 di = b.heads * b.head_dim, ss = b.groups * b.state;
  heads(w, b.heads, b.head_dim, [&](i64 h, i64 d) { w.row(0, x + h * b.head_dim + d); });
  heads(w, b.groups, b.state, [&](i64 g, i64 n) { w.row(0, x + di + g * b.state + n); });
  heads(w, b.groups, b.state, [&](i64 g, i64 n) { w.row(0, x + di + ss + g * b.state + n); });
}

void mamba_in_proj(Walk& w) {
  const MambaConfig& b = w.m.mamba;
  i64 di = b.heads * b.head_dim, ss = b.groups * b.state;
  heads(w, b.heads, b.head_dim, [&](i64 h, i64 d) { w.row(0, h * b.head_dim + d); });
  mamba_channels(w, di);
  heads(w, b.heads, 1, [&](i64 h, i64) { w.row(0, 2 * di + 2 * ss + h); });
  w.finish_rows();
}

void mamba_conv(Walk& w) {
  mamba_channels(w, 0);
  w.finish_rows();
}

const std::map<std::string_view, void (*)(Walk&)> kNaive = {
    {"column", column},
    {"column_transposed", column_transposed},
    {"column_swapped", column_swapped},
    {"column_by_group", column_by_group},
    {"column_joined", column_joined},
    {"replicate_row", replicate_row},
    {"replicate_slice", replicate_slice},
    {"replicate_transposed", replicate_transposed},
    {"row", row},
    {"replicate", replicate},
    {"zero_centered_norm", zero_centered_norm},
    {"vocab", vocab},
    {"qkv", qkv},
    {"qkv_gates_by_head", qkv_gates_by_head},
    {"qkv_joined", qkv_joined},
    {"qkv_head_gates", qkv_head_gates},
    {"qkv_keys_as_values", qkv_keys_as_values},
    {"qkv_queries_only", qkv_queries_only},
    {"head_norm_of_ones", head_norm_of_ones},
    {"mla_down", mla_down},
    {"gated_mlp", gated_mlp},
    {"gated_mlp_joined", gated_mlp_joined},
    {"gated_expert", gated_expert},
    {"gated_expert_transposed", gated_expert_transposed},
    {"gated_expert_interleaved", gated_expert_interleaved},
    {"gated_expert_interleaved_rows", gated_expert_interleaved_rows},
    {"gated_expert_interleaved_bias", gated_expert_interleaved_bias},
    {"gated_expert_of_two", gated_expert_of_two},
    {"expert_column", expert_column},
    {"expert_row", expert_row},
    {"expert_row_transposed", expert_row_transposed},
    {"expert_replicate", expert_replicate},
    {"gdn_in_proj", gdn_in_proj},
    {"gdn_in_proj_grouped", gdn_in_proj_grouped},
    {"gdn_conv", gdn_conv},
    {"gdn_qkvz", gdn_qkvz},
    {"gdn_ba", gdn_ba},
    {"gdn_conv_by_head", gdn_conv_by_head},
    {"mamba_in_proj", mamba_in_proj},
    {"mamba_conv", mamba_conv},
};

}  // namespace

NaiveHolding naive_hold(const RuleCase& c, i64 part, i64 expert) {
  Walk w{c, c.model, part, c.parts, expert, {}};
  kNaive.at(c.rule)(w);
  return w.out;
}

}  // namespace mckpt::impl
