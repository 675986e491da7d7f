// Conversions compare what they read with the sums of a manifest, which belong to a file under its name.
#include "convert/open/unsaid_order.h"

#include "convert/dialects/ranks/copies.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "io/listing/manifest.h"
#include "io/saves/rank_order.h"
#include "io/store/store.h"

namespace mckpt::impl {

bool order_is_unsaid(const Store& store) {
  if (store.driver().ranks_apart) return !rank_order(store).said && has_ranks_alike(store);
  return !store.traits.says_rank_order;
}

void warn_of_unsaid_order(const Store& store, Notes& notes) {
  if (!order_is_unsaid(store) || has_manifest(store.root(), store.opening())) return;
  notes.warn(cat("the order of the ranks was not checked (", kOrderUnsaid,
                 "): if files of two ranks changed places, the weights are wrong"));
}

}  // namespace mckpt::impl
