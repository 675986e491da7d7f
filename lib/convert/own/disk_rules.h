// How the names of a model's tensors in memory become the names of its folder, by the config's model_type.
// The rules are the reverse of those by which transformers loads folders
// (test_data/own_names/make_disk_names.py).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mckpt::impl {

// A stack of experts in memory, by the end of its name, and the tensors of each expert, by what replaces that
// end: {E} is the expert. `second` is set for a stack of two: the first half of its rows is `first`.
struct StackRule {
  std::string_view stack, first, second = {};
};

// Words of a name in memory, and what replaces them. The words end with a dot, or end the name.
struct NameRule {
  std::string_view memory, disk;
};

struct DiskRules {
  std::string_view model_type;
  std::span<const StackRule> stacks{};  // those that are split; empty: none, stacks are the form on disk
  std::span<const NameRule> fronts{};   // of what begins a name: the first that fits counts
  std::span<const NameRule> words{};    // anywhere in a name: each counts, one after the other
};

// The rules of a model; null if it is not known.
const DiskRules* disk_rules(std::string_view model_type);

// The name on disk; the name itself where no rule fits or `rules` is null. A stack that is split keeps the
// end of its name.
std::string name_on_disk(std::string_view name, const DiskRules* rules);

}  // namespace mckpt::impl
