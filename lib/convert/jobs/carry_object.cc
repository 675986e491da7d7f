// The pickle of an object is all that is taken from a packed record.
#include "convert/jobs/carry_object.h"

#include <utility>

#include "convert/objects/source_args.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"

namespace mckpt::impl {

void add_carried(const Store& source, const Object& object, DcpLayout& layout, DcpName name, i32 rank,
                 std::vector<CarriedRecord>& records) {
  if (object.file >= 0 && source.traits.packed)
    return layout.add_object(std::move(name), rank, object_pickle(source, object));
  records.push_back(carry_object(source, object, layout, std::move(name), rank));
}

}  // namespace mckpt::impl
