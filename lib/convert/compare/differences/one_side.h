// Sentences about the two sides of a comparison name them by their paths: which of them is "the other one"
// depends on the order in which they were given.
//
//   only ckpt/release has this tensor
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

class Store;

// The path of a side, for a sentence: of a model that an adapter is merged into, the adapter's.
std::string side_path(const Store& store);
// "only PATH has this WHAT"
std::string only_in(const Store& store, std::string_view what);

}  // namespace mckpt::impl
