// Only a source that has states, and no main weights at all, gets them: where some are missing, they are
// missing.
#include "convert/compare/sides/main_weights.h"

#include <algorithm>

#include "convert/open/checkpoint.h"
#include "core/base/name_hash.h"
#include "io/dcp/keys/key.h"

namespace mckpt::impl {
namespace {

bool is_main(std::string_view state) { return state.ends_with(".fp32_param") || state.ends_with(".param"); }

}  // namespace

WithMainWeights::WithMainWeights(const CheckpointModel& model, const Store& tested)
    : StoreView(model.store()) {
  take_objects();
  NameSet<std::string> trained;  // keys with states
  for (i64 t = 0; t < source().tensor_count(); t++) {
    std::optional<StateName> state = state_name(source().name(t));
    if (!state) continue;
    if (is_main(source().name(t))) return;
    trained.insert(state->key);
  }
  for (i64 t = 0; t < tested.tensor_count(); t++) {
    std::optional<StateName> state = state_name(tested.name(t));
    if (!state || !is_main(tested.name(t)) || !trained.contains(state->key)) continue;
    if (i32 weight = model.tensor_of_key(state->key); weight >= 0)
      made_.push_back({std::string(tested.name(t)), weight});
  }
}

ChunkData WithMainWeights::resolve(i64 t, i64 index) const {
  ChunkData out = source().resolve(of(t), index);
  if (is_made(t))
    out.checksum.reset(), out.beneath.clear();  // they are the weight's, which is read once more
  return out;
}

}  // namespace mckpt::impl
