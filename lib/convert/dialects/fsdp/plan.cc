// The plan is made in four steps:
//
//   1  cells      ranks that differ only in their data-parallel places hold the same keys: the keys are listed
//                 once for each (tp, etp, ep), and a rank's boxes are computed from its cell's list
//   2  collect    every rank lists its boxes in the order of a real run: parameters, then states of the optimizer
//   3  writers    each box is given to one of its holders, as torch.distributed.checkpoint does
//   4  layout     keys in the order of planner_data, chunks rank by rank
//
// A grid of 1,024 ranks with tp 8, etp 1 and ep 16 has 128 cells, so that the expensive part is done 128
// times.
#include "convert/dialects/fsdp/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "convert/dialects/fsdp/run.h"
#include "convert/keys/key_table.h"
#include "core/base/error.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/parameter_marks.h"

namespace mckpt::impl {
namespace {

// The keys and parameters that one cell of a run holds, made once for all ranks that differ only in their
// data-parallel places. The grid outlives the object; all functions are const.
class CellKeys {
 public:
  CellKeys(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust, const Cell& cell)
      : grid_(run.grid), parameters_(keys.map().parameters(run.grid, cell, run.run)) {
    adjust(parameters_);
    layout_.emplace(parameters_, keys.map().model(), run.grid, run.fsdp);
    for (FsdpLayout::StoredKey& stored : layout_->keys(cell.ep)) add(keys, run, std::move(stored));
  }

  struct Key {
    FsdpLayout::StoredKey stored;
    i32 key;  // of the table
    DType dtype;
  };
  const std::vector<Key>& keys() const { return keys_; }
  const ModelParameter& parameter(const Key& k) const { return parameters_[k.stored.parameter]; }
  FsdpTensor share(i32 key, const Cell& cell) const { return layout_->share(keys_[key].stored, cell); }

  // The keys of which the rank may hold anything, in the cell's order.
  std::vector<i32> on_rank(const Cell& cell) const {
    std::vector<i32> out;
    i64 dense = dense_place(grid_, cell).shard, expert = expert_place(grid_, cell).shard;
    for (std::size_t k = 0; k < shards_.size(); k++)
      if (shards_[k].holds(shards_[k].expert ? expert : dense)) out.push_back(static_cast<i32>(k));
    return out;
  }

 private:
  void add(const KeyTable& table, const FsdpRun& run, FsdpLayout::StoredKey stored) {
    const ModelParameter& p = parameters_[stored.parameter];
    std::string name = layout_->name(stored);
    const i32 key = table.at(*model_key(name));
    std::optional<ItemRange> shards = layout_->shards_of(stored);
    shards_.push_back({p.expert(), shards.value_or(ItemRange{0, std::numeric_limits<i64>::max()})});
    keys_.push_back({std::move(stored), key, run.of(p, name)});
  }

  // The shards of a key's flat buffer that contain anything of the key.
  struct Shards {
    bool expert;
    ItemRange range;
    bool holds(i64 shard) const { return shard >= range.begin && shard < range.end; }
  };

  const Grid& grid_;
  std::vector<ModelParameter> parameters_;
  std::optional<FsdpLayout> layout_;
  std::vector<Key> keys_;
  std::vector<Shards> shards_;  // by key
};

// The cells of a grid, each made by one of run.threads threads.
class Cells {
 public:
  Cells(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust) {
    std::vector<std::pair<Cell, std::unique_ptr<CellKeys>*>> first;  // a rank of each cell
    for (i64 rank = 0; rank < run.grid.world(); rank++) {
      Cell cell = cell_of(run.grid, rank);
      auto [at, fresh] = cells_.try_emplace({cell.tp, cell.etp, cell.ep});
      if (fresh) first.emplace_back(cell, &at->second);
    }
    parallel_for(std::ssize(first), run.threads, [&](int, i64 i) {
      auto& [cell, made] = first[i];
      *made = std::make_unique<CellKeys>(keys, run, adjust, cell);
    });
  }
  const CellKeys& of(const Cell& cell) const { return *cells_.at({cell.tp, cell.etp, cell.ep}); }

 private:
  std::map<std::tuple<i64, i64, i64>, std::unique_ptr<CellKeys>> cells_;
};

// A tensor with a name of its own. Items are numbered: first the keys of the table, then all companions, key
// by key.
struct Item {
  i32 key;
  const Companion* companion = nullptr;
};

std::vector<Item> items_of(const KeyTable& keys, const Companions& companions,
                           std::vector<i32>& first_companion) {
  std::vector<Item> items;
  for (i32 k = 0; k < keys.size(); k++) items.push_back({k});
  for (std::size_t k = 0; k < companions.size(); k++) {
    first_companion.push_back(static_cast<i32>(items.size()));
    for (const Companion& c : companions[k]) items.push_back({static_cast<i32>(k), &c});
  }
  return items;
}

// Every box of every item, in the order in which the ranks' lists first contain it, and the boxes of each
// rank.
struct Boxes {
  struct Box {
    i32 item;  // a shared object's number, if `object`
    i64 at;    // in numbers: offsets, then sizes
    i64 tensor_bytes;
    i32 writer = -1;
    bool object = false;
  };
  std::vector<Box> boxes;
  std::vector<i64> numbers;
  std::vector<std::vector<i32>> lists;  // by rank: its boxes in order
  std::vector<DType> dtype;             // by item
  std::vector<bool> sharded;            // by item
  std::vector<i32> names;               // items in the order of planner_data
};

// Collects the boxes rank by rank. Two boxes of one item are the same if they begin at the same item: boxes
// of one tensor never overlap otherwise.
class BoxCollector {
 public:
  BoxCollector(const KeyTable& keys, const Companions& companions)
      : companions_(companions), items_(items_of(keys, companions, first_companion_)) {
    out_.dtype.resize(items_.size());
    out_.sharded.resize(items_.size());
  }

