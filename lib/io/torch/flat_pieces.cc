// Places are differences of offsets in a storage; nothing is read.
#include "io/torch/flat_pieces.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/torch/table/table.h"

namespace mckpt::impl {
namespace {

// FSDP1 begins each parameter at a multiple of 16 bytes of the type that it computes in, of one byte or more,
// and makes the unit a multiple of the number of ranks.
constexpr i64 kMostAlignment = 16;

}  // namespace

bool is_flat_parameter(std::string_view name, const TorchSharding* sharding) {
  return sharding != nullptr && sharding->boxes && sharding->global.size() == 1 &&
         (name == "_flat_param" || name.ends_with("._flat_param"));
}

std::string FlatUnits::add(i32 file, const TorchTable& table, i64 row) {
  const TorchSharding& sharding = *table.sharding(row);
  auto [at, is_new] = by_name_.try_emplace(std::string(table.name(row)), size());
  if (is_new)
    units_.push_back({std::string(table.name(row)), sharding.global[0],
                      std::clamp<i64>(sharding.group_ranks, 1, std::max<i64>(1, sharding.ranks))});
  const TorchTable::Storage* storage = table.storage(row);
  if (storage == nullptr) return "";
  const i64 begin = sharding.offsets[0], items = table.dims(row)[0], all = units_[at->second].items;
  if (begin > all - items)
    return cat("a shard of ", items, " items from ", begin, " on reaches out of the flat parameter of ", all);
  units_[at->second].most = std::max(units_[at->second].most, items);
  shards_[{file, storage->offset}].push_back({at->second, row, {begin, begin + items}});
  return "";
}

std::optional<FlatUnits::Place> FlatUnits::place(i32 file, const TorchTable& table, i64 row) {
  const TorchTable::Storage* storage = table.storage(row);
  if (storage == nullptr || table.dims(row).size() != 1 || !table.strides(row).empty()) return std::nullopt;
  auto shards = shards_.find({file, storage->offset});
  if (shards == shards_.end()) return std::nullopt;
  const i64 width = dtype_bytes(table.dtype(row), 1), items = table.dims(row)[0];
  for (const Shard& s : shards->second) {
    const i64 bytes = table.offset(row) - table.offset(s.row);
    if (table.dtype(s.row) != table.dtype(row) || bytes < 0 || bytes % width != 0) continue;
    if (bytes / width > s.items.items() - items) continue;
    const i64 begin = s.items.begin + bytes / width;
    if (items > 0) units_[s.unit].used.push_back({begin, begin + items});
    return Place{s.unit, {begin, begin + items}};
  }
  return std::nullopt;
}

void FlatUnits::refuse_nameless() const {
  for (const Unit& u : units_)
    if (u.used.empty() && u.most >= std::max(kMostAlignment, u.ranks))
      throw Error(
          Code::kUnsupportedTorchFile,
          "the file is of FSDP's LOCAL_STATE_DICT, and no tensor in it is a part of a flat parameter: nothing says which parameters that has, or where they are")
          .found(cat("the flat parameter '", escaped(u.name), "' of ", counted(u.items, "item")))
          .help(
              "load it in the program that saved it, and save it again with the state dict type SHARDED_STATE_DICT or FULL_STATE_DICT, or with use_orig_params=True and offload_to_cpu=False");
}

std::vector<std::string> FlatUnits::gaps() const {
  std::vector<std::string> out;
  for (const Unit& u : units_) {
    std::vector<ItemRange> used = u.used;
    std::ranges::sort(used, {}, &ItemRange::begin);
    used.push_back({u.items, u.items});
    i64 end = 0;
    for (ItemRange r : used) {
      if (r.begin - end >= std::max(kMostAlignment, u.ranks))
        out.push_back(cat("items ", end, " to ", r.begin - 1, " of ", escaped(u.name)));
      end = std::max(end, r.end);
    }
  }
  return out;
}

}  // namespace mckpt::impl
