// 200 random models with recurrent layers on random grids. Whether mckpt accepts a grid must agree with what
// Megatron asserts, which is written down here as a table of conditions; and where it accepts, every rank
// holds and computes with the rows that plain loops give it.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "core/hybrid/cp_slice.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/cp_rows.h"
#include "tests/support/golden_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace random_grids_test {

struct Case {
  ModelConfig model;
  const Family* family;
  Grid grid;
  bool mamba;
};

std::string describe(const Case& c) {
  const ModelConfig& m = c.model;
  return cat(m.model_type, " ", to_string(c.grid), "; heads ", m.text.heads, "/", m.text.kv_groups, " x ",
             m.text.head_dim, ", mamba ", m.mamba.heads, "/", m.mamba.groups, ", gdn ", m.gdn.key_heads, "/",
             m.gdn.value_heads, ", ffn ", m.text.ffn, " ", m.moe.shared_ffn, " ", m.moe.ffn, " x ",
             m.moe.experts, ", layers ", m.text.layers.size());
}

// ---- What Megatron asserts

struct Condition {
  const char* what;
  i64 size, of;
  bool either = false;  // one of the two divides the other

  bool holds() const { return size % of == 0 || (either && of % size == 0); }
};

std::vector<Condition> conditions(const Case& c) {
  const ModelConfig& m = c.model;
  const Grid& g = c.grid;
  std::vector<Condition> all = {
      {"parallel_state: ranks of a stage, expert ranks", g.tp * g.cp * g.dp, g.etp * g.ep},
      {"layers over pipeline stages", std::ssize(m.text.layers), g.pp},
      {"attention: heads over tp", m.text.heads, g.tp},
      {"attention: groups and tp", m.text.kv_groups, g.tp, true},
      {"attention: heads are in groups", m.text.heads, m.text.kv_groups},
      {"attention: rows of linear_qkv over tp",
       (m.text.heads * (m.text.output_gate ? 2 : 1) + 2 * m.text.kv_groups) * m.text.head_dim, g.tp},
      {"MoE: experts over ep", m.moe.experts, g.ep},
      {"MoE: width of an expert over etp", m.moe.ffn, g.etp},
      {"MoE: width of the shared expert over tp", m.moe.shared_ffn, g.tp},
  };
  auto add = [&](const Condition& condition) { all.push_back(condition); };
  if (c.mamba) {
    i64 heads = m.mamba.heads, groups = m.mamba.groups;
    add({"MLP: width over tp", m.text.ffn, g.tp});
    add({"MambaMixer: nheads % tp_size", heads, g.tp});
    add({"MambaMixer: ngroups % tp_size", groups, g.tp});
    add({"MambaMixer: nheads % ngroups", heads, groups});
    if (g.cp > 1 && heads % g.tp == 0 && groups % g.tp == 0) {
      heads /= g.tp, groups /= g.tp;
      add({"MambaContextParallel: nheads_local_tp % cp_size", heads, g.cp});
      if (groups < g.cp)
        add({"MambaContextParallel: cp_size % ngroups_local_tp", g.cp, groups});
      else
        add({"MambaContextParallel: ngroups_local_tp % cp_size", groups, g.cp});
    }
  } else {
    add({"TransformerConfig: linear_num_value_heads % linear_num_key_heads", m.gdn.value_heads,
         m.gdn.key_heads});
    add({"TransformerConfig: linear_num_key_heads % (tp * cp)", m.gdn.key_heads, g.tp * g.cp});
    add({"TransformerConfig: linear_num_value_heads % (tp * cp)", m.gdn.value_heads, g.tp * g.cp});
  }
  return all;
}

// ---- Naive holdings: items as slot * 10^9 + index in the source, in the order of the rank's tensor

constexpr i64 kSlot = 1'000'000'000;
using Items = std::vector<i64>;

