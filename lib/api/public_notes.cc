// Copies field by field.
#include "api/public_notes.h"

#include <algorithm>
#include <string_view>

namespace mckpt::impl {

mckpt::Note to_public(const Note& note) {
  std::string_view text = note.text;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return {note.kind == Note::Kind::kWarning, std::string(text)};
}

std::vector<mckpt::Note> to_public(const Notes& notes) {
  std::vector<mckpt::Note> out;
  for (const Note& n : notes) out.push_back(to_public(n));
  return out;
}

mckpt::Finding to_public(const Finding& f) {
  return {code_name(f.code), f.warning, f.tensor, f.file, f.offset, f.rank, f.message, f.help};
}

}  // namespace mckpt::impl
