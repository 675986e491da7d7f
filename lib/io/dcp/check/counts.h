// Whether a DCP folder has tensors of all layers and experts that the run had. Private to io/dcp.
//
//   of 8 experts, 4 expert-parallel ranks with 2 each:
//     right                    bias0 bias1 bias2 ... bias7
//     as Megatron writes it    bias0 bias1     each rank wrote its own two under these names; six are lost
//
//   of 4 layers, 2 pipeline stages with 2 each, that both count from 0:
//     right                    layers.0 .1 .2 .3
//     as fsdp_dtensor has it   layers.0 .1     a mixture of both stages' tensors
#pragma once

#include <span>

#include "core/base/int.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"

namespace mckpt::impl {

class Findings;
class Store;
struct RunSizes;

// A tensor of the store, with the parts of its name.
struct DcpEntry {
  DcpKey key;
  i64 tensor;
};

// Adds findings for numbers that are left out, for fewer layers or experts than the run had (`facts`), and
// for what expert-parallel ranks and pipeline stages wrote over each other.
void check_counts(const Store& store, DcpDialect dialect, const RunSizes& facts,
                  std::span<const DcpEntry> entries, Findings& findings);

}  // namespace mckpt::impl
