#include "tests/unit/mappings/rules/rule_cases.h"
#include "core/base/text.h"
#include "mappings/config.h"

#include <algorithm>
#include <map>

namespace mckpt::impl {
namespace {

using Cases = std::vector<RuleCase>;

constexpr i64 kParts[] = {1, 2, 3, 4, 6, 8};
constexpr i64 kWidths[] = {1, 2, 3, 5};

Cases column(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : {1, 2, 3, 5}) {
      cases.push_back({rule, {}, {{n * parts}}, parts});
      cases.push_back({rule, {}, {{n * parts, 1, 3}}, parts});
      for (i64 columns : kWidths) cases.push_back({rule, {}, {{n * parts, columns}}, parts});
    }
  return cases;
}

// Parts that end inside a cell, and cells that end inside a part; the last part is the shorter one.
Cases joined(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : {1, 2, 3, 5})
      for (i64 pieces : {1, 2, 3, 5})
        for (i64 columns : kWidths) {
          const i64 rows = n * parts, each = (rows + pieces - 1) / pieces;
          std::vector<Shape> sources;
          for (i64 first = 0; first < rows; first += each)
            sources.push_back({std::min(each, rows - first), columns});
          cases.push_back({rule, {}, sources, parts});
        }
  return cases;
}

Cases turned(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 rows : {1, 2, 3, 6, 8})
      for (i64 n : kWidths) cases.push_back({rule, {}, {{rows, n * parts}}, parts});
  return cases;
}

Cases swapped(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : kWidths)
      for (i64 half : {1, 2, 3, 5}) cases.push_back({rule, {}, {{n * parts, 2 * half}}, parts});
  return cases;
}

Cases row(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 rows : {1, 2, 3, 6, 8, 24})
      for (i64 n : kWidths) cases.push_back({rule, {}, {{rows, n * parts}}, parts});
  return cases;
}

Cases replicate(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : kWidths) {
      cases.push_back({rule, {}, {{n}}, parts});
      if (rule == "replicate") cases.push_back({rule, {}, {{n, 1, 3, 2, 2}}, parts});
    }
  return cases;
}

Cases vocab(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 padded_rows : {1, 2, 3, 4})
      for (i64 padding = 0; padding < padded_rows * parts; padding++)
        for (i64 columns : {1, 3}) {
          i64 padded = padded_rows * parts, rows = padded - padding;
          cases.push_back({rule, vocab_model(rows), {{rows, columns}}, parts, 1, padding == 0 ? 0 : padded});
        }
  return cases;
}

Cases attention(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 groups : {1, 2, 3, 4, 6, 8})
      for (i64 per_group : {1, 2, 3, 4})
        for (i64 dim : {1, 2, 3})
          for (bool gate : {false, true})
            for (i64 hidden : {0, 1, 3}) {  // 0: the bias
              i64 heads = groups * per_group, kv = groups * dim, q = heads * dim * (gate ? 2 : 1);
              bool meets = groups % parts == 0 || parts % groups == 0;
              if (!meets || heads % parts != 0 || (q + 2 * kv) % parts != 0) continue;
              // Which rows there are is the same as in qkv; the rest need not be gone through again.
              if (rule.ends_with("values") || rule.ends_with("only"))
                if (dim == 2 || hidden == 1 || (gate && groups == 6)) continue;
              RuleCase c{
                  rule, attention_model(heads, groups, dim, hidden == 0 ? 7 : hidden, gate), {}, parts};
              for (i64 rows : rule == "qkv" || rule == "qkv_gates_by_head" ? std::vector<i64>{q, kv, kv}
                              : rule == "qkv_keys_as_values"               ? std::vector<i64>{q, kv}
                              : rule == "qkv_queries_only"                 ? std::vector<i64>{q}
                                                                           : std::vector<i64>{q + 2 * kv})
                c.sources.push_back(hidden == 0 ? Shape{rows} : Shape{rows, hidden});
              cases.push_back(std::move(c));
            }
  return cases;
}

// Values of another size than keys.
Cases attention_and_values(std::string_view rule) {
  Cases cases = attention(rule);
  for (i64 parts : kParts)
    for (i64 groups : {1, 2, 4, 6})
      for (i64 per_group : {1, 2, 3})
        for (auto [dim, value_dim] : {std::pair<i64, i64>{3, 1}, {2, 4}, {3, 2}}) {
          i64 heads = groups * per_group, k = groups * dim, v = groups * value_dim, q = heads * dim;
          bool meets = groups % parts == 0 || parts % groups == 0;
          if (!meets || heads % parts != 0 || (q + k + v) % parts != 0) continue;
          cases.push_back({rule,
                           with_values(attention_model(heads, groups, dim, 3), value_dim),
                           {{q, 3}, {k, 3}, {v, 3}},
                           parts});
        }
  return cases;
}

