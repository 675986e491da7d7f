// Whether the layers and experts that a DCP folder has tensors of are all that there were. Private to
// dcp_*.cc.
#pragma once

#include <span>

#include "core/base/int.h"
#include "io/dcp/dialect.h"

namespace mckpt::impl {

class Findings;
class Store;
struct RunFacts;

// A tensor by what its name says.
struct DcpEntry {
  DcpKey key;
  i64 tensor;
};

// Numbers that are left out, fewer than the run had, and what expert-parallel ranks and pipeline stages wrote
// over each other.
void check_counts(const Store& store, DcpDialect dialect, const RunFacts& facts,
                  std::span<const DcpEntry> entries, Findings& findings);

}  // namespace mckpt::impl
