// Sums over the buffers. All ranks have equal buffers; moments, holes and padding depend on the shard, so
// they are summed by shard, of dense parameters and of experts apart, and the rank with the largest sum is
// taken.
#include "mappings/fsdp/memory.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/items/item_run.h"
#include "mappings/fsdp/fp8.h"
#include "mappings/fsdp/model_packing.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Which buffers a rank has a shard of; the others it has whole. Where HSDP instances have parts of each
// buffer, that is true of main weights alone: each instance has all weights and gradients, and a rank has the
// shard of its place in it.
struct Sharded {
  bool weights, main, gradients;
  explicit Sharded(Strategy s)
      : weights(s == Strategy::kOptimGradsParams),
        main(s != Strategy::kNoShard),
        gradients(s == Strategy::kOptimGrads || s == Strategy::kOptimGradsParams) {}
};

// Items of one buffer on one rank.
struct BufferItems {
  i64 all = 0, own = 0, holes = 0, padding = 0;
};

// The buffer, whole.
BufferItems whole_items(const FlatBuffer& buffer, const GroupFacts& facts) {
  return {buffer.bucket_items, facts.items, facts.holes, facts.padding};
}

// `count` shards of it from shard s on. Padding is after the last parameter, and a hole anywhere else.
BufferItems shard_items(const FlatBuffer& buffer, const GroupFacts& facts, i64 s, i64 count = 1) {
  BufferItems out{.all = buffer.shard_items * count};
  for (i64 p = 0; p < std::ssize(buffer.parameters); p++)
    for (i64 i = 0; i < count; i++) out.own += item_range(buffer, p, s + i).items();
  const i64 end = facts.items + facts.holes;  // of the last parameter
  const i64 begin = s * buffer.shard_items;
  out.padding = std::clamp(begin + out.all - std::max(end, begin), i64{0}, out.all);
  out.holes = out.all - out.own - out.padding;
  return out;
}

// Bytes that depend on the shard.
struct ByShard {
  i64 moments = 0, holes = 0, padding = 0;
};

class Sum {
 public:
  // `parts`: of HSDP instances that share each buffer; 1: every instance has all of it.
  Sum(const ModelPacking& packing, const FsdpSetup& setup, const MemoryTypes& types, i64 parts)
      : packing_(packing), setup_(setup), types_(types), parts_(parts), sharded_(setup.strategy) {}

  // Adds what every rank has alike to `out`.
  std::vector<ByShard> run(bool expert, i64 shards, RankMemory& out) {
    std::vector<ByShard> by(static_cast<std::size_t>(shards));
    for (std::size_t g = 0; g < packing_.groups.size(); g++) {
      const GroupFacts& facts = packing_.facts[g];
      if (facts.expert == expert) add(packing_.groups[g].buffer, facts, by, out);
    }
    return by;
  }

  // Gradients of 8-bit weights are in bf16 where the run chooses no type.
  DType gradients_of(const GroupFacts& f) const {
    return types_.gradients.value_or(f.dtype == DType::kF8E4M3 ? DType::kBF16 : f.dtype);
  }

 private:
  bool v2() const { return setup_.engine == Engine::kV2; }
  // v2 has one buffer for both where they are of one type and cut alike.
  bool has_main(const GroupFacts& f) const {
    if (!types_.main || !(f.trainable || v2())) return false;
    return !(v2() && *types_.main == f.dtype && sharded_.weights == sharded_.main && parts_ == 1);
  }

  void add(const FlatBuffer& buffer, const GroupFacts& f, std::vector<ByShard>& by, RankMemory& out) const {
    const bool no_buffer = setup_.strategy == Strategy::kNoShard && !v2();  // the model's own tensors
    for (i64 copy = 0; copy < (f.dtype == DType::kF8E4M3 ? weight_copies(setup_) : 1); copy++)
      add_buffer(f.dtype, sharded_.weights ? parts_ : 0, out.weights, buffer, f, by, no_buffer);
    if (has_main(f)) add_buffer(*types_.main, sharded_.main ? 1 : 0, out.main_weights, buffer, f, by, false);
    if (!f.trainable) return;
    add_buffer(gradients_of(f), sharded_.gradients ? parts_ : 0, out.gradients, buffer, f, by, false);
    for (i64 s = 0; s < std::ssize(by); s++)
      by[s].moments +=
          2 * dtype_bytes(types_.moments, sharded_.main ? shard_items(buffer, f, s).own : f.items);
  }

