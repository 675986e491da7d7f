// Whether files of ranks could have changed places without anything in them showing it: the weights would
// then be at wrong places, and nothing else odd. `verify` says that the order was not checked, and
// conversions warn of it.
#pragma once

namespace mckpt::impl {

class Notes;
class Store;

inline constexpr const char* kOrderUnsaid = "nothing in the files says it";

// False where the files say their ranks, where no two of them could change places, and of formats without
// files of ranks. A manifest is not looked at.
bool order_is_unsaid(const Store& store);

// Adds a warning if the order is unsaid, and no manifest says which file is whose. `store`: as it is on disk,
// the source of a conversion.
void warn_of_unsaid_order(const Store& store, Notes& notes);

}  // namespace mckpt::impl
