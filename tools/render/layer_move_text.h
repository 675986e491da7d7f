// The help texts of the conversions between forms of layer names.
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class LayerWay : u8;

struct LayerWayText {
  const char *pattern_help, *description;
  std::vector<const char*> examples;
};
const LayerWayText& text_of(LayerWay way);

}  // namespace mckpt::impl
