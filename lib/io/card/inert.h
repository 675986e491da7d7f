// Words of a checkpoint in Markdown: names of tensors and files, config entries and messages may have been
// chosen by somebody who wants a page to show an image, a link or a script. inert() gives text that a page
// shows and that is nothing else:
//
//   model.norm.weight          model.norm.weight
//   <img src=x>                `<img src=x>`              a code span, in which nothing has a meaning
//   ![](http://a)              `![](http://a)`
//   a|b in a table             a\|b
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

enum class MarkdownPlace : unsigned char { kLine, kTableCell };

// One line, with control characters escaped; at most about 1,000 bytes of the text.
std::string inert(std::string_view text, MarkdownPlace place);

}  // namespace mckpt::impl