  // A rank has `shards` neighbouring shards of the buffer; 0: all of it.
  static void add_buffer(DType type, i64 shards, i64& bytes, const FlatBuffer& buffer, const GroupFacts& f,
                         std::vector<ByShard>& by, bool parameters_alone) {
    bytes += dtype_bytes(type, parameters_alone ? f.items
                               : shards > 0     ? buffer.shard_items * shards
                                                : buffer.bucket_items);
    for (i64 s = 0; !parameters_alone && s < std::ssize(by); s++) {
      const BufferItems items =
          shards > 0 ? shard_items(buffer, f, s / shards * shards, shards) : whole_items(buffer, f);
      by[s].holes += dtype_bytes(type, items.holes), by[s].padding += dtype_bytes(type, items.padding);
    }
  }

  const ModelPacking& packing_;
  const FsdpSetup& setup_;
  const MemoryTypes& types_;
  const i64 parts_;
  const Sharded sharded_;
};

// The unit whose weights are largest, whole. Outside units each buffer is gathered by itself.
void find_largest(const ModelPacking& packing, const Sum& sum, RankMemory& out) {
  struct Unit {
    i64 weights = 0, gradients = 0;
    std::string name{};
  };
  std::map<std::pair<i64, i64>, Unit> units;
  for (i64 g = 0; g < std::ssize(packing.groups); g++) {
    const FsdpGroup& group = packing.groups[g];
    const GroupFacts& f = packing.facts[g];
    if (group.buffer.shards < 2) continue;
    Unit& unit = units[{group.bucket.unit, group.bucket.unit == kNoUnit ? g : 0}];
    unit.name = f.unit;
    unit.weights += dtype_bytes(f.dtype, group.buffer.bucket_items);
    if (f.trainable) unit.gradients += dtype_bytes(sum.gradients_of(f), group.buffer.bucket_items);
  }
  for (const auto& [at, unit] : units)
    if (unit.weights > out.gathered)
      out.gathered = unit.weights, out.unreduced = unit.gradients, out.gathered_unit = unit.name;
}

}  // namespace

RankMemory memory_of(const std::vector<ModelParameter>& parameters, const ModelPacking& packing,
                     const Grid& grid, const FsdpSetup& setup, const MemoryTypes& types) {
  const bool outer_shard = grid.hsdp > 1 && grid.outer == HsdpOuter::kShard;
  if (outer_shard && setup.engine == Engine::kV1)
    throw Error(Code::kBadLayout,
                "the helper buffers of HSDP whose instances have parts of a buffer are not counted")
        .help("hsdp_outer replicate, or no hsdp");
  RankMemory out;
  Sum sum(packing, setup, types, outer_shard ? grid.hsdp : 1);
  const Cell first = cell_of(grid, 0);
  const std::vector<ByShard> dense = sum.run(false, dense_place(grid, first).world, out);
  const std::vector<ByShard> expert = sum.run(true, expert_place(grid, first).world, out);
  out.moments = -1;
  for (i64 r = 0; r < grid.world(); r++) {
    const Cell cell = cell_of(grid, r);
    const ByShard &d = dense[dense_place(grid, cell).shard], &e = expert[expert_place(grid, cell).shard];
    if (d.moments + e.moments <= out.moments) continue;
    out.rank = r, out.moments = d.moments + e.moments;
    out.holes = d.holes + e.holes, out.padding = d.padding + e.padding;
  }
  for (const ModelParameter& p : parameters)
    if (p.buffer()) out.buffers += dtype_bytes(p.dtype, p.shape().items());
  if (setup.strategy == Strategy::kOptimGradsParams) find_largest(packing, sum, out);
  return out;
}

OutsideUnits outside_units(const std::vector<ModelParameter>& parameters, const ModelPacking& packing) {
  OutsideUnits out;
  for (const FsdpGroup& group : packing.groups)
    for (i64 m : group.bucket.members) {
      const ModelParameter& p = parameters[m];
      if (p.global_name.find(".layers.") == p.global_name.npos) continue;
      const i64 items = p.shape().items();
      out.of_parameters++, out.of_items += items;
      if (group.bucket.unit != kNoUnit) continue;
      if (out.parameters++ == 0) out.first = p.global_name;
      out.items += items;
    }
  return out;
}

}  // namespace mckpt::impl
