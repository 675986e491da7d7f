// Groups and packs as mappings/fsdp/groups.h does for a model that is known, and cuts at the boundaries of
// each writer. The data-parallel place of a writer is not in doubt; its tensor-parallel place counts only
// where a parameter is cut by it.
#include "convert/dialects/fsdp/packing_guess.h"

#include <algorithm>
#include <map>
#include <set>

#include "convert/keys/cut_by_name.h"
#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/param_groups.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "io/store/store.h"
#include "mappings/fsdp/fp8.h"

namespace mckpt::impl {
namespace {

// The dimension of which each chunk has a part only; -1: chunks are whole rows.
int cut_column(const Store& store, i64 tensor) {
  const std::span<const i64> dims = store.dims(tensor);
  for (i64 i = 0; i < store.chunk_count(tensor); i++) {
    const Chunk c = store.chunk(tensor, i);
    for (std::size_t d = 1; d < dims.size(); d++)
      if (c.sizes[d] != dims[d] && c.sizes[d] > 0) return static_cast<int>(d);
  }
  return -1;
}

// The places of one rank in the grid.
struct Place {
  i64 part = 0;   // its tensor-parallel rank; in the experts' mesh, where it is an expert's
  i64 among = 0;  // the ranks that share its buffers
};

Place place_of_writer(const Grid& g, i64 rank, bool expert) {
  return expert ? Place{rank % g.etp, rank / (g.etp * g.ep)} : Place{rank % g.tp, rank / g.tp};
}

i64 expert_rank(const Grid& g, i64 rank) { return rank / g.etp % g.ep; }

// The dimension of the parameter that `ranks` tensor-parallel ranks cut; -1: each has it whole.
int cut_of(const Store& store, const StoredParameter& p, i64 ranks) {
  if (ranks == 1 || p.dims.empty()) return -1;
  for (const StoredPart& part : p.parts)
    if (int d = cut_column(store, part.tensor); d >= 0) return d;
  // Where two shards and two tensor-parallel ranks share a boundary, the name decides.
  if (cut_by_name(p.name) == -1) return -1;
  for (const StoredPart& part : p.parts) {
    if (part.rows % ranks != 0) return -1;
    const i64 rows = part.rows / ranks;
    for (i64 i = 0; i < store.chunk_count(part.tensor); i++) {
      const Chunk c = store.chunk(part.tensor, i);
      const i64 begin = c.rank % ranks * rows;
      if (c.offsets[0] < begin || c.offsets[0] + c.sizes[0] > begin + rows) return -1;
    }
  }
  return 0;
}

class Trial {
 public:
  Trial(const Store& store, const StoredParameters& parameters, const PackingGuess& guess, bool whole)
      : store_(store), parameters_(parameters), guess_(guess), whole_(whole) {}

  GuessResult run() {
    out_.parameters = std::ssize(parameters_.all);
    agrees_.assign(parameters_.all.size(), true);
    try {
      std::vector<i64> dense;
      for (i64 p = 0; p < out_.parameters; p++)
        if (!parameters_.all[p].expert && !is_second_name(p)) dense.push_back(p);
      look_at(dense, -1);
      for (i64 e = 0; e < (parameters_.experts > 0 ? guess_.grid.ep : 0); e++) look_at(experts_of(e), e);
      look_at_second_names();
    } catch (const Error& e) {
      if (e.code() != Code::kBadLayout && e.code() != Code::kSizeOverflow && e.code() != Code::kBadGrid)
        throw;
      out_.possible = false;
    }
    conclude();
    return std::move(out_);
  }

 private:
  bool is_second_name(i64 p) const { return guess_.second_names && parameters_.all[p].alike >= 0; }
  i64 part_ranks(const StoredParameter& p) const { return p.expert ? guess_.grid.etp : guess_.grid.tp; }

  std::vector<i64> experts_of(i64 ep) const {
    const i64 each = parameters_.experts / guess_.grid.ep;
    std::vector<i64> out;
    for (i64 p = 0; p < out_.parameters; p++) {
      const StoredParameter& at = parameters_.all[p];
      if (at.expert && (at.expert_number < 0 || at.expert_number / each == ep)) out.push_back(p);
    }
    return out;
  }

  Shape local_shape(i64 p) const {
    std::vector<i64> dims = parameters_.all[p].dims;
    if (parameters_.all[p].cut >= 0) dims[parameters_.all[p].cut] /= part_ranks(parameters_.all[p]);
    return Shape(dims);
  }

