// Pictures of split rules: the items of small sources, and where the rule puts them in the cells. They are
// drawn from what the rule answers, never from a description of it, so a picture cannot lie.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mappings/rule.h"

namespace mckpt {

// A named part of the sources, drawn in a colour of its own: "q", "gate". Its first letter marks its items.
struct SourcePart {
  std::string_view name;
  ItemRun items;
};

// A tensor small enough to draw item by item.
struct RuleExample {
  std::string_view name;  // of the picture; a rule can have several
  std::string_view rule;
  std::string_view caption;
  ModelConfig model = {};  // the parameter is one of the language model
  std::vector<GlobalShape> sources = {};
  std::vector<SourcePart> parts = {};
  i64 cells = 2;
  i64 experts = 1;                   // so many parameters come out of the sources
  KeySplit split = KeySplit::kNone;  // names the keys beside the rows of the cells
  i64 padded_vocab = 0;
};

std::span<const RuleExample> all_examples();

std::string draw_svg(const RuleExample& example);
std::string draw_text(const RuleExample& example);  // for a terminal

}  // namespace mckpt
