// Flat pieces (LOCAL_STATE_DICT) in the files of ranks: which tensors they are, and items of no tensor.
#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/pickle/render.h"
#include "io/ranks/rank_group.h"
#include "io/store/open/format_ids.h"

namespace mckpt::impl {
namespace {

i64 items_of(std::span<const i64> sizes) { return Shape(sizes).items(); }

}  // namespace

bool RankGroup::is_flat_parameter(const Name& n) const {
  return std::ranges::any_of(n.holders,
                             [&](const Holder& h) { return impl::is_flat_parameter(n.name, sharding(h)); });
}

// Its shards say where pieces are. It is not a tensor of the store: its items are the items of the pieces,
// and padding.
void RankGroup::add_flat_parameter(const Name& n) {
  std::string wrong = unlike_rank(n);
  for (const Holder& h : n.holders)
    if (impl::is_flat_parameter(n.name, sharding(h)))
      if (std::string bad = units_.add(h.file, table(h), h.row); wrong.empty()) wrong = std::move(bad);
  if (wrong.empty()) {
    const Name held = with_items(n);
    std::vector<TorchPiece> shards;
    for (const Holder& h : held.holders) shards.push_back({.rank = h.rank, .sizes = table(h).dims(h.row)});
    wrong = place_shards(held, shards);
  }
  if (!wrong.empty()) add_finding(n.name, std::move(wrong));
}

// Adds the tensor that is in pieces of flat parameters. False: it has none.
bool RankGroup::join_flat(const Name& n) {
  Name held{n.name, {}};
  std::vector<TorchPiece> pieces;
  FlatUnits::Place all;
  const Holder *elsewhere = nullptr, *other_unit = nullptr;
  for (const Holder& h : n.holders) {
    const std::span<const i64> dims = table(h).dims(h.row);
    if (sharding(h) != nullptr) return false;
    std::optional<FlatUnits::Place> place = units_.place(h.file, table(h), h.row);
    if (items_of(dims) == 0) continue;
    if (!place)
      elsewhere = &h;
    else if (!held.holders.empty() && place->unit != all.unit)
      other_unit = &h;
    if (!place || other_unit != nullptr) continue;
    if (held.holders.empty()) all = *place;
    all.items = {std::min(all.items.begin, place->items.begin), std::max(all.items.end, place->items.end)};
    held.holders.push_back(h);
    pieces.push_back({.rank = h.rank, .sizes = dims, .offsets = {place->items.begin}});
  }
  if (pieces.empty()) return false;
  for (TorchPiece& p : pieces) p.offsets[0] -= all.items.begin;
  const i64 whole[] = {all.items.items()};
  const std::string& unit = units_.name(all.unit);
  std::string wrong = doubled(*sharding(names_[by_name_.find(unit)->second].holders[0]), pieces);
  add_pieces(held, whole, pieces);
  if (elsewhere != nullptr)
    wrong = cat("rank ", elsewhere->rank, " has items of it that are in no flat parameter");
  else if (other_unit != nullptr)
    wrong = cat("rank ", other_unit->rank, " has items of it that are not in '", unit, "'");
  else if (std::ssize(n.holders) != ranks_)
    wrong = cat(n.holders.size(), " of ", ranks_, " ranks have a piece of it");
  if (wrong.empty()) wrong = fault_of(held, pieces);
  if (!wrong.empty()) add_finding(n.name, cat(wrong, " (a piece of the flat parameter ", escaped(unit), ")"));
  return true;
}

// Items of no tensor, and what the store is.
void RankGroup::conclude_flat() {
  with_file(store_.root(), [&] { units_.refuse_nameless(); });
  if (whole_)
    for (const std::string& gap : units_.gaps())
      store_.add_finding(
          {.code = Code::kBadShards,
           .message = cat(
               gap,
               " are of no tensor, and too many to be padding: a tensor is missing, or its piece is too short")});
  store_.set_format(Format::kTorchFlat);
  store_.add_fact("flat parameters", cat(units_.size()));
}

}  // namespace mckpt::impl
