// Both texts about states that are left out.
#include "convert/open/left_states.h"

#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "io/store/store.h"

namespace mckpt::impl {

void refuse_left_states(const CheckpointModel& model) {
  if (model.left_states().empty()) return;
  throw Error(Code::kNotHeld,
              cat("the states of a distributed optimizer in files of ranks are not read: there are ",
                  counted(std::ssize(model.left_states()), "tensor")))
      .file(model.on_disk().root())
      .tensor(model.left_states()[0])
      .note("they are stretches of the buffers of one run, without the names of parameters")
      .help("`weights_only` leaves them out");
}

void note_left_states(i64 states, Notes& notes) {
  if (states > 0)
    notes.note(cat("states  ", counted(states, "tensor"), " of the optimizer are not in the result"));
}

}  // namespace mckpt::impl
