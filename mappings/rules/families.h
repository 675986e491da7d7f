// Every family of rules, one file each; rule.cc makes one table of them. A new family is a file, and a line
// here and in rule.cc.
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