struct Rows {
  std::vector<std::pair<i64, i64>> rows;  // (slot, row)
  void add(i64 slot, i64 first, i64 n) {
    for (i64 r = first; r < first + n; r++) rows.emplace_back(slot, r);
  }
  // The r-th of `of` equal parts of rows [first, first + n).
  void add_part(i64 slot, i64 first, i64 n, Part part) {
    add(slot, first + part.index * (n / part.count), n / part.count);
  }

  Items items(i64 width, i64 begin = 0, i64 end = -1) const {
    Items out;
    for (auto [slot, row] : rows)
      for (i64 c = begin; c < (end < 0 ? width : end); c++) out.push_back(slot * kSlot + row * width + c);
    return out;
  }
};

Items columns(i64 height, i64 width, Part part) {
  Rows all;
  all.add(0, 0, height);
  return all.items(width, part.index * (width / part.count), (part.index + 1) * (width / part.count));
}

Items rows_of(i64 height, i64 width, Part part) {
  Rows mine;
  mine.add_part(0, 0, height, part);
  return mine.items(width);
}

// Groups one behind the other, each with its queries, gates, key and value; the rows in equal parts.
Items naive_qkv(const TowerConfig& t, Part part) {
  Rows all, mine;
  i64 per = t.heads / t.kv_groups, d = t.head_dim, twins = t.output_gate ? 2 : 1;
  for (i64 g = 0; g < t.kv_groups; g++) {
    for (i64 twin = 0; twin < twins; twin++)
      for (i64 h = g * per; h < (g + 1) * per; h++) all.add(0, (h * twins + twin) * d, d);
    all.add(1, g * d, d), all.add(2, g * d, d);
  }
  i64 n = std::ssize(all.rows) / part.count;
  mine.rows.assign(all.rows.begin() + part.index * n, all.rows.begin() + (part.index + 1) * n);
  return mine.items(t.hidden);
}

Items naive_mamba_blocks(const MambaConfig& m, bool conv, i64 width, Part part) {
  i64 di = m.heads * m.head_dim, ss = m.groups * m.state, at = 0;
  Rows mine;
  for (i64 block : conv ? std::vector<i64>{di, ss, ss} : std::vector<i64>{di, di, ss, ss, m.heads}) {
    mine.add_part(0, at, block, part);
    at += block;
  }
  return mine.items(width);
}

// in_proj_qkvz and in_proj_ba have everything of one key head together, for its value heads one after the
// other.
Items naive_gdn_in_proj(const GdnConfig& g, i64 hidden, Part part) {
  i64 vp = g.value_heads / g.key_heads, dk = g.key_dim, dv = g.value_dim, w = 2 * dk + 2 * vp * dv;
  i64 keys = g.key_heads / part.count, first = part.index * keys;
  Rows mine;
  for (i64 k = first; k < first + keys; k++) mine.add(0, k * w, dk);
  for (i64 k = first; k < first + keys; k++) mine.add(0, k * w + dk, dk);
  for (i64 which : {0, 1})  // v, z
    for (i64 v = first * vp; v < (first + keys) * vp; v++)
      mine.add(0, v / vp * w + 2 * dk + which * vp * dv + v % vp * dv, dv);
  for (i64 which : {0, 1})  // b, a
    for (i64 v = first * vp; v < (first + keys) * vp; v++)
      mine.add(1, v / vp * 2 * vp + which * vp + v % vp, 1);
  return mine.items(hidden);
}

Items naive_gdn_conv(const GdnConfig& g, Part part) {
  Rows mine;
  i64 qk = g.key_heads * g.key_dim, v = g.value_heads * g.value_dim;
  mine.add_part(0, 0, qk, part), mine.add_part(0, qk, qk, part), mine.add_part(0, 2 * qk, v, part);
  return mine.items(g.conv_kernel);
}

Items naive_gated(i64 ffn, i64 hidden, Part part) {
  Rows mine;
  mine.add_part(0, 0, ffn, part), mine.add_part(1, 0, ffn, part);
  return mine.items(hidden);
}

