// Makes rows of tensors and blocks of layers: equal rows are one, and layers with tensors of the same names
// are one block.
//
//   tensors --by layer--> groups --alike but for a number--> rows of boxes --equal rows once--> blocks
//
// If there are too many boxes, twice as many ranks share a column, and all is made anew.
#include "page/data/shard_map.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "core/base/text.h"
#include "io/store/cover.h"
#include "io/store/state_part.h"
#include "io/store/store.h"
#include "page/data/map_boxes.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostFaultsOfTensor = 4, kMostFaultsOfRow = 16;
constexpr i64 kFewestColumns = 16;

// Tensors of one layer, or of no layer, with their places.
struct Group {
  std::string section;
  i64 layer = -1;
  std::string title{};         // in no layer
  std::vector<i64> tensors{};  // positions in the list of places
};

struct Placed {
  i64 tensor = 0;
  TensorPlace place;
};

// Which numbers a list of experts has in any layer: layers that lack one of them have lost it.
using MemberNumbers =
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, std::vector<i64>>;

MemberNumbers member_numbers(const std::vector<Placed>& all) {
  MemberNumbers numbers;
  for (const Placed& p : all)
    if (p.place.member >= 0)
      numbers[{p.place.section, p.place.before, p.place.after}].push_back(p.place.member);
  for (auto& [key, list] : numbers) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return numbers;
}

void add_numbers(std::string& key, const std::vector<i64>& numbers) {
  key += ';';
  for (i64 n : numbers) key += cat(n, ',');
}

// The tensors of a row as text: equal in layers that can be one block.
std::string kind_key(const ShardRow& row) {
  std::string key = cat(row.before, '\n', row.after, '\n', row.stack, static_cast<int>(row.dtype));
  add_numbers(key, row.members), add_numbers(key, row.dims);
  return key;
}

// A row as text, equal for equal rows.
std::string key_of(const ShardRow& row) {
  std::string key = kind_key(row);
  auto add = [&](const std::vector<i64>& numbers) { add_numbers(key, numbers); };
  for (const ShardBox& b : row.boxes) {
    key += cat('|', b.column, ',', b.member, ',', b.count, b.replica, b.lost);
    add(b.offsets), add(b.sizes);
  }
  for (const ShardFault& f : row.faults) {
    key += cat('!', static_cast<int>(f.kind), f.member, ',', f.first, ',', f.second);
    add(f.offsets), add(f.sizes);
  }
  return key;
}

class MapMaker {
 public:
  MapMaker(const Store& store, const std::vector<Placed>& placed, const MemberNumbers& numbers,
           ShardColumns columns, const ShardMapLimits& limits)
      : store_(store), placed_(placed), numbers_(numbers), columns_(std::move(columns)), limits_(limits) {}

  ShardMap make(const std::vector<Group>& groups) {
    map_.by_rank = columns_.by_rank, map_.holders = columns_.holders, map_.per_column = columns_.per_column;
    map_.columns = columns_.titles(store_);
    for (const Group& g : groups) add(g);
    return std::move(map_);
  }

 private:
  void add(const Group& group) {
    std::vector<i64> numbers;
    std::vector<std::string> kinds;
    bool faulty = false;
    for (const std::vector<i64>& alike : rows_of(group)) {
      ShardRow row = make_row(group, alike);
      faulty |= !row.faults.empty();
      kinds.push_back(kind_key(row));
      for (const ShardFault& f : row.faults)
        map_.faulty_tensors += &f == &row.faults[0] || f.member != (&f - 1)->member;
      map_.tensors += std::ssize(alike), map_.bytes += row.bytes;
      numbers.push_back(number_of(std::move(row)));
    }
    if (std::ranges::all_of(numbers, [](i64 n) { return n < 0; })) return;
    // A tensor in no layer is a block of its own, whatever it is named.
    std::string structure = cat(group.section, '\0', group.layer < 0 ? std::ssize(map_.blocks) : -1);
    for (const std::string& kind : kinds) structure += kind;
    auto [known, fresh] = blocks_.try_emplace(std::move(structure), std::ssize(map_.blocks));
    if (fresh)
      map_.blocks.push_back({.section = group.section,
                             .kinds = std::vector<std::vector<ShardVariant>>(kinds.size()),
                             .title = group.title});
    ShardBlock& block = map_.blocks[known->second];
    block.faulty |= faulty;
    if (group.layer >= 0) block.layers.push_back(group.layer);
    for (std::size_t k = 0; k < kinds.size(); k++)
      if (numbers[k] >= 0) add_variant(block.kinds[k], numbers[k], group.layer);
  }

