// What the help of the conversions between forms of layer names says.
#pragma once

#include <vector>

namespace mckpt {

enum class LayerWay { kUngroup, kGroup, kToGpt, kToHybrid };

struct LayerWayText {
  const char *name, *pattern_help;
  std::vector<const char*> description, examples;
};
const LayerWayText& text_of(LayerWay way);

}  // namespace mckpt
