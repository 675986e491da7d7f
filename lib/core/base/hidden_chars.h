// Characters of which a terminal or a page shows nothing: controls of the writing direction, marks without
// width, tags. With them two names look alike, or one reads in another order than it is written; they are
// shown as escapes.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

// pre: a code point above U+009F.
constexpr bool is_hidden_char(u32 c) {
  return c == 0xad || c == 0x34f || c == 0x61c || c == 0x180e ||          // soft hyphen, joiner, marks
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||  // no width; lines, directions
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||  // no width, isolates; mark of byte order
         (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);  // notes between lines; tags
}

}  // namespace mckpt::impl
