// The flat buffers of a model under Megatron-FSDP: which of its parameters share one, and how each is packed.
#pragma once

#include "core/fsdp/param_groups.h"
#include "mappings/model/expand.h"

namespace mckpt {

struct FsdpSetup {
  Strategy strategy = Strategy::kOptimGradsParams;
  Engine engine = Engine::kV1;
  UnitScope unit_scope = UnitScope::kFullShardOnly;
  bool transformer_units = true, mamba_units = true;  // which classes of layers are units
  i64 bucket_items = 0;                               // where to cut what lies outside units; 0: not at all
  bool saved = true;  // false: what cannot be saved, though it can be held, is let through
};

struct FsdpGroup {
  Bucket bucket;  // members: indices into the parameters
  FlatBuffer buffer;
};

// A parameter that is to be packed, and the FSDP unit that it belongs to.
struct GroupMember {
  i64 parameter = 0;
  i64 unit = kNoUnit;
};

// All parameters but the buffers, with their own units as far as the setup has them.
std::vector<GroupMember> members_of(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup);

// pre: the members are no buffers, in order of registration. Throws what buckets_of() and pack() throw, and
// kRowUnaligned where any rank's range cuts a row.
std::vector<FsdpGroup> pack_groups(const std::vector<ModelParameter>& parameters,
                                   std::span<const GroupMember> members, const Grid& grid,
                                   const FsdpSetup& setup);

// Where a rank stands among those that share the buffer.
FsdpPlace place_in(const FsdpGroup& group, const Grid& grid, const Cell& cell);

}  // namespace mckpt
