// A checkpoint of a hybrid model whose layers stand in groups, under the names that its layers have without
// them. Nothing is copied.
#pragma once

#include "convert/views/piece_store.h"
#include "io/dcp/dialect.h"

namespace mckpt {

// Whether the args say that the layers stand in groups. False where they say nothing.
bool has_grouped_layers(const Store& store);

// pre: has_grouped_layers(), of torch_dist or fsdp_dtensor. The store itself where its names are flat all the
// same. Throws what keeps layers from being renamed.
std::unique_ptr<Store> with_flat_layers(std::unique_ptr<Store> store, DcpDialect dialect);

}  // namespace mckpt
