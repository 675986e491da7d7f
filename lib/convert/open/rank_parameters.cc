// The files are opened as a conversion opens them: as tensors of the whole model.
#include "convert/open/rank_parameters.h"

#include "convert/open/open.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::optional<i64> parameters_of_ranks(const Store& store) {
  if (!store.driver().ranks_apart || !is_sound(store) || own_assets(store).empty()) return std::nullopt;
  OpenAs how{.source = store.root()};
  how.how.copies = CopyUse::kIgnore;
  how.how.model.files = store.opening();
  try {
    const Opened model = open_sharded(open_store(how.source, store.opening()), how);
    const Store& joined = model.store();
    i64 items = 0;
    for (i64 t = 0; t < joined.tensor_count(); t++)
      if (part_of(joined.name(t)) == StatePart::kModel) items += joined.shape(t).items();
    return items;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return std::nullopt;  // verify says what is wrong with them
  }
}

}  // namespace mckpt::impl
