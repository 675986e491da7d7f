// The help texts of the conversions between forms of layer names.
#pragma once

#include <vector>

namespace mckpt {

enum class LayerWay { kUngroup, kGroup, kToGpt, kToHybrid };

struct LayerWayText {
  const char *name, *pattern_help, *description;
  std::vector<const char*> examples;
};
const LayerWayText& text_of(LayerWay way);

}  // namespace mckpt
