#include "convert/compare/sides/paired_keys.h"

#include <optional>
#include <string>

#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

std::vector<PairedKey> paired_keys(const Store& source, const CheckpointModel& from,
                                   const CheckpointModel& to) {
  const KeyTable &theirs = from.keys(), &mine = to.keys();
  std::vector<PairedKey> out;
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::optional<std::string> key = model_key(source.name(t));
    if (std::optional<StateName> state = state_name(source.name(t))) key = state->key;
    PairedKey& pair = out.emplace_back();
    if (!key) continue;
    pair.from = theirs.find(*key), pair.to = mine.find(*key);
    pair.resized = pair.from >= 0 && pair.to >= 0 &&
                   theirs.parameter(theirs[pair.from]).row->rule == "vocab" &&
                   theirs[pair.from].shape != mine[pair.to].shape;
  }
  return out;
}

}  // namespace mckpt::impl
