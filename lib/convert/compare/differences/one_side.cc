#include "convert/compare/differences/one_side.h"

#include "core/base/text.h"
#include "hf/adapter/adapted_store.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::string side_path(const Store& store) {
  const AdaptedStore* merged = adapted_view(store);
  return escaped(merged ? merged->folder() : store.root(), 4096);
}

std::string only_in(const Store& store, std::string_view what) {
  return cat("only ", side_path(store), " has this ", what);
}

}  // namespace mckpt::impl