// A row of gates for each head; cuts fall between a row and its copies too.
Cases attention_with_gates(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 groups : {1, 2, 3, 4, 8})
      for (i64 per_group : {1, 2, 3, 4})
        for (i64 dim : {1, 2, 3, 5})
          for (i64 hidden : {1, 3}) {
            i64 heads = groups * per_group, kv = groups * dim, q = heads * dim;
            bool meets = groups % parts == 0 || parts % groups == 0;
            if (!meets || heads % parts != 0 || (2 * q + 2 * kv) % parts != 0) continue;
            cases.push_back({rule,
                             with_head_gates(attention_model(heads, groups, dim, hidden)),
                             {{q, hidden}, {kv, hidden}, {kv, hidden}, {heads, hidden}},
                             parts});
          }
  return cases;
}

Cases ones(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 dim : {1, 2, 5, 7}) cases.push_back({rule, attention_model(4, 2, dim, 3, false), {}, parts});
  return cases;
}

Cases mla(std::string_view rule) {
  Cases cases;
  for (i64 parts : {1, 2, 4})
    for (i64 q : kWidths)
      for (i64 kv : {1, 2, 4})
        for (i64 rope : {1, 2})
          for (i64 hidden : kWidths)
            cases.push_back(
                {rule, mla_model(q, kv, rope, hidden), {{q, hidden}, {kv + rope, hidden}}, parts});
  return cases;
}

Cases gated_mlp(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : kWidths) {
      cases.push_back({rule, {}, {{n * parts}, {n * parts}}, parts});
      for (i64 columns : {1, 2, 3, 4, 5, 6, 8, 12})
        cases.push_back({rule, {}, {{n * parts, columns}, {n * parts, columns}}, parts});
    }
  return cases;
}

Cases gated_mlp_joined(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : kWidths) {
      cases.push_back({rule, {}, {{2 * n * parts}}, parts});
      for (i64 columns : {1, 2, 3, 4, 5, 6, 8, 12})
        cases.push_back({rule, {}, {{2 * n * parts, columns}}, parts});
    }
  return cases;
}

Cases by_group(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 groups : {1, 2, 3, 4, 6, 8})
      for (i64 dim : {1, 2, 3, 5})
        if (groups % parts == 0 || parts % groups == 0)
          cases.push_back({rule, attention_model(groups, groups, dim, 7, false), {{groups * dim}}, parts});
  return cases;
}

Cases only_row(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : kWidths) cases.push_back({rule, {}, {{1, n}}, parts});
  return cases;
}

Cases slices(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 rows : {1, 2, 3, 5}) {
      for (i64 n : kWidths) cases.push_back({rule, {}, {{rows, n}}, parts, rows});
      cases.push_back({rule, {}, {{rows}}, parts, rows});
    }
  return cases;
}

Cases whole_matrix(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 rows : {1, 2, 3, 6, 8})
      for (i64 n : kWidths) cases.push_back({rule, {}, {{rows, n}}, parts});
  return cases;
}

Shape expert_source(std::string_view rule, i64 experts, i64 width, i64 hidden) {
  if (rule == "gated_expert" || rule == "gated_expert_interleaved_rows") return {experts, 2 * width, hidden};
  if (rule == "gated_expert_transposed" || rule == "gated_expert_interleaved")
    return {experts, hidden, 2 * width};
  if (rule == "gated_expert_interleaved_bias") return {experts, 2 * width};
  if (rule == "expert_replicate") return {experts, hidden};
  if (rule == "expert_row") return {experts, hidden, width};
  return {experts, width, hidden};  // expert_column, expert_row_transposed, gated_expert_of_two
}

// Square ones as well: hidden = width makes the second layer square, hidden = 2 * width the first.
Cases experts(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : {1, 2, 3})
      for (i64 experts : {1, 2, 3, 5})
        for (i64 hidden : {i64{1}, i64{3}, i64{4}, n * parts, 2 * n * parts})
          for (i64 latent : {0, 2}) {
            ModelConfig model = moe_model(experts, n * parts, hidden, latent);
            Shape source = expert_source(rule, experts, n * parts, latent > 0 ? latent : hidden);
            std::vector<Shape> sources(rule == "gated_expert_of_two" ? 2 : 1, source);
            cases.push_back({rule, model, sources, parts, experts});
          }
  return cases;
}