  i64 unit_of(const StoredParameter& p) {
    auto number = [&](const std::string& module) {
      return units_.try_emplace(module, std::ssize(units_)).first->second;
    };
    const bool unit = (p.layer_class == UnitClass::kTransformerLayer && guess_.transformer_units) ||
                      (p.layer_class == UnitClass::kMambaLayer && guess_.mamba_units);
    if (guess_.engine == Engine::kV2) {  // the innermost module owns, and experts are always by layer
      if (unit || (p.expert && !p.layer.empty())) return number(p.layer);
      return guess_.stack_units && !p.stack.empty() ? number(cat("stack ", p.stack)) : kNoUnit;
    }
    // The groups are units of v1; the stack around them is not, and neither is the stack of an MTP depth.
    const bool in_unit_stack = !p.stack.empty() && (p.in_group || !parameters_.has_groups);
    if (guess_.stack_units && in_unit_stack) return number(p.stack);
    return unit ? number(p.layer) : kNoUnit;
  }

  // Parameters of one rank that are dense, or experts: packed and compared. `ep`: of experts.
  void look_at(const std::vector<i64>& members, i64 ep) {
    if (members.empty() || stopped_) return;
    std::vector<Parameter> list;
    for (i64 p : members) {
      const StoredParameter& at = parameters_.all[p];
      const DType type = guess_.fp8 && at.linear ? DType::kF8E4M3 : DType::kBF16;
      list.push_back({local_shape(p), type, at.expert, at.trainable, false, unit_of(at)});
    }
    const Strategy strategy = guess_.shards ? Strategy::kOptimGradsParams : Strategy::kNoShard;
    const i64 ranks = ep >= 0 ? guess_.grid.edp() : guess_.grid.dp;
    for (const Bucket& bucket :
         buckets_of(list, {strategy, UnitScope::kFullShardOnly, guess_.bucket_items, guess_.engine})) {
      std::vector<Shape> shapes;
      for (i64 m : bucket.members) shapes.push_back(list[m].shape);
      // v2 takes MXFP8 alone, and never parts its blocks.
      const bool blocks = list[bucket.members[0]].dtype == DType::kF8E4M3 && guess_.engine == Engine::kV2;
      const FlatBuffer buffer = pack(shapes, {guess_.engine, strategy, ranks, guess_.grid.hsdp,
                                              guess_.grid.outer, blocks ? kItemsPerMxfp8Scale : 1});
      chunks_.insert(buffer.chunk_items);
      for (i64 m = 0; m < std::ssize(bucket.members) && !stopped_; m++)
        compare(members[bucket.members[m]], buffer, m, ep);
    }
  }

  void compare(i64 p, const FlatBuffer& buffer, i64 member, i64 ep) {
    const StoredParameter& at = parameters_.all[p];
    if (guess_.shards && unaligned_cut(buffer, member)) return disagree(p, std::nullopt);
    i64 row = 0;
    for (const StoredPart& part : at.parts) {
      const i64 rows = at.cut == 0 ? part.rows / part_ranks(at) : part.rows;
      i64 items = 0;
      for (i64 i = 0; i < store_.chunk_count(part.tensor); i++) {
        const Chunk c = store_.chunk(part.tensor, i);
        if (c.replica) continue;
        items += Shape(c.sizes).items();
        if (at.expert_number >= 0 && ep != expert_rank(guess_.grid, c.rank))
          return disagree(p,
                          BoxDisagreement{part.tensor, c.rank, {}, {}, vector(c.offsets), vector(c.sizes)});
        BoxDisagreement d = expected_box(p, part, row, rows, buffer, member, c);
        if (!std::ranges::equal(d.expected_sizes, c.sizes) ||
            !std::ranges::equal(d.expected_offsets, c.offsets))
          return disagree(p, std::move(d));
      }
      if (items < store_.shape(part.tensor).items())
        return disagree_lost(p, part, row, rows, buffer, member, ep);
      row += rows;
    }
  }

  static std::vector<i64> vector(std::span<const i64> numbers) { return {numbers.begin(), numbers.end()}; }