  // `sharded`: the tensor is one of a flat buffer.
  void add(i32 item, const FsdpTensor& t, DType dtype, bool sharded) {
    out_.dtype[item] = dtype;
    out_.sharded[item] = sharded;
    i64 first = t.offsets.empty() ? 0 : item_of(t);
    auto [at, fresh] = known_.try_emplace({item, first}, static_cast<i32>(out_.boxes.size()));
    if (fresh) {
      out_.boxes.push_back({item, std::ssize(out_.numbers), dtype_bytes(dtype, t.global.items())});
      out_.numbers.insert(out_.numbers.end(), t.offsets.begin(), t.offsets.end());
      out_.numbers.insert(out_.numbers.end(), t.sizes.begin(), t.sizes.end());
    }
    out_.lists.back().push_back(at->second);
  }
  // A null tensor: the rank holds nothing of the key but its values.
  void add_companions(i32 key, const FsdpTensor* t) {
    for_companions(key, [&](i32 item) {
      const Companion& c = *items_[item].companion;
      if (c.value)
        add(item, FsdpTensor{}, c.dtype, false);
      else if (t)
        add(item, *t, c.dtype, true);
    });
  }
  // A shared object counts as one byte of the load.
  void add_object(i32 object) {
    if (object >= std::ssize(object_box_)) {
      object_box_.push_back(static_cast<i32>(out_.boxes.size()));
      out_.boxes.push_back({object, 0, 1, -1, true});
    }
    out_.lists.back().push_back(object_box_[object]);
  }
  void next_rank() { out_.lists.emplace_back(); }
  void add_name(i32 key) { out_.names.push_back(key); }
  void add_companion_names(i32 key) {
    for_companions(key, [&](i32 item) { out_.names.push_back(item); });
  }
  Boxes take() { return std::move(out_); }
  const std::vector<Item>& items() const { return items_; }
  bool has_companions() const { return !companions_.empty(); }

 private:
  template <typename Fn>
  void for_companions(i32 key, Fn&& fn) {
    if (companions_.empty()) return;
    std::size_t k = static_cast<std::size_t>(key);
    for (std::size_t c = 0; c < companions_[k].size(); c++) fn(first_companion_[k] + static_cast<i32>(c));
  }
  // The offsets of a box as one number: the number of the box's first item in the whole tensor.
  static i64 item_of(const FsdpTensor& t) {
    i64 item = 0;
    for (int d = 0; d < t.global.rank(); d++) item = item * t.global[d] + t.offsets[d];
    return item;
  }
  struct Hash {
    std::size_t operator()(const std::pair<i32, i64>& k) const {
      return std::hash<i64>()(k.second * 1000003 + k.first);
    }
  };

