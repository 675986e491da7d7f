// Pictures of split rules: the items of small sources, and their places in the cells. Pictures are drawn from
// the runs that the rule returns, not from a description of the rule, so they are always true.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mappings/config.h"
#include "mappings/key_split.h"
#include "mappings/rule.h"

namespace mckpt::impl {

// A named part of the sources with its own colour: "q", "gate". The first letter of the name marks its items.
struct SourcePart {
  std::string_view name;
  ItemRun items;
};

// A tensor small enough to draw item by item.
struct RuleExample {
  std::string_view name;  // of the picture; a rule can have several pictures
  std::string_view rule;
  std::string_view caption;
  ModelConfig model = {};  // the parameter is one of the language model
  std::vector<GlobalShape> sources = {};
  std::vector<SourcePart> parts = {};
  i64 cells = 2;
  i64 experts = 1;                   // number of parameters that the sources make
  KeySplit split = KeySplit::kNone;  // gives the names of keys beside the rows of the cells
  i64 padded_vocab = 0;
};

std::span<const RuleExample> all_examples();

std::string draw_svg(const RuleExample& example);
std::string draw_text(const RuleExample& example);  // for a terminal

}  // namespace mckpt::impl