Cases gdn(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 keys : {1, 2, 3})
      for (i64 values : {1, 2, 3})
        for (i64 dk : {1, 2, 3})
          for (i64 dv : {1, 2, 4})
            for (i64 hidden : {0, 1, 3}) {  // 0: the bias of the convolution
              i64 nk = keys * parts, nv = nk * values, qk = nk * dk, v = nv * dv;
              ModelConfig model = gdn_model(nk, nv, dk, dv, hidden, 1 + hidden);
              std::vector<Shape> sources;
              if (rule.starts_with("gdn_conv")) {
                sources = {hidden == 0 ? Shape{2 * qk + v} : Shape{2 * qk + v, 1, 1 + hidden}};
              } else if (hidden == 0) {
                continue;
              } else if (rule == "gdn_in_proj") {
                sources = {{2 * qk + v, hidden}, {v, hidden}, {nv, hidden}, {nv, hidden}};
              } else if (rule == "gdn_qkvz") {
                sources = {{2 * qk + v, hidden}, {v, hidden}};
              } else if (rule == "gdn_ba") {
                sources = {{nv, hidden}, {nv, hidden}};
              } else {
                sources = {{2 * qk + 2 * v, hidden}, {2 * nv, hidden}};
              }
              cases.push_back({rule, model, sources, parts});
            }
  return cases;
}

Cases mamba(std::string_view rule) {
  Cases cases;
  for (i64 parts : kParts)
    for (i64 n : {1, 2})
      for (i64 per_group : {1, 2, 3})
        for (i64 dim : {1, 2, 3})
          for (i64 state : {1, 2, 4})
            for (i64 hidden : {0, 1, 3}) {  // 0: the bias of the convolution
              i64 groups = n * parts, heads = groups * per_group, inner = heads * dim, ss = groups * state;
              ModelConfig model = mamba_model(heads, dim, groups, state, hidden, 1 + hidden);
              if (rule == "mamba_conv") {
                i64 rows = inner + 2 * ss;
                cases.push_back(
                    {rule, model, {hidden == 0 ? Shape{rows} : Shape{rows, 1, 1 + hidden}}, parts});
              } else if (hidden > 0) {
                cases.push_back({rule, model, {{2 * inner + 2 * ss + heads, hidden}}, parts});
              }
            }
  return cases;
}

const std::map<std::string_view, Cases (*)(std::string_view)> kCases = {
    {"column", column},
    {"column_transposed", turned},
    {"column_swapped", swapped},
    {"column_by_group", by_group},
    {"column_joined", joined},
    {"replicate_row", only_row},
    {"replicate_slice", slices},
    {"replicate_transposed", whole_matrix},
    {"row", row},
    {"replicate", replicate},
    {"zero_centered_norm", replicate},
    {"vocab", vocab},
    {"qkv", attention_and_values},
    {"qkv_gates_by_head", attention_and_values},
    {"qkv_joined", attention},
    {"qkv_head_gates", attention_with_gates},
    {"qkv_keys_as_values", attention},
    {"qkv_queries_only", attention},
    {"head_norm_of_ones", ones},
    {"mla_down", mla},
    {"gated_mlp", gated_mlp},
    {"gated_mlp_joined", gated_mlp_joined},
    {"gated_expert", experts},
    {"gated_expert_transposed", experts},
    {"gated_expert_interleaved", experts},
    {"gated_expert_interleaved_rows", experts},
    {"gated_expert_interleaved_bias", experts},
    {"gated_expert_of_two", experts},
    {"expert_column", experts},
    {"expert_row", experts},
    {"expert_row_transposed", experts},
    {"expert_replicate", experts},
    {"gdn_in_proj", gdn},
    {"gdn_in_proj_grouped", gdn},
    {"gdn_conv", gdn},
    {"gdn_qkvz", gdn},
    {"gdn_ba", gdn},
    {"gdn_conv_by_head", gdn},
    {"mamba_in_proj", mamba},
    {"mamba_conv", mamba},
};

}  // namespace

std::vector<RuleCase> cases_of(std::string_view rule) { return kCases.at(rule)(rule); }

std::string to_string(const RuleCase& c) {
  std::string out = cat(c.rule, " parts=", c.parts);
  for (const Shape& s : c.sources) out += cat(" ", to_string(s));
  const ModelConfig& m = c.model;
  if (c.experts > 1) out += cat(" experts=", c.experts);
  if (c.padded_vocab > 0) out += cat(" padded=", c.padded_vocab);
  if (m.text.heads > 0)
    out += cat(" heads=", m.text.heads, "/", m.text.kv_groups, " dim=", m.text.head_dim,
               " gate=", m.text.output_gate);
  if (m.gdn.key_heads > 0)
    out += cat(" gdn=", m.gdn.key_heads, "x", m.gdn.key_dim, ",", m.gdn.value_heads, "x", m.gdn.value_dim);
  if (m.mamba.heads > 0)
    out += cat(" mamba=", m.mamba.heads, "x", m.mamba.head_dim, ",", m.mamba.groups, "x", m.mamba.state);
  return out;
}

}  // namespace mckpt::impl
