// A flat buffer drawn with one letter per parameter, and the ranks' boundaries:
//
//   0                16               32               48
//   |aaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaa|aaaaaaaabbbbbbbb|bb..............|
//    r0               r1               r2               r3
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct FlatBuffer;

// How and how wide to draw. The label is asked for with the number of a shard, because with HSDP shards and
// ranks differ.
struct PictureStyle {
  bool unicode = true;
  int columns = 80;                             // the widest line allowed
  std::function<std::string(i64)> shard_label;  // the text below a shard
};

// a to z, A to Z, and from the start again.
char parameter_letter(i64 p);

// The lines of the picture, without line ends. A column is one item if there is room, else it shows the
// parameter that has most of its items; many shards are drawn on several lines, very many in one strip.
std::vector<std::string> buffer_picture(const FlatBuffer& buffer, const PictureStyle& style);

}  // namespace mckpt::impl
