// The help texts of the conversions between forms of layer names. They are apart from the command, which has
// one set of options for four ways.
#pragma once

#include <vector>

#include "convert/plan/relayer.h"

namespace mckpt::impl {

// The texts of one way.
struct LayerWayText {
  const char *pattern_help, *description;
  std::vector<const char*> examples;
};
const LayerWayText& text_of(LayerWay way);

}  // namespace mckpt::impl
