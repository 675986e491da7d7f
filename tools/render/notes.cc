// Prints the notes that a result of the library carries: warnings with warn(), the others with note(), in
// their order.
#include "tools/render/notes.h"

#include "core/base/notes.h"
#include "tools/render/output.h"

namespace mckpt::impl {

void print_notes(const GlobalFlags& flags, const Notes& notes) {
  for (const Note& n : notes)
    if (n.kind == Note::Kind::kWarning)
      warn(flags, n.text);
    else
      note(flags, n.text);
}

}  // namespace mckpt::impl
