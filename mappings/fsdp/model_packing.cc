// Groups that are alike are found by a text that has everything in which groups of layers can differ: kind,
// types, names below the unit, shapes and places. Layers of a large model are few different ones.
#include "mappings/fsdp/model_packing.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "mappings/fsdp/fp8.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/fsdp/units.h"

namespace mckpt::impl {
namespace {

// Holes are between parameters, padding is after the last one.
void measure(const FlatBuffer& buffer, GroupFacts& facts) {
  i64 end = 0;
  for (const PackedParameter& p : buffer.parameters) {
    facts.items += p.items;
    end = std::max(end, p.end());
    if (p.items >= buffer.chunk_items) facts.chunks_end = std::max(facts.chunks_end, p.end());
  }
  facts.holes = end - facts.items;
  facts.padding = buffer.bucket_items - end;
}

// Equal texts: the groups differ in the number of their unit alone.
std::string likeness(const std::vector<ModelParameter>& parameters, const FsdpGroup& group,
                     const GroupFacts& facts) {
  std::string text = cat(facts.expert, facts.trainable, facts.stack, static_cast<int>(facts.dtype), " ",
                         group.buffer.bucket_items, " ", group.buffer.chunk_items, " ",
                         facts.unit.substr(0, facts.unit.rfind('.')));
  for (std::size_t i = 0; i < group.bucket.members.size(); i++) {
    const ModelParameter& p = parameters[group.bucket.members[static_cast<i64>(i)]];
    text += cat("\n", std::string_view(p.global_name).substr(facts.unit.size()), " ", to_string(p.shape()),
                " ", group.buffer.parameters[i].offset);
  }
  return text;
}

}  // namespace

ModelPacking packing_of(const std::vector<ModelParameter>& parameters, const Grid& grid,
                        const FsdpSetup& setup) {
  refuse_pipeline(grid);
  ModelPacking out;
  out.groups = packed_groups(parameters, members_of(parameters, setup), grid, setup);
  // A bucket may have parameters of no layer alone, such as the final norm of a stack, so modules are named
  // by all parameters of the model.
  const std::map<i64, UnitModule> modules = UnitOwners(setup).modules(parameters);
  std::map<std::string, i64> first;
  for (i64 g = 0; g < std::ssize(out.groups); g++) {
    const FsdpGroup& group = out.groups[g];
    const ModelParameter& p = parameters[group.bucket.members.front()];
    bool unit = group.bucket.unit != kNoUnit;
    const UnitModule module = unit ? modules.at(group.bucket.unit) : UnitModule{};
    GroupFacts facts{.unit = module.name,
                     .stack = module.stack,
                     .experts_alone = module.experts,
                     .unit_class = module.layer,
                     .expert = group.bucket.expert,
                     .trainable = p.trainable,
                     .dtype = is_fp8_weight(p, setup) ? DType::kF8E4M3 : p.dtype,
                     .ranks = group.bucket.expert ? grid.edp() : grid.dp * grid.cp};
    measure(group.buffer, facts);
    if (setup.strategy != Strategy::kNoShard) facts.cuts = row_cuts(group.buffer);
    if (unit)
      if (auto [at, is_first] = first.try_emplace(likeness(parameters, group, facts), g); !is_first)
        facts.like = at->second;
    out.facts.push_back(std::move(facts));
  }
  return out;
}

std::string_view place_text(const FsdpGroup& group, const GroupFacts& facts, i64 member) {
  const PackedParameter& p = group.buffer.parameters[member];
  i64 chunk = group.buffer.chunk_items;
  if (p.items < chunk)
    return p.offset < facts.chunks_end ? "smaller than the csf: in a gap"
                                       : "smaller than the csf: behind the others";
  if (p.offset % chunk != 0) return "its remainder first, in the gap of the one before";
  return p.items % chunk == 0 ? "a multiple of the csf" : "a multiple of the csf, and a remainder";
}

}  // namespace mckpt::impl