// Rows behind the vocabulary are padding, -1.
Items naive_vocab(i64 vocab, i64 rows, i64 hidden, Part part) {
  Items items = rows_of(rows, hidden, part);
  for (i64& i : items)
    if (i >= vocab * hidden) i = -1;
  return items;
}

Items naive_items(const Case& c, const ModelParameter& p, i64 vocab_rows) {
  const ModelConfig& m = c.model;
  const Part tp = p.part;  // of experts etp
  const i64 h = m.text.hidden;
  const std::string row(p.row->megatron);
  if (row.ends_with("word_embeddings.weight") || row == "output_layer.weight")
    return naive_vocab(m.vocab, vocab_rows, h, tp);
  if (row == "mixer.in_proj.weight") return naive_mamba_blocks(m.mamba, false, h, tp);
  if (row == "mixer.conv1d_weight") return naive_mamba_blocks(m.mamba, true, m.mamba.conv_kernel, tp);
  if (row == "mixer.conv1d_bias") return naive_mamba_blocks(m.mamba, true, 1, tp);
  if (row == "mixer.dt_bias" || row == "mixer.A_log" || row == "mixer.D")
    return rows_of(m.mamba.heads, 1, tp);
  if (row == "mixer.norm.weight") return rows_of(m.mamba.heads * m.mamba.head_dim, 1, tp);
  if (row == "mixer.out_proj.weight") return columns(h, m.mamba.heads * m.mamba.head_dim, tp);
  if (row == "self_attention.in_proj.weight") return naive_gdn_in_proj(m.gdn, h, tp);
  if (row == "self_attention.conv1d.weight") return naive_gdn_conv(m.gdn, tp);
  if (row == "self_attention.dt_bias" || row == "self_attention.A_log")
    return rows_of(m.gdn.value_heads, 1, tp);
  if (row == "self_attention.out_proj.weight") return columns(h, m.gdn.value_heads * m.gdn.value_dim, tp);
  if (row == "self_attention.linear_qkv.weight") return naive_qkv(m.text, tp);
  if (row == "self_attention.linear_proj.weight") return columns(h, m.text.heads * m.text.head_dim, tp);
  i64 ffn = row.starts_with("mlp.experts.") ? m.moe.ffn
            : row.starts_with("mlp.shared") ? m.moe.shared_ffn
                                            : m.text.ffn;
  if (row.ends_with("linear_fc1.weight") || row.ends_with("linear_fc1.weight{E}"))
    return c.mamba ? rows_of(ffn, h, tp) : naive_gated(ffn, h, tp);
  if (row.ends_with("linear_fc2.weight") || row.ends_with("linear_fc2.weight{E}")) return columns(h, ffn, tp);
  Items whole(static_cast<std::size_t>(p.shape().items()));  // norms, routers: on every rank
  for (std::size_t i = 0; i < whole.size(); i++) whole[i] = static_cast<i64>(i);
  return whole;
}

Items items_of(const Holding& holding) {
  Items out;
  for (const ItemRun& run : holding.runs)
    for (i64 i = 0; i < run.items(); i++)
      out.push_back(run.slot == kPaddingSlot ? -1 : run.slot * kSlot + run.at(i));
  return out;
}

// ---- Naive context-parallel slices: the rows of the tensor of one tensor-parallel rank, one by one