  // The box that the guess gives to the chunk's writer. pre: no shard cuts a row.
  BoxDisagreement expected_box(i64 p, const StoredPart& part, i64 first_row, i64 rows,
                               const FlatBuffer& buffer, i64 member, const Chunk& c) const {
    const StoredParameter& at = parameters_.all[p];
    const Grid& g = guess_.grid;
    const Place place = place_of_writer(g, c.rank, at.expert);
    Rows held{0, rows};
    if (guess_.shards) {
      const i64 ranks = at.expert ? g.edp() : g.dp, row_items = buffer.parameters[member].row_items;
      held = rows_on_shard(buffer, member, place_of(place.among, ranks, g.hsdp, g.outer).shard,
                           {first_row * row_items, (first_row + rows) * row_items});
    }
    BoxDisagreement d{part.tensor, c.rank, {}, {}, vector(c.offsets), vector(c.sizes)};
    d.expected_sizes = at.dims;
    d.expected_offsets.assign(at.dims.size(), 0);
    if (at.dims.empty()) {
      if (held.count == 0) d.expected_sizes = {0};
      return d;
    }
    const int cut = at.cut;
    d.expected_sizes[0] = held.count;
    d.expected_offsets[0] = held.begin + (cut == 0 ? place.part * rows : 0);
    if (cut > 0) {
      d.expected_sizes[cut] /= part_ranks(at);
      d.expected_offsets[cut] = place.part * d.expected_sizes[cut];
    }
    return d;
  }

  // All boxes that are there agree, and some are not there: names the first rank that should have one.
  void disagree_lost(i64 p, const StoredPart& part, i64 row, i64 rows, const FlatBuffer& buffer, i64 member,
                     i64 ep) {
    if (first_ && *first_ < p) return disagree(p, std::nullopt);  // an earlier parameter is reported
    for (i64 rank = 0; rank < guess_.grid.world(); rank++) {
      if (ep >= 0 && expert_rank(guess_.grid, rank) != ep) continue;
      Chunk of_rank;
      of_rank.rank = static_cast<i32>(rank);
      BoxDisagreement d = expected_box(p, part, row, rows, buffer, member, of_rank);
      bool held = Shape(d.expected_sizes).items() == 0;
      for (i64 i = 0; i < store_.chunk_count(part.tensor) && !held; i++)
        held = std::ranges::equal(store_.chunk(part.tensor, i).offsets, d.expected_offsets);
      if (!held) return disagree(p, std::move(d));
    }
    disagree(p, std::nullopt);
  }

  void look_at_second_names() {
    for (i64 p = 0; p < out_.parameters; p++)
      if (is_second_name(p) && !agrees_[parameters_.all[p].alike]) agrees_[p] = false;
  }

  void disagree(i64 p, std::optional<BoxDisagreement> how) {
    agrees_[p] = false;
    stopped_ = !whole_;
    if (!first_ || p < *first_) first_ = p, out_.first = std::move(how);
  }

  void conclude() {
    out_.agreeing = out_.possible ? std::ranges::count(agrees_, true) : 0;
    out_.chunk_items.assign(chunks_.begin(), chunks_.end());
  }

  const Store& store_;
  const StoredParameters& parameters_;
  const PackingGuess& guess_;
  const bool whole_;
  bool stopped_ = false;
  GuessResult out_;
  std::vector<bool> agrees_;
  std::map<std::string, i64> units_;
  std::set<i64> chunks_;
  std::optional<i64> first_;
};

}  // namespace

i64 tensor_ranks(const Store& store, const StoredParameters& parameters, bool experts) {
  for (const StoredParameter& p : parameters.all) {
    if (p.expert != experts) continue;
    const i64 tensor = p.parts[0].tensor;
    const int d = cut_column(store, tensor);
    if (d < 0) continue;
    for (i64 i = 0; i < store.chunk_count(tensor); i++)
      if (const i64 size = store.chunk(tensor, i).sizes[d]; size > 0 && store.dims(tensor)[d] % size == 0)
        return store.dims(tensor)[d] / size;
  }
  return 1;
}

void find_cuts(const Store& store, StoredParameters& parameters, i64 tp, i64 etp) {
  for (StoredParameter& p : parameters.all) p.cut = cut_of(store, p, p.expert ? etp : tp);
}

bool experts_fit(const Store& store, const StoredParameters& parameters, const Grid& grid) {
  if (parameters.experts % grid.ep != 0) return false;
  const i64 each = parameters.experts / grid.ep;
  for (const StoredParameter& p : parameters.all) {
    if (!p.expert || p.expert_number < 0) continue;
    for (const StoredPart& part : p.parts)
      for (i64 i = 0; i < store.chunk_count(part.tensor); i++)
        if (expert_rank(grid, store.chunk(part.tensor, i).rank) != p.expert_number / each) return false;
  }
  return true;
}

GuessResult try_guess(const Store& store, const StoredParameters& parameters, const PackingGuess& guess,
                      bool whole) {
  return Trial(store, parameters, guess, whole).run();
}

}  // namespace mckpt::impl
