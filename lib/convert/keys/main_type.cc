// A weight has a key in the table; whatever has none keeps its type.
#include "convert/keys/main_type.h"

#include <string>

#include "convert/keys/key_table.h"
#include "core/items/dtype.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

DType main_type(const KeyTable& keys, std::string_view key, DType type) {
  i32 k = keys.find(std::string(key));
  bool weight = k >= 0 && !keys.parameter(keys[k]).buffer();
  return weight && (type == DType::kBF16 || type == DType::kF16) ? DType::kF32 : type;
}

}  // namespace mckpt::impl
