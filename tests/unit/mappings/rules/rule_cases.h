// Small models for the tests of the rules, and a rule put to work on one of them.
#pragma once

#include <string>
#include <vector>

#include "mappings/config.h"
#include "mappings/rule.h"

namespace mckpt::impl {

inline ModelConfig attention_model(i64 heads, i64 groups, i64 dim, i64 hidden, bool gate = false) {
  ModelConfig m;
  m.text.heads = heads;
  m.text.kv_groups = groups;
  m.text.head_dim = dim;
  m.text.hidden = hidden;
  m.text.output_gate = gate;
  return m;
}

inline ModelConfig with_values(ModelConfig m, i64 value_dim) {
  m.text.value_dim = value_dim;
  return m;
}

inline ModelConfig with_head_gates(ModelConfig m) {
  m.text.head_gates = true;
  return m;
}

inline ModelConfig gdn_model(i64 nk, i64 nv, i64 dk, i64 dv, i64 hidden, i64 kernel = 4) {
  ModelConfig m;
  m.text.hidden = hidden;
  m.gdn = {nk, nv, dk, dv, kernel};
  return m;
}

inline ModelConfig mamba_model(i64 heads, i64 dim, i64 groups, i64 state, i64 hidden, i64 kernel = 4) {
  ModelConfig m;
  m.text.hidden = hidden;
  m.mamba = {heads, dim, state, groups, kernel};
  return m;
}

inline ModelConfig moe_model(i64 experts, i64 width, i64 hidden, i64 latent = 0) {
  ModelConfig m;
  m.text.hidden = hidden;
  m.moe.experts = experts;
  m.moe.ffn = width;
  m.moe.latent = latent;
  return m;
}

inline ModelConfig vocab_model(i64 vocab) {
  ModelConfig m;
  m.vocab = vocab;
  return m;
}

inline ModelConfig mla_model(i64 q_lora, i64 kv_lora, i64 rope, i64 hidden) {
  ModelConfig m;
  m.text.hidden = hidden;
  m.mla.q_lora = q_lora;
  m.mla.kv_lora = kv_lora;
  m.mla.rope = rope;
  return m;
}

// One tensor (or, for rules of fused experts, one per expert), over all its cells.
struct RuleCase {
  std::string_view rule;
  ModelConfig model;
  std::vector<Shape> sources;
  i64 parts = 1;
  i64 experts = 1;  // so many parameters share the sources
  i64 padded_vocab = 0;
};

inline Holding hold_case(const RuleCase& c, i64 part, i64 expert = 0) {
  std::vector<GlobalShape> sources;
  for (const Shape& s : c.sources) sources.push_back({s});
  RuleInput in{c.model, c.model.text, sources, {part, c.parts}, expert, c.padded_vocab};
  return hold(rule_named(c.rule), in);
}

std::string to_string(const RuleCase& c);  // for failing tests

// Every size that the rule looks at, in thousands of combinations: equal and unequal widths, odd heads, more
// cells than groups. Each is valid, and small enough to be written out item by item.
std::vector<RuleCase> cases_of(std::string_view rule);

}  // namespace mckpt::impl
