// Groups the parameters of a model into buckets and packs each bucket. Indices change on the way:
// buckets_of() speaks of positions in the list of members, and a finished group speaks of the model's
// parameters again.
#include "mappings/fsdp/groups.h"

#include <algorithm>

#include "core/base/error.h"
#include "mappings/fsdp/fp8.h"
#include "mappings/fsdp/setup.h"
#include "mappings/fsdp/units.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

const ModelParameter& at(const std::vector<ModelParameter>& parameters, i64 index) {
  return parameters[index];
}

// If a cut is inside a row, no rank can be saved, so the layout is refused for all ranks.
void refuse_unaligned(const std::vector<ModelParameter>& parameters, const FsdpGroup& group) {
  for (i64 m = 0; m < std::ssize(group.bucket.members); m++)
    if (std::optional<i64> item = unaligned_cut(group.buffer, m)) {
      const ModelParameter& p = at(parameters, group.bucket.members[m]);
      throw Error(Code::kRowUnaligned, "a shard would begin inside a row of a parameter")
          .tensor(p.global_name)
          .expected(cat("a multiple of ", p.shape().row_items(), " items"))
          .found(*item)
          .note("a real training run also fails when it builds these shards")
          .help("choose another `dp` or `strategy`");
    }
}

}  // namespace

Grouping grouping_of(const FsdpSetup& setup) {
  return {setup.strategy, setup.unit_scope, setup.bucket_items, setup.engine};
}

bool is_unit(UnitClass unit, const FsdpSetup& setup) {
  return (unit == UnitClass::kTransformerLayer && setup.transformer_units) ||
         (unit == UnitClass::kMambaLayer && setup.mamba_units);
}

void refuse_without_stacks(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup) {
  auto in_stack = [](const ModelParameter& p) { return p.stack >= 0; };
  if (!setup.hybrid_stack_units || std::ranges::any_of(parameters, in_stack)) return;
  throw Error(Code::kBadLayout, "the model has no HybridStack that could be an FSDP unit")
      .expected("a hybrid model: each layer is a mixer or a feed-forward part alone")
      .help("choose layers as units: TransformerLayer, MambaLayer");
}

std::vector<GroupMember> members_of(const std::vector<ModelParameter>& parameters, const FsdpSetup& setup) {
  refuse_without_stacks(parameters, setup);
  std::vector<GroupMember> members;
  UnitOwners owners(setup);
  for (i64 i = 0; i < std::ssize(parameters); i++) {
    const ModelParameter& p = at(parameters, i);
    if (!p.buffer() && p.tied_to < 0) members.push_back({i, owners.of(p)});
  }
  return members;
}

std::vector<FsdpGroup> packed_groups(const std::vector<ModelParameter>& parameters,
                                     std::span<const GroupMember> members, const Grid& grid,
                                     const FsdpSetup& setup) {
  refuse_fp8(parameters, setup);
  std::vector<Parameter> list;
  for (const GroupMember& m : members) {
    const ModelParameter& p = at(parameters, m.parameter);
    const DType type = is_fp8_weight(p, setup) ? DType::kF8E4M3 : p.dtype;
    list.push_back({p.shape(), type, p.expert(), p.trainable, false, m.unit});
  }
  std::vector<FsdpGroup> groups;
  for (Bucket& bucket : buckets_of(list, grouping_of(setup))) {
    std::vector<Shape> shapes;
    for (i64& member : bucket.members) {
      shapes.push_back(list[member].shape);
      member = members[member].parameter;
    }
    i64 ranks = bucket.expert ? grid.edp() : grid.dp * grid.cp;
    const bool fp8 = is_fp8_weight(at(parameters, bucket.members[0]), setup);
    FlatBuffer buffer = pack(
        shapes, {setup.engine, setup.strategy, ranks, grid.hsdp, grid.outer, fp8 ? block_rows(setup) : 1});
    groups.push_back({std::move(bucket), std::move(buffer)});
  }
  return groups;
}

std::vector<FsdpGroup> pack_groups(const std::vector<ModelParameter>& parameters,
                                   std::span<const GroupMember> members, const Grid& grid,
                                   const FsdpSetup& setup) {
  std::vector<FsdpGroup> groups = packed_groups(parameters, members, grid, setup);
  if (setup.strategy != Strategy::kNoShard)
    for (const FsdpGroup& group : groups) refuse_unaligned(parameters, group);
  return groups;
}

FsdpPlace place_in(const FsdpGroup& group, const Grid& grid, const Cell& cell) {
  return group.bucket.expert ? expert_place(grid, cell) : dense_place(grid, cell);
}

}  // namespace mckpt::impl