Items naive_cp_rows(const Case& c, const ModelParameter& p, i64 rank) {
  const ModelConfig& m = c.model;
  const i64 tp = c.grid.tp, cp = c.grid.cp, rows = p.shape().rank() > 0 ? p.shape()[0] : 1;
  Items out;
  auto add = [&](i64 first, i64 n) {
    for (i64 r = first; r < first + n; r++) out.push_back(r);
  };
  const std::string row(p.row->megatron);
  bool heads = row.ends_with(".dt_bias") || row.ends_with(".A_log") || row == "mixer.D";
  if (row.starts_with("mixer.conv1d_")) {
    i64 d = m.mamba.heads * m.mamba.head_dim / tp, groups = m.mamba.groups / tp, s = m.mamba.state;
    i64 first = cp > groups ? rank / (cp / groups) : rank * (groups / cp), n = cp > groups ? 1 : groups / cp;
    add(rank * (d / cp), d / cp);
    add(d + first * s, n * s);
    add(d + groups * s + first * s, n * s);
  } else if (row == "self_attention.conv1d.weight") {
    i64 qk = m.gdn.key_heads * m.gdn.key_dim / tp, v = m.gdn.value_heads * m.gdn.value_dim / tp;
    add(rank * (qk / cp), qk / cp), add(qk + rank * (qk / cp), qk / cp),
        add(2 * qk + rank * (v / cp), v / cp);
  } else if (heads) {
    add(rank * (rows / cp), rows / cp);
  } else {
    add(0, rows);
  }
  return out;
}

Items rows_listed(const std::vector<RowRange>& ranges) {
  Items out;
  for (const RowRange& r : ranges)
    for (i64 i = r.begin; i < r.end; i++) out.push_back(i);
  return out;
}

// ---- Random cases

struct Random {
  std::mt19937 bits;
  i64 of(std::initializer_list<i64> choices) { return choices.begin()[bits() % choices.size()]; }
};

// Sizes of which no two are alike, so that no rule can take one for another.
Case random_case(Random& r, bool mamba) {
  HfConfig golden = golden_config(mamba ? "nemotron_h_moe" : "qwen3_next");
  Case c{golden.model, golden.family, {}, mamba};
  ModelConfig& m = c.model;
  m.vocab = r.of({37, 48, 53}), m.text.hidden = 10;
  m.text.heads = r.of({4, 6, 8, 12}), m.text.kv_groups = r.of({1, 2, 4, 6}),
  m.text.head_dim = r.of({3, 4, 6});
  m.text.ffn = r.of({12, 20, 24, 36});
  m.moe.experts = r.of({4, 6, 8, 12}), m.moe.ffn = r.of({5, 6, 14}),
  m.moe.shared_ffn = r.of({12, 24, 30, 36});
  m.mtp.depths = 0;
  if (mamba) {
    m.mamba = {.heads = r.of({8, 12, 16, 24, 24}),
               .head_dim = 5,
               .state = 3,
               .groups = r.of({1, 2, 4, 6, 12}),
               .conv_kernel = 4};
    m.text.layers = {{Mixer::kMamba, Ffn::kNone},
                     {Mixer::kNone, Ffn::kMoe},
                     {Mixer::kAttention, Ffn::kNone},
                     {Mixer::kNone, Ffn::kDense}};
  } else {
    m.gdn = {.key_heads = r.of({4, 6, 8, 12, 12}),
             .value_heads = r.of({8, 12, 24, 24}),
             .key_dim = 3,
             .value_dim = 5,
             .conv_kernel = 2};
    m.text.layers = {{Mixer::kGdn, Ffn::kMoe}, {Mixer::kAttention, Ffn::kMoe}};
  }
  Grid& g = c.grid;
  g.tp = r.of({1, 1, 2, 2, 2, 3, 4}), g.cp = r.of({1, 1, 2, 2, 2, 3, 4}), g.ep = r.of({1, 1, 1, 2, 2, 3, 4});
  g.etp = r.of({1, 1, 1, 1, 2}), g.pp = r.of({1, 1, 1, 1, 2, 3}), g.dp = r.of({1, 2, 2, 3, 4});
  return c;
}

