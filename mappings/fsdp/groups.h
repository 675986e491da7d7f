// The flat buffers of a model under Megatron-FSDP: which parameters share a buffer, and how each is packed.
//
//   parameters of one cell -> members (no buffers; unit = layer)  -> buckets_of(): members that share a buffer
//                                                                 -> pack(): the place of each in its buffer
//
// All ranks of one tensor- and expert-parallel cell have the same groups, so they are computed once for a
// cell.
#pragma once

#include "core/base/int.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/param_groups.h"

namespace mckpt::impl {

struct Cell;
struct FsdpPlace;
struct FsdpSetup;
struct Grid;
struct ModelParameter;
enum class UnitClass : u8;

// One flat buffer and the parameters in it. Member i of the bucket is parameter i of the buffer.
struct FsdpGroup {
  Bucket bucket;  // members: indices into the parameters
  FlatBuffer buffer;
};

// A parameter to pack, and its FSDP unit.
struct GroupMember {
  i64 parameter = 0;
  i64 unit = kNoUnit;
};

// How a run of that set-up groups its parameters.
Grouping grouping_of(const FsdpSetup& setup);
// Whether layers of this class are units.
bool is_unit(UnitClass layer, const FsdpSetup& setup);
// Throws kBadLayout if stacks should be units and the model has none that can be one.
void refuse_without_stacks(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup);

// All parameters except buffers and second names, with the units that own them (units.h). Throws what
// refuse_without_stacks() throws.
std::vector<GroupMember> members_of(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup);

// Groups whose shards may cut rows, so that some of them may be impossible to save. pre: the members are not
// buffers, and are in order of registration. Throws what buckets_of() and pack() throw.
std::vector<FsdpGroup> packed_groups(const std::vector<ModelParameter>& parameters,
                                     std::span<const GroupMember> members, const Grid& grid,
                                     const FsdpSetup& setup);

// Groups that ranks can save. pre: as for packed_groups(). Throws what it throws, and kRowUnaligned if the
// range of any rank cuts a row.
std::vector<FsdpGroup> pack_groups(const std::vector<ModelParameter>& parameters,
                                   std::span<const GroupMember> members, const Grid& grid,
                                   const FsdpSetup& setup);

// The place of a rank among the ranks that share the buffer.
FsdpPlace place_in(const FsdpGroup& group, const Grid& grid, const Cell& cell);

}  // namespace mckpt::impl
