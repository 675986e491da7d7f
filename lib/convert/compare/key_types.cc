#include "convert/compare/key_types.h"

#include <optional>
#include <string_view>

#include "convert/compare/checks/types.h"
#include "convert/keys/key_table.h"
#include "convert/open/checkpoint.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

void ask_keys(const CheckpointModel& tested, const CheckpointModel* source, TypeCheck& check) {
  const bool state_dict = dcp_dialect(tested.on_disk()) == DcpDialect::kStateDict;
  for (i32 k = 0; k < tested.keys().size(); k++) {
    const CheckpointKey& key = tested.keys()[k];
    const i32 at = tested.tensor_of_key(key.name), of = source ? source->tensor_of_key(key.name) : at;
    if (at < 0 || of < 0) continue;
    const ModelParameter& p = tested.keys().parameter(key);
    const std::string_view name = tested.store().name(at);
    const DType own = source ? source->store().dtype(of) : p.dtype;
    check.add(name, check.claim().of(p, name, own, state_dict), tested.store().dtype(at));
  }
}

}  // namespace mckpt::impl