// "nothing" where mckpt accepts the model on the grid, on all of its ranks alike; else what it says.
std::string refusal(const Case& c, const std::function<void(const ModelMap&, const RunSetup&)>& then) {
  std::set<std::string> told;
  std::optional<ModelMap> map;
  RunSetup setup;
  told.insert(thrown_by([&] {
    check_grid(c.grid);
    map.emplace(ModelMap::promised(c.model, *c.family));
    setup.vocab_rows = vocab_rows(map->model(), map->family(), c.grid.tp, {VocabChoice::kAuto, 0});
    map->parameters(c.grid, cell_of(c.grid, 0), setup);
  }));
  if (*told.begin() != "nothing") return *told.begin();
  then(*map, setup);
  return "nothing";
}

// Every rank's parameters, and the shards of all ranks together.
void check_ranks(const Case& c, const ModelMap& map, const RunSetup& setup) {
  std::map<std::string, std::vector<int>> held;  // by parameter and cell: how often its items are in a shard
  std::set<std::string> checked;
  const FsdpSetup fsdp{.engine = Engine::kV2};
  for (i64 rank = 0; rank < c.grid.world(); rank++) {
    Cell cell = cell_of(c.grid, rank);
    std::vector<ModelParameter> parameters = map.parameters(c.grid, cell, setup);
    const i64 experts = c.model.moe.experts / c.grid.ep;
    for (const ModelParameter& p : parameters) {
      bool mine = !p.expert() || p.expert_number / experts == cell.ep;
      EXPECT_TRUE(mine && p.part.index == (p.expert() ? cell.etp : cell.tp)) << p.global_name;
      if (checked.insert(cat(p.row->megatron, " ", p.part.index)).second) {
        ASSERT_EQ(items_of(*p.holding), naive_items(c, p, setup.vocab_rows))
            << p.global_name << " of rank " << rank;
      }
      if (checked.insert(cat(p.row->megatron, " cp ", cell.cp)).second) {
        ASSERT_EQ(rows_listed(cp_rows(p, c.model, c.grid, cell.cp)), naive_cp_rows(c, p, cell.cp))
            << p.global_name << " of rank " << rank;
      }
    }
    if (c.grid.pp > 1) continue;  // Megatron-FSDP saves no pipeline stages
    FsdpLayout layout(parameters, map.model(), c.grid, fsdp);
    for (const FsdpTensor& t : layout.tensors(cell)) {
      const ModelParameter& p = parameters[t.parameter];
      if (p.buffer()) continue;
      std::vector<int>& times = held[cat(p.global_name, p.expert() ? " etp " : " tp ", p.part.index)];
      times.resize(static_cast<std::size_t>(p.shape().items()));
      for (i64 i = t.items.begin; i < t.items.end; i++) times[i]++;
    }
  }
  for (const auto& [name, times] : held)
    ASSERT_EQ(std::count(times.begin(), times.end(), 1), std::ssize(times))
        << name << " is not in one shard each";
}

TEST(RandomGrids, AreAcceptedAsMegatronAssertsAndHeldAsPlainLoopsGiveThem) {
  Random r{std::mt19937(20261)};
  std::map<std::string, int> broken;  // how often each condition alone decided
  int accepted = 0, refused = 0;
  for (int i = 0; i < 200; i++) {
    Case c = random_case(r, i % 2 == 0);
    SCOPED_TRACE(cat("case ", i, ": ", describe(c)));
    std::vector<const char*> not_met;
    const std::vector<Condition> all = conditions(c);
    for (const Condition& condition : all)
      if (!condition.holds()) not_met.push_back(condition.what);
    std::string told =
        refusal(c, [&](const ModelMap& map, const RunSetup& setup) { check_ranks(c, map, setup); });
    EXPECT_EQ(told == "nothing", not_met.empty())
        << told << "\nnot met: " << (not_met.empty() ? "none" : not_met.front());
    not_met.empty() ? accepted++ : refused++;
    if (not_met.size() == 1) broken[not_met[0]]++;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(accepted, 40);
  EXPECT_GT(refused, 40);
  EXPECT_GT(broken.size(), 8u);
}

}  // namespace random_grids_test
}  // namespace mckpt::impl
