#include "convert/fsdp_plan.h"

#include <algorithm>
#include <set>

namespace mckpt {
namespace {

// What the cells of a run hold, made once for all ranks that differ in their data-parallel places only.
class Cells {
 public:
  Cells(const ModelMap& map, const FsdpRun& run, const Adjust& adjust)
      : map_(map), run_(run), adjust_(adjust) {}

  struct Held {
    std::vector<ModelParameter> parameters;
    std::unique_ptr<FsdpLayout> layout;
  };
  const Held& of(const Cell& cell) {
    std::unique_ptr<Held>& held = cells_[{cell.tp, cell.etp, cell.ep}];
    if (!held) {
      held = std::make_unique<Held>();
      held->parameters = map_.parameters(run_.grid, cell, run_.run);
      adjust_(held->parameters);
      held->layout = std::make_unique<FsdpLayout>(held->parameters, map_.model(), run_.grid, run_.fsdp);
    }
    return *held;
  }

 private:
  const ModelMap& map_;
  const FsdpRun& run_;
  const Adjust& adjust_;
  std::map<std::tuple<i64, i64, i64>, std::unique_ptr<Held>> cells_;
};

DType stored_type(const FsdpRun& run, const ModelParameter& p, std::string_view key) {
  if (run.dtype_rule)
    if (std::optional<DType> type = run.dtype_rule(key)) return *type;
  return run.main_dtype && p.trainable && !p.buffer() ? *run.main_dtype : p.dtype;
}

// What has a name of its own: the keys of the table, then all companions.
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

// Every box of every item, in the order in which the ranks' lists first have it, and who holds it.
struct Boxes {
  struct Box {
    i32 item;
    i64 at;  // in numbers: offsets, then sizes
    i64 tensor_bytes;
    i32 writer = -1;
  };
  std::vector<Box> boxes;
  std::vector<i64> numbers;
  std::vector<std::vector<i32>> lists;  // by rank: its boxes in order
  std::vector<DType> dtype;             // by item
  std::vector<i32> names;               // items in the order of planner_data
};

class BoxCollector {
 public:
  BoxCollector(const KeyTable& keys, const Companions& companions)
      : keys_(keys), companions_(companions), items_(items_of(keys, companions, first_companion_)) {
    out_.dtype.resize(items_.size());
  }

  void add(const FsdpTensor& t, DType dtype) { add(find(t.key), t, dtype); }
  void add_companions(const FsdpTensor& t) {
    for_companions(t,
                   [&](i32 item) { add(item, t, items_[static_cast<std::size_t>(item)].companion->dtype); });
  }
  void next_rank() { out_.lists.emplace_back(); }
  void add_name(const std::string& key) { out_.names.push_back(find(key)); }
  void add_companion_names(const FsdpTensor& t) {
    for_companions(t, [&](i32 item) { out_.names.push_back(item); });
  }
  Boxes take() { return std::move(out_); }
  const std::vector<Item>& items() const { return items_; }

 private:
  template <typename Fn>
  void for_companions(const FsdpTensor& t, Fn&& fn) {
    if (companions_.empty()) return;
    std::size_t key = static_cast<std::size_t>(find(t.key));
    for (std::size_t c = 0; c < companions_[key].size(); c++) fn(first_companion_[key] + static_cast<i32>(c));
  }
  void add(i32 item, const FsdpTensor& t, DType dtype) {
    out_.dtype[static_cast<std::size_t>(item)] = dtype;
    i64 first = t.offsets.empty() ? 0 : item_of(t);
    auto [at, fresh] = known_.try_emplace({item, first}, static_cast<i32>(out_.boxes.size()));
    if (fresh) {
      out_.boxes.push_back({item, std::ssize(out_.numbers), dtype_bytes(dtype, t.global.items())});
      out_.numbers.insert(out_.numbers.end(), t.offsets.begin(), t.offsets.end());
      out_.numbers.insert(out_.numbers.end(), t.sizes.begin(), t.sizes.end());
    }
    out_.lists.back().push_back(at->second);
  }
  i32 find(const std::string& name) const {
    i32 key = keys_.find(*model_key(name));
    if (key < 0) throw Error(Code::kInternal, "a rank holds a key that the table has not").tensor(name);
    return key;
  }
  // The offset of a box as the number of its first item.
  static i64 item_of(const FsdpTensor& t) {
    i64 item = 0;
    for (int d = 0; d < t.global.rank(); d++)
      item = item * t.global[d] + t.offsets[static_cast<std::size_t>(d)];
    return item;
  }
  struct Hash {
    std::size_t operator()(const std::pair<i32, i64>& k) const {
      return std::hash<i64>()(k.second * 1000003 + k.first);
    }
  };

