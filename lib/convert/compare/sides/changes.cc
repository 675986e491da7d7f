#include "convert/compare/sides/changes.h"

#include <memory>

#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "io/store/store.h"
#include "io/store/tensor_numbers.h"

namespace mckpt::impl {

Changes casts_to(const Store& tested, const Store& source) {
  Changes out;
  out.type = [&tested, &source, in_tested = std::make_shared<TensorNumbers>(tested)](i64 t) {
    const DType stored = source.dtype(t);
    const i64 at = in_tested->find(source.name(t));
    return at >= 0 && is_castable(stored) && is_castable(tested.dtype(at)) ? tested.dtype(at) : stored;
  };
  return out;
}

}  // namespace mckpt::impl