  const Companions& companions_;
  std::vector<i32> first_companion_;  // item, by key
  std::vector<Item> items_;
  Boxes out_;
  std::unordered_map<std::pair<i32, i64>, i32, Hash> known_;  // item and first number
  std::vector<i32> object_box_;
};

// Chooses the writer of each box as the planner of torch.distributed.checkpoint does: box after box goes to
// the holder with the smallest load so far, the lowest rank among equals. A box adds the bytes of its whole
// tensor to the load of its writer, not its own bytes.
void choose_writers(Boxes& b) {
  std::vector<i64> begin(b.boxes.size() + 1);
  for (const std::vector<i32>& list : b.lists)
    for (i32 box : list) begin[box + 1]++;
  for (std::size_t i = 1; i < begin.size(); i++) begin[i] += begin[i - 1];
  std::vector<i64> next(begin.begin(), begin.end());
  std::vector<i32> holders(static_cast<std::size_t>(begin.back()));
  for (std::size_t rank = 0; rank < b.lists.size(); rank++)
    for (i32 box : b.lists[rank]) holders[next[box]++] = static_cast<i32>(rank);
  std::vector<i64> load(b.lists.size());
  for (std::size_t i = 0; i < b.boxes.size(); i++) {
    auto first = holders.begin() + begin[i], last = holders.begin() + begin[i + 1];
    i32 writer = *std::min_element(first, last, [&](i32 x, i32 y) { return load[x] < load[y]; });
    b.boxes[i].writer = writer;
    load[writer] += b.boxes[i].tensor_bytes;
  }
}

// Sorts keys of a cell into the order in which an optimizer lists them. An optimizer has two groups of
// parameters, the group without weight decay last, each in the order of the model; the parts of a fused
// parameter keep their order.
void order_for_optimizer(const CellKeys& cell, std::vector<i32>& keys) {
  std::ranges::stable_sort(keys, {}, [&](i32 k) {
    const CellKeys::Key& key = cell.keys()[k];
    const ModelParameter& p = cell.parameter(key);
    return std::pair(!decays(p), key.stored.parameter);
  });
}

// Adds the names in the order of planner_data: first the names of the last rank, in the order of its model,
// even if the rank holds no items of a parameter; then the names that the rank before it adds, and so on.
// Ranks of one cell have the same names.
void add_names(const Grid& grid, const Cells& cells, BoxCollector& collector) {
  std::set<std::tuple<i64, i64, i64>> seen;
  for (i64 rank = grid.world(); rank-- > 0;) {
    Cell cell = cell_of(grid, rank);
    if (!seen.emplace(cell.tp, cell.etp, cell.ep).second) continue;
    const CellKeys& held = cells.of(cell);
    std::vector<i32> order;
    for (const CellKeys::Key& k : held.keys()) {
      order.push_back(static_cast<i32>(order.size()));
      collector.add_name(k.key);
    }
    if (!collector.has_companions()) continue;
    order_for_optimizer(held, order);
    for (i32 k : order) collector.add_companion_names(held.keys()[k].key);
  }
}

// Lists the boxes that one rank holds: its parameters, then their companions in the order of the optimizer.
// `values`: the keys whose values the rank has are all of its cell.
void collect_rank(const CellKeys& held, const Cell& cell, bool values, BoxCollector& collector) {
  collector.next_rank();
  std::vector<i32> keys;
  std::vector<bool> holds(held.keys().size());
  for (i32 k : held.on_rank(cell)) {
    FsdpTensor t = held.share(k, cell);
    if (t.empty()) continue;
    const CellKeys::Key& key = held.keys()[k];
    collector.add(key.key, t, key.dtype, !held.parameter(key).buffer());
    keys.push_back(k);
    holds[k] = true;
  }
  if (!collector.has_companions()) return;
  if (values) {
    keys.resize(holds.size());
    std::iota(keys.begin(), keys.end(), 0);
  }
  order_for_optimizer(held, keys);
  for (i32 k : keys) {
    FsdpTensor t;
    if (holds[k]) t = held.share(k, cell);
    collector.add_companions(held.keys()[k].key, holds[k] ? &t : nullptr);
  }
}

void collect(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust, i64 objects,
             BoxCollector& collector) {
  refuse_pipeline(run.grid);
  Cells cells(keys, run, adjust);
  for (i64 rank = 0; rank < run.grid.world(); rank++) {
    Cell cell = cell_of(run.grid, rank);
    collect_rank(cells.of(cell), cell, run.fsdp.saves_state_dict(), collector);
    for (i32 o = 0; o < static_cast<i32>(objects); o++) collector.add_object(o);
  }
  add_names(run.grid, cells, collector);
}

// The key of an item in the layout.
DcpLayoutKey layout_key_of(const Item& item, const KeyTable& keys, SavedKeys names, DType dtype,
                           bool sharded) {
  const CheckpointKey& key = keys[item.key];
  bool state_dict = names == SavedKeys::kStateDict, value = item.companion && item.companion->value;
  DcpName name = item.companion ? item.companion->name
                                : DcpName{cat(state_dict ? "model." : kModelFront, key.name), {kModelDot}};
  return {std::move(name), dtype, value ? Shape() : key.shape, state_dict && sharded};
}

}  // namespace

FsdpPlan::FsdpPlan(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust,
                   const Companions& companions, const SharedObjects& objects)
    : layout(run.grid.world()) {
  BoxCollector collector(keys, companions);
  collect(keys, run, adjust, objects.count, collector);
  if (run.fsdp.saves_state_dict()) layout.put_objects_last();
  const std::vector<Item>& items = collector.items();
  Boxes b = collector.take();
  choose_writers(b);
  std::vector<i32> layout_key(items.size(), -1);
  for (i32 i : b.names) {
    i32& mine = layout_key[i];
    if (mine >= 0) continue;
    mine = layout.add_key(layout_key_of(items[i], keys, run.fsdp.keys, b.dtype[i], b.sharded[i]));
    table_key.push_back(items[i].key);
  }
  for (const Boxes::Box& box : b.boxes)
    if (box.object) objects.put(box.item, box.writer, layout);
  for (i32 rank = 0; rank < static_cast<i32>(b.lists.size()); rank++) {
    for (i32 index : b.lists[rank]) {
      const Boxes::Box& box = b.boxes[index];
      if (box.writer != rank || box.object) continue;
      i32 key = layout_key[box.item];
      std::size_t dims = static_cast<std::size_t>(layout.key(key).shape.rank());
      std::span<const i64> numbers = std::span(b.numbers).subspan(static_cast<std::size_t>(box.at), 2 * dims);
      layout.add_chunk(key, box.writer, numbers.first(dims), numbers.subspan(dims));
    }
  }
}

}  // namespace mckpt::impl