  static void add_variant(std::vector<ShardVariant>& variants, i64 row, i64 layer) {
    auto known = std::ranges::find(variants, row, &ShardVariant::row);
    if (known == variants.end()) known = variants.insert(known, {.row = row});
    if (layer >= 0) known->layers.push_back(layer);
  }

  // Lists of tensors that are one row each, in the order of the group: those that differ in the number of a
  // member alone, and all others by themselves.
  std::vector<std::vector<i64>> rows_of(const Group& group) const {
    std::map<std::tuple<std::string_view, std::string_view, int, std::vector<i64>>, std::size_t> rows;
    std::vector<std::vector<i64>> out;
    for (i64 i : group.tensors) {
      const Placed& p = placed_[i];
      if (p.place.member < 0) {
        out.push_back({i});
        continue;
      }
      std::span<const i64> dims = store_.dims(p.tensor);
      auto [row, fresh] =
          rows.try_emplace({p.place.before, p.place.after, static_cast<int>(store_.dtype(p.tensor)),
                            std::vector<i64>(dims.begin(), dims.end())},
                           out.size());
      if (fresh) out.emplace_back();
      out[row->second].push_back(i);
    }
    return out;
  }

  ShardRow make_row(const Group& group, const std::vector<i64>& alike) {
    const Placed& first = placed_[alike[0]];
    ShardRow row{.before = first.place.before, .after = first.place.after, .stack = alike.size() > 1};
    row.dtype = store_.dtype(first.tensor);
    std::span<const i64> dims = store_.dims(first.tensor);
    row.dims.assign(dims.begin(), dims.end());
    row.part = module_part(store_.name(first.tensor));
    for (i64 position = 0; position < std::ssize(alike); position++) {
      const Placed& p = placed_[alike[position]];
      if (p.place.member >= 0) row.members.push_back(p.place.member);
      row.bytes += columns_.add_boxes(store_, p.tensor, position, row.boxes, map_.columns);
      add_faults(row, p.tensor, position);
    }
    if (row.stack) add_absent(row, numbers_.at({group.section, first.place.before, first.place.after}));
    merge_boxes(row.boxes, columns_.per_column > 1);
    return row;
  }

  void add_faults(ShardRow& row, i64 tensor, i64 position) const {
    std::vector<BoxFault> faults = chunk_faults(store_, tensor, kMostFaultsOfTensor);
    std::vector<i64> holders;  // of the chunks that faults count
    for (i64 c = 0; c < store_.chunk_count(tensor); c++) {
      const Chunk chunk = store_.chunk(tensor, c);
      if (!chunk.replica && !faults.empty()) holders.push_back(columns_.of(chunk));
      if (chunk.replica || !file_is_lost(store_, chunk)) continue;
      add_fault(row, {.kind = ShardFault::Kind::kLost,
                      .member = position,
                      .first = columns_.of(chunk),
                      .offsets{chunk.offsets.begin(), chunk.offsets.end()},
                      .sizes{chunk.sizes.begin(), chunk.sizes.end()}});
    }
    for (BoxFault& f : faults) {
      auto column = [&](i64 box) { return box < 0 ? -1 : holders[box]; };
      constexpr ShardFault::Kind kKinds[] = {ShardFault::Kind::kOutside, ShardFault::Kind::kHole,
                                             ShardFault::Kind::kOverlap, ShardFault::Kind::kUnknown};
      add_fault(row, {.kind = kKinds[static_cast<int>(f.kind)],
                      .member = position,
                      .first = column(f.first),
                      .second = column(f.second),
                      .offsets = std::move(f.offsets),
                      .sizes = std::move(f.sizes)});
    }
  }

