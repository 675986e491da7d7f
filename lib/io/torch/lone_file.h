// The tensors of a torch file that is read by itself. If it is one of several ranks' files, it has pieces of
// tensors: the store then shows the whole tensors, of which only that piece is there.
#pragma once

#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class TorchStore;

// Adds all tensors of the store's file, named by `prefix` and their own names, and a warning if there are
// pieces among them. Flat pieces are tensors of one dimension (io/torch/flat_pieces.h), and flat parameters
// none. Throws kUnsupportedTorchFile for flat parameters without pieces.
void add_lone_file(TorchStore& store, i32 file, std::string_view prefix = "");

}  // namespace mckpt::impl