  const KeyTable& keys_;
  const Companions& companions_;
  std::vector<i32> first_companion_;  // item, by key
  std::vector<Item> items_;
  Boxes out_;
  std::unordered_map<std::pair<i32, i64>, i32, Hash> known_;  // item and first number
};

// As the planner of torch.distributed.checkpoint does: box after box goes to the holder with the least load
// so far, the lowest rank among equals; a box weighs as much as its whole tensor.
void choose_writers(Boxes& b) {
  std::vector<i64> begin(b.boxes.size() + 1);
  for (const std::vector<i32>& list : b.lists)
    for (i32 box : list) begin[static_cast<std::size_t>(box) + 1]++;
  for (std::size_t i = 1; i < begin.size(); i++) begin[i] += begin[i - 1];
  std::vector<i64> next(begin.begin(), begin.end());
  std::vector<i32> holders(static_cast<std::size_t>(begin.back()));
  for (std::size_t rank = 0; rank < b.lists.size(); rank++)
    for (i32 box : b.lists[rank])
      holders[static_cast<std::size_t>(next[static_cast<std::size_t>(box)]++)] = static_cast<i32>(rank);
  std::vector<i64> load(b.lists.size());
  for (std::size_t i = 0; i < b.boxes.size(); i++) {
    auto first = holders.begin() + begin[i], last = holders.begin() + begin[i + 1];
    i32 writer = *std::min_element(first, last, [&](i32 x, i32 y) {
      return load[static_cast<std::size_t>(x)] < load[static_cast<std::size_t>(y)];
    });
    b.boxes[i].writer = writer;
    load[static_cast<std::size_t>(writer)] += b.boxes[i].tensor_bytes;
  }
}

// An optimizer has two groups of parameters, the one without weight decay last, each in the order of the
// model; the parts of a fused parameter stay where it was.
std::vector<FsdpTensor> in_optimizer_order(const std::vector<ModelParameter>& parameters,
                                           std::vector<FsdpTensor> tensors) {
  std::ranges::stable_sort(tensors, {}, [&](const FsdpTensor& t) {
    const ModelParameter& p = parameters[static_cast<std::size_t>(t.parameter)];
    bool decays = p.shape().rank() > 1 && !p.name.ends_with(".bias");
    return std::pair(!decays, t.parameter);
  });
  return tensors;
}

// planner_data has the names of the last rank first, in the order of its model, then what is new in the rank
// before, and so on; held or not. Ranks of one cell have the same names.
void add_names(const Grid& grid, Cells& cells, BoxCollector& collector) {
  std::set<std::tuple<i64, i64, i64>> seen;
  for (i64 rank = grid.world(); rank-- > 0;) {
    Cell cell = cell_of(grid, rank);
    if (!seen.emplace(cell.tp, cell.etp, cell.ep).second) continue;
    const Cells::Held& held = cells.of(cell);
    std::vector<FsdpTensor> tensors = held.layout->tensors(cell);
    for (const FsdpTensor& t : tensors) collector.add_name(t.key);
    for (const FsdpTensor& t : in_optimizer_order(held.parameters, std::move(tensors)))
      collector.add_companion_names(t);
  }
}

void collect(const ModelMap& map, const FsdpRun& run, const Adjust& adjust, BoxCollector& collector) {
  refuse_pipeline(run.grid);
  Cells cells(map, run, adjust);
  for (i64 rank = 0; rank < run.grid.world(); rank++) {
    Cell cell = cell_of(run.grid, rank);
    const Cells::Held& held = cells.of(cell);
    collector.next_rank();
    std::vector<FsdpTensor> tensors = held.layout->tensors(cell);
    std::erase_if(tensors, [](const FsdpTensor& t) { return t.empty(); });
    for (const FsdpTensor& t : tensors)
      collector.add(t, stored_type(run, held.parameters[static_cast<std::size_t>(t.parameter)], t.key));
    for (const FsdpTensor& t : in_optimizer_order(held.parameters, std::move(tensors)))
      collector.add_companions(t);
  }
  add_names(run.grid, cells, collector);
}

}  // namespace

FsdpPlan::FsdpPlan(const KeyTable& keys, const FsdpRun& run, const Adjust& adjust,
                   const Companions& companions)
    : layout(run.grid.world()) {
  BoxCollector collector(keys, companions);
  collect(keys.map(), run, adjust, collector);
  const std::vector<Item>& items = collector.items();
  Boxes b = collector.take();
  choose_writers(b);
  std::vector<i32> layout_key(items.size(), -1);
  for (i32 i : b.names) {
    i32& mine = layout_key[static_cast<std::size_t>(i)];
    if (mine >= 0) continue;
    const Item& item = items[static_cast<std::size_t>(i)];
    const CheckpointKey& key = keys[item.key];
    DcpName name =
        item.companion ? item.companion->name : DcpName{cat("model.module.", key.name), {kModelDot}};
    mine = layout.add_key({std::move(name), b.dtype[static_cast<std::size_t>(i)], key.shape});
    table_key.push_back(item.key);
  }
  for (std::size_t rank = 0; rank < b.lists.size(); rank++)
    for (i32 index : b.lists[rank]) {
      const Boxes::Box& box = b.boxes[static_cast<std::size_t>(index)];
      if (box.writer != static_cast<i32>(rank)) continue;
      i32 key = layout_key[static_cast<std::size_t>(box.item)];
      std::size_t dims = static_cast<std::size_t>(layout.key(key).shape.rank());
      std::span<const i64> numbers = std::span(b.numbers).subspan(static_cast<std::size_t>(box.at), 2 * dims);
      layout.add_chunk(key, box.writer, numbers.first(dims), numbers.subspan(dims));
    }
}

}  // namespace mckpt
