// The files are opened as a conversion opens them: as tensors of the whole model.
#include "convert/open/rank_parameters.h"

#include "convert/open/checkpoint.h"
#include "convert/open/options.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "io/store/soundness.h"
#include "io/store/state_part.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::optional<i64> parameters_of_ranks(const Store& store) {
  if (!store.driver().ranks_apart || !is_sound(store) || own_assets(store).empty()) return std::nullopt;
  CheckpointOptions options;
  options.copies = CopyUse::kIgnore;
  options.model.files = store.opening();
  try {
    const CheckpointModel model = open_checkpoint(store.root(), options);
    i64 items = 0;
    for (i64 t = 0; t < model.store().tensor_count(); t++)
      if (part_of(model.store().name(t)) == StatePart::kModel) items += model.store().shape(t).items();
    return items;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return std::nullopt;  // verify says what is wrong with them
  }
}

}  // namespace mckpt::impl