  static void add_absent(ShardRow& row, const std::vector<i64>& expected) {
    for (i64 number : expected)
      if (!std::ranges::binary_search(row.members, number))
        add_fault(row, {.kind = ShardFault::Kind::kAbsent, .member = number});
  }

  static void add_fault(ShardRow& row, ShardFault fault) {
    if (row.faults.size() < kMostFaultsOfRow) row.faults.push_back(std::move(fault));
  }

  // The number of the row in the map, or -1: there is no room for it.
  i64 number_of(ShardRow row) {
    std::string key = key_of(row);
    if (auto known = row_numbers_.find(key); known != row_numbers_.end()) return known->second;
    if (std::ssize(map_.rows) >= limits_.rows && row.faults.empty()) {
      map_.tensors_left_out += row.tensors();
      return -1;
    }
    const i64 number = std::ssize(map_.rows);
    row_numbers_.emplace(std::move(key), number);
    map_.rows.push_back(std::move(row));
    return number;
  }

  const Store& store_;
  const std::vector<Placed>& placed_;
  const MemberNumbers& numbers_;
  const ShardColumns columns_;
  const ShardMapLimits& limits_;
  ShardMap map_;
  std::unordered_map<std::string, i64> row_numbers_;
  std::unordered_map<std::string, i64> blocks_;
};

std::string title_of(StatePart part) {
  return cat(part == StatePart::kModel ? "" : cat(part_name(part), ", "), "outside layers");
}

std::vector<Group> group_by_layer(const Store& store, const std::vector<Placed>& placed) {
  std::map<std::tuple<std::string_view, i64, StatePart>, std::size_t> numbers;
  std::vector<Group> groups;
  for (i64 i = 0; i < std::ssize(placed); i++) {
    const TensorPlace& p = placed[i].place;
    // Tensors in no layer are apart by their purpose: weights, states of the optimizer, and the rest.
    const StatePart part = p.layer < 0 ? part_of(store.name(placed[i].tensor)) : StatePart::kModel;
    auto [known, fresh] = numbers.try_emplace({p.section, p.layer, part}, groups.size());
    if (fresh) groups.push_back({p.section, p.layer, p.layer < 0 ? title_of(part) : ""});
    groups[known->second].tensors.push_back(i);
  }
  return groups;
}

i64 boxes_in(const ShardMap& map) {
  i64 boxes = 0;
  for (const ShardRow& row : map.rows) boxes += std::ssize(row.boxes);
  return boxes;
}

// Leaves out the boxes of rows that are sound, from the last one on, until the rest is few enough.
void leave_out_boxes(ShardMap& map, i64 most) {
  i64 boxes = boxes_in(map);
  for (auto row = map.rows.rbegin(); row != map.rows.rend() && boxes > most; row++) {
    if (!row->faults.empty() || row->boxes.empty()) continue;
    boxes -= std::ssize(row->boxes);
    row->boxes.clear();
    row->drawn = false;
    map.rows_not_drawn++;
  }
}

}  // namespace

std::vector<NumberRange> number_ranges(std::span<const i64> ascending) {
  std::vector<NumberRange> out;
  for (i64 n : ascending) {
    if (!out.empty() && out.back().last + 1 == n)
      out.back().last = n;
    else
      out.push_back({n, n});
  }
  return out;
}

std::string_view map_fault_name(ShardFault::Kind kind) {
  constexpr std::string_view kNames[] = {"hole", "overlap", "outside", "lost", "absent", "unknown"};
  return kNames[static_cast<int>(kind)];
}

ShardMap shard_map(const Store& store, std::span<const i64> tensors, const ShardMapLimits& limits) {
  std::vector<Placed> placed;
  for (i64 t : tensors) placed.push_back({t, tensor_place(store.name(t))});
  const MemberNumbers numbers = member_numbers(placed);
  const std::vector<Group> groups = group_by_layer(store, placed);
  for (ShardColumns columns(store, limits.columns);;) {
    ShardMap map = MapMaker(store, placed, numbers, columns, limits).make(groups);
    if (boxes_in(map) <= limits.boxes || columns.count() / 2 < kFewestColumns) {
      leave_out_boxes(map, limits.boxes);
      return map;
    }
    columns.per_column *= 2;
  }
}

}  // namespace mckpt::impl
