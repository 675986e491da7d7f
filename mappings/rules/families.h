// Every family of rules, one file each; rule.cc makes one table of them. A new family is a file, and a line
// here and in rule.cc.
//
//   column row replicate vocab     plain parameters, and the padded vocabulary
//   qkv mla                        attention: fused queries, keys and values; joined down projections
//   gated_mlp gated_expert expert  feed-forward layers, dense and one expert of a tensor of all
//   gdn mamba                      recurrent mixers, whose in_proj fuses five or six sections
#pragma once

#include <span>

namespace mckpt::impl {

struct Rule;

std::span<const Rule> column_rules();
std::span<const Rule> row_rules();
std::span<const Rule> replicate_rules();
std::span<const Rule> vocab_rules();
std::span<const Rule> qkv_rules();
std::span<const Rule> mla_rules();
std::span<const Rule> gated_mlp_rules();
std::span<const Rule> gated_expert_rules();
std::span<const Rule> expert_rules();
std::span<const Rule> gdn_rules();
std::span<const Rule> mamba_rules();

}  // namespace mckpt::impl
