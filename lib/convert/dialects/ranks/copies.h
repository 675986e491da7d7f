// Whether tensors that several ranks hold alike, each in its own file, are the same in all of them, and
// whether ranks that hold different parts have the same bytes.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class Store;

// `copies`: pairs of tensors of the store. Checksums decide where the files have them, and the bytes
// elsewhere, or with `read_all` everywhere. Throws kBadShards with the files and tensors that differ.
void refuse_unlike_copies(const Store& store, std::span<const std::pair<i64, i64>> copies, bool read_all);

// Throws kBadShards if the model in the file of one tensor rank is, byte for byte, that in the file of
// another: every model has parameters that are cut over the tensor ranks, so one file is a copy of the other.
// Models of constants alone (ones and zeros) are equal on all ranks and pass. pre: a store of files of
// Megatron's ranks.
void refuse_equal_ranks(const Store& store);

// `steps`: of each file, the counts of steps that the optimizer had made of its parameters. Throws kBadShards
// if the largest count of a file differs from the largest count of the first file: all parameters of a run
// step together.
void refuse_other_steps(const Store& store, std::span<const std::vector<i64>> steps);

// Whether the models of two files have the same names and shapes, so that no table of parameters tells
// whether the files changed places.
bool has_ranks_alike(const Store& store);

}  // namespace mckpt::impl
