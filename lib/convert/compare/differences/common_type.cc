// Orders the floats by the values that they have, and looks behind the views that decode.
#include "convert/compare/differences/common_type.h"

#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "hf/adapter/adapted_store.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/scheme.h"
#include "io/store/store.h"

namespace mckpt::impl {

bool holds_values_of(DType to, DType from) {
  return to == from || to == DType::kF64 || (to == DType::kF32 && from != DType::kF64);
}

DType common_type(DType a, DType b) {
  if (a == b || !is_castable(a) || !is_castable(b)) return a;
  for (DType one : {a, b})
    if (holds_values_of(one, one == a ? b : a)) return one;
  return DType::kF32;
}

std::string stored_form(const Store& store, i64 tensor) {
  if (const AdaptedStore* merged = adapted_view(store)) return stored_form(merged->base(), tensor);
  const DequantizedStore* view = dequantized_view(store);
  const QuantizedTensor* q = view ? view->quantized(tensor) : nullptr;
  return q ? scheme_text(q->layout) : std::string(dtype_name(store.dtype(tensor)));
}

}  // namespace mckpt::impl
