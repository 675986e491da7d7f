// Facts that a file shows before a reader is chosen: its name and its first bytes.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "io/file/file.h"
#include "io/store/open/sniff.h"

namespace mckpt::impl {

struct FileLook {
  std::string_view name;  // the last part of the path
  FileKind kind;
  const ByteSource& file;

  // For a format that sniff() does not know.
  bool begins_with(std::string_view bytes) const {
    if (file.size() < std::ssize(bytes)) return false;
    const std::vector<u8> head = file.read(0, std::ssize(bytes));
    return std::equal(head.begin(), head.end(), bytes.begin(),
                      [](u8 a, char b) { return a == static_cast<u8>(b); });
  }
  // For a file that begins as none of the known ones does: its reader says what is wrong with it.
  bool is_named(std::string_view suffix) const {
    return kind == FileKind::kUnknown && name.ends_with(suffix);
  }
};

}  // namespace mckpt::impl
