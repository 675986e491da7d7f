// The store knows why it was chosen; what was left out is beside it.
#include "convert/open/choice.h"

#include <algorithm>

#include "core/base/notes.h"
#include "core/base/text.h"
#include "io/store/open/beside.h"
#include "io/store/store.h"

namespace mckpt::impl {

void note_choice(const std::string& path, const Store& store, Notes& notes) {
  const auto chosen = std::ranges::find(store.facts(), "chosen", [](const auto& fact) { return fact.first; });
  if (chosen == store.facts().end()) return;
  const std::vector<std::string> beside = checkpoints_beside(path, store);
  if (!beside.empty())
    notes.note(cat("source  ", escaped(chosen->second, 4096), "; not read: ", listed(beside)));
}

}  // namespace mckpt::impl
