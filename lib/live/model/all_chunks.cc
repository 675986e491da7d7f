// The plan is the one that `mckpt convert hf-to-fsdp` makes for the same grid, in the types of the stored
// weights.
#include "live/model/all_chunks.h"

#include "convert/dialects/fsdp/run.h"
#include "convert/keys/key_table.h"
#include "live/model/model.h"

namespace mckpt::impl {
namespace {

FsdpRun with_places(FsdpRun run, bool saved) {
  run.fsdp.saved = saved;
  return run;
}

}  // namespace

FsdpRun run_of(const LiveModel& model) {
  const LiveSetup& setup = model.setup();
  return {{setup.main_dtype, nullptr, setup.fsdp.saves_state_dict()}, setup.grid, setup.run, setup.fsdp};
}

AllChunks::AllChunks(const LiveModel& model, const KeyTable& keys, bool saved)
    : plan(keys, with_places(run_of(model), saved), model.setup().adjust),
      chunks(plan.layout, plan.table_key) {}

}  // namespace mckpt::impl
