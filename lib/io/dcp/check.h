// What is wrong with a DCP folder although its boxes and bytes are in order: tensors that should come in
// pairs, layers and experts that should count without gaps, pipeline stages that overwrote each other, file
// hashes. None of it is checked by torch or Megatron on loading.
#pragma once

#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DcpDialect : u8;
class Store;
struct Finding;
struct RunFacts;

// What of a checkpoint is asked for: an optimizer that lost its states does not harm the weights.
enum class NamesOf : u8 { kAll, kModel };

// Looks at names and shapes alone.
std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunFacts& facts,
                                 NamesOf names = NamesOf::kAll);

}  // namespace mckpt::impl
