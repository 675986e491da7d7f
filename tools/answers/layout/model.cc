// Facts of a whole layout that both writers show. Dense buffers all have the same number of shards, and so
// have the experts' buffers; a rank stores the sum for its dense shard and the sum for its expert shard.
#include "tools/answers/layout/model.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/item_run.h"

namespace mckpt::impl {
namespace {

bool sharded(const ModelLayout& l) { return l.fsdp.strategy != Strategy::kNoShard; }

// By shard, the bytes of parameters that the buffers of dense parameters (or of experts) have there.
std::vector<i64> bytes_by_shard(const ModelLayout& l, bool expert, i64 shards) {
  std::vector<i64> out(static_cast<std::size_t>(shards));
  for (std::size_t g = 0; g < l.packing.groups.size(); g++) {
    const GroupFacts& facts = l.packing.facts[g];
    const FlatBuffer& b = l.packing.groups[g].buffer;
    if (facts.expert != expert) continue;
    for (i64 p = 0; p < std::ssize(b.parameters); p++) {
      const PackedParameter& at = b.parameters[p];
      i64 first = sharded(l) ? at.offset / b.shard_items : 0;
      i64 last = sharded(l) ? (at.end() - 1) / b.shard_items : shards - 1;
      for (i64 s = first; s <= last; s++)
        out[s] += dtype_bytes(l.stored(facts), sharded(l) ? item_range(b, p, s).items() : at.items);
    }
  }
  return out;
}

// The least and the most that any rank of the world stores.
void weigh_ranks(const ModelLayout& l, LayoutTotals& t) {
  std::vector<i64> dense = bytes_by_shard(l, false, dense_place(l.grid, l.cell).world);
  std::vector<i64> expert = bytes_by_shard(l, true, expert_place(l.grid, l.cell).world);
  t.least_bytes = INT64_MAX;
  for (i64 r = 0; r < l.grid.world(); r++) {
    Cell cell = cell_of(l.grid, r);
    i64 bytes = dense[dense_place(l.grid, cell).shard] + expert[expert_place(l.grid, cell).shard];
    if (bytes < t.least_bytes) t.least_bytes = bytes, t.least_rank = r;
    if (bytes > t.most_bytes) t.most_bytes = bytes, t.most_rank = r;
  }
}

std::string unit_reason(const ModelLayout& l, i64 group) {
  const GroupFacts& facts = l.packing.facts[group];
  if (!facts.unit.empty())
    return cat("of one FSDP unit, ", escaped(facts.unit),
               facts.experts_alone                          ? ", the experts of a layer"
               : facts.stack                                ? ", a HybridStack"
               : facts.unit_class == UnitClass::kMambaLayer ? ", a MambaLayer"
                                                            : ", a TransformerLayer");
  bool layers = false, left_out = false;
  for (i64 m : l.packing.groups[group].bucket.members) {
    const ModelParameter& p = l.parameters[m];
    bool in_unit = is_unit(p.unit_class, l.fsdp) || (l.fsdp.hybrid_stack_units && p.stack >= 0);
    layers = layers || p.unit_class != UnitClass::kNone;
    left_out = left_out || (p.unit_class != UnitClass::kNone && !in_unit);
  }
  if (!layers) return "outside FSDP units: in no layer";
  if (left_out) return "outside FSDP units: layers of their class are none here";
  return cat("outside FSDP units: ", strategy_name(l.fsdp.strategy), " has none here");
}

// How many buckets its group was cut into; "" inside units, which are never cut.
std::string size_reason(const ModelLayout& l, i64 group) {
  const GroupFacts& facts = l.packing.facts[group];
  if (!facts.unit.empty()) return "not cut by size, as units never are";
  if (l.fsdp.bucket_items == 0) return "not cut by size, as buckets have no limit";
  i64 count = 0, number = 0;
  for (i64 g = 0; g < std::ssize(l.packing.facts); g++) {
    const GroupFacts& f = l.packing.facts[g];
    bool same = f.unit.empty() && f.expert == facts.expert && f.trainable == facts.trainable &&
                f.dtype == facts.dtype;
    count += same;
    if (g <= group) number += same;
  }
  std::string limit = cat(with_commas(l.fsdp.bucket_items), " items");
  if (count == 1) return cat("not cut by size: the limit is ", limit);
  return cat("bucket ", number, " of ", count, ", each cut after the parameter that reaches ", limit);
}

}  // namespace

bool ModelLayout::row_aligned() const {
  return std::ranges::all_of(packing.facts, [](const GroupFacts& f) { return f.cuts.empty(); });
}

LayoutTotals totals_of(const ModelLayout& l) {
  LayoutTotals t;
  for (std::size_t g = 0; g < l.packing.groups.size(); g++) {
    const GroupFacts& facts = l.packing.facts[g];
    const FlatBuffer& b = l.packing.groups[g].buffer;
    t.parameters += std::ssize(b.parameters), t.items += facts.items;
    t.bytes += dtype_bytes(l.stored(facts), facts.items);
    t.bucket_items += b.bucket_items, t.holes += facts.holes, t.padding += facts.padding;
    t.shard_bytes += dtype_bytes(l.stored(facts), sharded(l) ? b.shard_items : b.bucket_items);
  }
  for (const ModelParameter& p : l.parameters)
    if (p.buffer()) t.buffers++, t.buffer_items += p.shape().items();
  weigh_ranks(l, t);
  return t;
}

PackedShapes shapes_of(const ModelLayout& l, i64 group) {
  const FsdpGroup& g = l.packing.groups[group];
  const GroupFacts& facts = l.packing.facts[group];
  PackedShapes out;
  out.packing = {l.fsdp.engine, l.fsdp.strategy, facts.ranks, l.grid.hsdp, l.grid.outer};
  out.dtype = l.stored(facts);
  out.buffer = g.buffer;
  out.cuts = facts.cuts;
  for (i64 m = 0; m < std::ssize(g.bucket.members); m++) {
    const ModelParameter& p = l.parameters[g.bucket.members[m]];
    out.shapes.push_back(p.shape());
    out.names.push_back(p.global_name);
    out.places.emplace_back(place_text(g, facts, m));
  }
  return out;
}

std::vector<std::string> reasons_of(const ModelLayout& l, i64 group) {
  const GroupFacts& facts = l.packing.facts[group];
  return {cat(dtype_name(facts.dtype), " at run time"),
          facts.expert ? "experts: their names have .experts." : "dense: no name has .experts.",
          facts.trainable ? "trained" : "frozen", unit_reason(l, group), size_reason(l, group)};
}

std::string sharers_of(const ModelLayout& l, i64 group) {
  const GroupFacts& facts = l.packing.facts[group];
  std::string copies = l.grid.hsdp > 1 ? cat(" in ", l.grid.hsdp, " HSDP instances") : "";
  return cat(with_commas(facts.ranks), facts.expert ? " expert data-parallel" : " data-parallel",
             l.grid.cp > 1 && !facts.expert ? " and context-parallel" : "",
             facts.ranks == 1 ? " rank" : " ranks", copies);
}

std::vector<std::string> cuts_of(const ModelLayout& l, i64 group) {
  std::vector<std::string> out;
  for (const RowCut& cut : l.packing.facts[group].cuts) {
    const ModelParameter& p = l.parameters[l.packing.groups[group].bucket.members[cut.parameter]];
    out.push_back(cut_message(cut, p.global_name));
  }
  return out;
}

std::string_view cut_advice() {
  return "another --dp, --strategy or --bucket-size; --engine v2 cuts no rows";
}

}  // namespace mckpt::impl
