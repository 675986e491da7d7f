// The fields of the objects by which torch describes distributed tensors: DTensor, its spec, mesh and
// placements, and what a ShardedTensor has. A later torch may add fields, and readers here pass them by;
// `verify` names them.
//
//   DTensorSpec {mesh, placements, tensor_meta, shard_order, ..., field_of_tomorrow}      DTensorSpec.field_of_tomorrow
#pragma once

#include <string>
#include <vector>

namespace mckpt::impl {

class Pickle;

// Those that nobody here knows, as "class.field", each once and the first few of them. ShardMetadata is not
// looked at: ShardRows takes it out of the pickle.
std::vector<std::string> unknown_fields(const Pickle& pickle);

}  // namespace mckpt::impl
