// Joins by what the files say: DTensors by their mesh, ShardedTensors by their boxes, plain tensors if all ranks
// have the same.
#include "io/torch/rank_group.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/box_cover.h"
#include "core/items/shape.h"
#include "io/pickle/render.h"
#include "io/store/cover.h"
#include "io/store/open/torch_names.h"
#include "io/store/state_part.h"
#include "io/torch/files.h"
#include "io/torch/sharded_tensor.h"

namespace mckpt::impl {
namespace {

i64 items_of(std::span<const i64> sizes) { return Shape(sizes).items(); }

}  // namespace

void RankGroup::add(OpenedTorchFile& o, const RankName& name) {
  ranks_++;
  with_file(cat(store_.root(), "/", o.path), [&] {
    for (i64 row = 0; row < o.file->table.size(); row++)
      if (is_flat_parameter(o.file->table.name(row), o.file->table.sharding(row)))
        refuse_flat_pieces(o.file->table.name(row));
  });
  check_writer(o, name, o.file->table);
  i32 file = store_.add_file(o.path, o.bytes, std::move(*o.file), cat(prefix_, "rank_", name.rank, ":"),
                             static_cast<i32>(name.rank));
  const TorchTable& rows = store_.table(file);
  for (i64 row = 0; row < rows.size(); row++) {
    auto [it, is_new] = by_name_.try_emplace(std::string(rows.name(row)), names_.size());
    if (is_new) names_.push_back({std::string(rows.name(row)), {}});
    names_[it->second].holders.push_back({name.rank, file, row});
    distributed_ |= rows.sharding(row) != nullptr;
  }
}

// A copied or renamed file: its tensors know the rank that wrote them, and of how many ranks it was one.
void RankGroup::check_writer(const OpenedTorchFile& file, const RankName& name, const TorchTable& rows) {
  auto find = [&](const std::string& message) {
    store_.add_finding({.code = Code::kBadShards, .file = file.path, .message = message});
  };
  for (i64 row = 0; row < rows.size(); row++) {
    const TorchSharding* s = rows.sharding(row);
    if (s == nullptr) continue;
    least_ranks_ = std::max(least_ranks_, s->least_ranks());
    if (s->writer() >= 0 && s->writer() != name.rank)
      find(cat("by its name the file is of rank ", name.rank, ", but rank ", s->writer(), " wrote it"));
    else if (name.world >= 0 && s->least_ranks() > name.world)
      find(cat("by its name the file is of one of ", name.world, " ranks, but a job of ", s->least_ranks(),
               " ranks wrote it"));
    return;
  }
}

void RankGroup::add_finding(const std::string& tensor, std::string message) {
  store_.add_finding(
      {.code = Code::kBadShards, .tensor = cat(prefix_, tensor), .message = std::move(message)});
}

void RankGroup::join(bool whole) {
  whole_ = whole;
  for (const Name& n : names_) {
    const auto pieces =
        std::ranges::count_if(n.holders, [&](const Holder& h) { return sharding(h) != nullptr; });
    if (pieces > 0)
      join_distributed(n);
    else
      join_plain(n);
  }
  note_uncompared();
}

bool RankGroup::same_boxes(const TorchBoxes& a, const TorchBoxes& b) {
  auto [it, is_new] = same_boxes_.try_emplace({&a, &b}, false);
  auto equal = [](const std::vector<i64>* left, const std::vector<i64>* right) { return *left == *right; };
  if (is_new) it->second = std::ranges::equal(a.all, b.all, equal);
  return it->second;
}

// Whether both describe the same layout; the rank that wrote it does not matter.
bool RankGroup::alike(const TorchSharding& a, const TorchSharding& b) {
  if (a.global != b.global || !a.boxes != !b.boxes) return false;
  if (a.boxes) return a.ranks == b.ranks && a.group_ranks == b.group_ranks && same_boxes(*a.boxes, *b.boxes);
  return a.placements == b.placements && a.shard_order == b.shard_order && a.mesh->sizes == b.mesh->sizes &&
         a.mesh->ranks == b.mesh->ranks;
}

// What is wrong if the ranks do not describe the same tensor, or "".
std::string RankGroup::unlike_rank(const Name& n) {
  const Holder& first = n.holders[0];
  const TorchSharding* described = sharding(first);
  for (const Holder& h : n.holders) {
    const TorchSharding* other = sharding(h);
    const bool both = described != nullptr && other != nullptr;
    if (both ? !alike(*other, *described) || table(h).dtype(h.row) != table(first).dtype(first.row)
             : described != other)
      return cat("rank ", h.rank, " describes the tensor differently than rank ", first.rank);
  }
  return "";
}

// Adds the tensor that the pieces make up. If they do not fit together, adds a finding as well, or instead.
void RankGroup::join_distributed(const Name& n) {
  std::string wrong = unlike_rank(n);
  if (!wrong.empty()) {
    const TorchSharding* s = sharding(n.holders[0]);
    return add_finding(n.name, s == nullptr ? wrong : cat(wrong, " (", to_string(*s), ")"));
  }
  const TorchSharding& layout = *sharding(n.holders[0]);
  Name with_items{n.name, n.holders};
  if (layout.boxes)  // a rank without a shard has no box, unless there is none at all
    std::erase_if(with_items.holders, [&](const Holder& h) { return table(h).storage(h.row) == nullptr; });
  const Name& held = with_items.holders.empty() ? n : with_items;
  std::vector<TorchPiece> pieces;
  for (const Holder& h : held.holders) pieces.push_back({.rank = h.rank, .sizes = table(h).dims(h.row)});
  wrong = layout.boxes ? place_shards(held, pieces) : place_pieces(layout, pieces);
  if (wrong.empty() || layout.boxes) {
    std::vector<TorchStore::Piece> placed;
    for (std::size_t i = 0; i < pieces.size(); i++)
      placed.push_back({held.holders[i].file, held.holders[i].row, pieces[i].offsets, pieces[i].replica});
    store_.add_sharded(cat(prefix_, n.name), layout.global, placed);
    if (wrong.empty()) wrong = fault_of(held, pieces);
  }
  if (!wrong.empty()) add_finding(n.name, cat(wrong, " (", to_string(layout), ")"));
}

// Places the shards of a ShardedTensor by their own boxes. Two ranks may have one box only where the job has several
// groups of ranks, each with the whole tensor.
std::string RankGroup::place_shards(const Name& n, std::span<TorchPiece> pieces) const {
  for (std::size_t i = 0; i < pieces.size(); i++) pieces[i].offsets = sharding(n.holders[i])->offsets;
  mark_replicas(pieces);
  const TorchSharding& layout = *sharding(n.holders[0]);
  if (layout.group_ranks < layout.ranks) return "";
  for (const TorchPiece& p : pieces)
    if (p.replica && items_of(p.sizes) > 0)
      return cat("rank ", p.rank, " has a shard that an earlier rank has as well: offsets ",
                 dims_to_string(p.offsets), ", sizes ", dims_to_string(p.sizes));
  return "";
}

// What is wrong with pieces that have their places: copies that differ, a hole, an overlap. "": nothing.
// pre: the tensor is the last one of the store.
std::string RankGroup::fault_of(const Name& n, std::span<const TorchPiece> pieces) {
  std::map<std::vector<i64>, std::size_t> first;  // by where the pieces are
  bool unknown = false;
  for (std::size_t i = 0; i < pieces.size(); i++) {
    if (items_of(pieces[i].sizes) == 0) continue;
    auto [it, is_new] = first.try_emplace(pieces[i].offsets, i);
    if (is_new || !pieces[i].replica) continue;
    const Holder &a = n.holders[it->second], &b = n.holders[i];
    TorchCopies::Answer answer = copies_.compare({a.file, a.row}, {b.file, b.row});
    if (answer == TorchCopies::Answer::kDifferent)
      return cat("rank ", b.rank, " has other values of the tensor than rank ", a.rank,
                 ", of which it has a copy");
    unknown |= answer == TorchCopies::Answer::kUnknown;
  }
  if (unknown) uncompared_.push_back(cat(prefix_, n.name));
  std::vector<BoxFault> faults = chunk_faults(store_, store_.tensor_count() - 1, 1);
  if (faults.empty()) return "";
  if (faults[0].kind != BoxFault::Kind::kHole) return to_string(faults[0], "piece");
  if (!whole_) return "";
  return cat("the pieces of ", counted(std::ssize(pieces), "rank"),
             " leave out items of the tensor: a piece is too short, or a file is missing");
}

// One tensor if all ranks have it alike, else one of each rank, with the rank in its name.
void RankGroup::join_plain(const Name& n) {
  const Holder& first = n.holders[0];
  const Holder* odd = nullptr;
  bool unknown = false;
  const bool everywhere = std::ssize(n.holders) == ranks_;
  for (const Holder& h : n.holders) {
    if (!everywhere || odd != nullptr || &h == &first) continue;
    TorchCopies::Answer answer = copies_.compare({first.file, first.row}, {h.file, h.row});
    if (answer == TorchCopies::Answer::kDifferent) odd = &h;
    unknown |= answer == TorchCopies::Answer::kUnknown;
  }
  if (everywhere && odd == nullptr) {
    if (unknown) uncompared_.push_back(cat(prefix_, n.name));
    return add_copies(n);
  }
  for (const Holder& h : n.holders) store_.add_tensor(h.file, h.row, cat(prefix_, "rank_", h.rank, ":"));
  // Random states and the like are of each rank.
  if (!model_ || !distributed_ || part_of(n.name) != StatePart::kModel) return;
  if (odd != nullptr)
    add_finding(n.name, cat("rank ", first.rank, " and rank ", odd->rank,
                            " have different values of it, and each should have a copy of the whole"));
  else
    add_finding(n.name, cat(n.holders.size(), " of ", ranks_,
                            " ranks have the tensor, of which each should have a copy; rank ", first.rank,
                            " is the first of them"));
}

// One tensor; the first rank's is used, the others are replicas.
void RankGroup::add_copies(const Name& n) {
  std::span<const i64> dims = table(n.holders[0]).dims(n.holders[0].row);
  std::vector<TorchStore::Piece> pieces;
  for (const Holder& h : n.holders)
    pieces.push_back({h.file, h.row, std::vector<i64>(dims.size(), 0), !pieces.empty()});
  store_.add_sharded(cat(prefix_, n.name), dims, pieces);
}

void RankGroup::note_uncompared() {
  if (uncompared_.empty()) return;
  store_.add_finding(
      {.code = Code::kNoChecksums,
       .message =
           cat("the files have no checksums of ", uncompared_.size(),
               " tensors of which several ranks have copies: the copies were not compared, and the first "
               "rank's is used: ",
               listed(uncompared_, 3)),
       .warning = true});
}

}  // namespace mckpt::impl
