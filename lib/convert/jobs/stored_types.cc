#include "convert/jobs/stored_types.h"

#include "mappings/model/parameter.h"

namespace mckpt::impl {

DType StoredTypes::of(const ModelParameter& p, std::string_view key) const {
  if (dtype_rule)
    if (std::optional<DType> type = dtype_rule(key)) return *type;
  bool main = !p.buffer() && (p.trainable || frozen_have_main);
  return main_dtype && main ? *main_dtype : p.dtype;
}

}  // namespace mckpt::impl
