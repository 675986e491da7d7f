// Joins by what the files say: DTensors by their mesh, ShardedTensors by their boxes, plain tensors if all
// ranks have the same.
#include "io/ranks/rank_group.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/items/box_cover.h"
#include "core/items/shape.h"
#include "io/pickle/render.h"
#include "io/store/cover.h"
#include "io/store/missing_file.h"
#include "io/store/names/torch_names.h"
#include "io/store/state_part.h"
#include "io/torch/files.h"

namespace mckpt::impl {
namespace {

i64 items_of(std::span<const i64> sizes) { return Shape(sizes).items(); }

}  // namespace

void RankGroup::add(OpenedTorchFile& o, const RankName& name) {
  ranks_++;
  const i64 least_ranks = check_writer(o, name, o.file->table);
  i32 file = store_.add_file(o.path, o.bytes, std::move(*o.file), cat(prefix_, "rank_", name.rank, ":"),
                             static_cast<i32>(name.rank));
  files_.push_back({name.rank, file, least_ranks});
  const TorchTable& rows = store_.table(file);
  for (i64 row = 0; row < rows.size(); row++) {
    auto [it, is_new] = by_name_.try_emplace(std::string(rows.name(row)), names_.size());
    if (is_new) names_.push_back({std::string(rows.name(row)), {}});
    names_[it->second].holders.push_back({name.rank, file, row});
    distributed_ |= rows.sharding(row) != nullptr;
  }
}

// A copied or renamed file: its tensors know the rank that wrote them, and of how many ranks it was one, or
// its archive has the name that it had. Returns the number of ranks, or 0.
i64 RankGroup::check_writer(const OpenedTorchFile& file, const RankName& name, const TorchTable& rows) {
  auto find = [&](const std::string& message) {
    store_.add_finding({.code = Code::kBadShards, .file = file.path, .message = message});
  };
  for (i64 row = 0; row < rows.size(); row++) {
    const TorchSharding* s = rows.sharding(row);
    if (s == nullptr) continue;
    if (s->writer() >= 0 && s->writer() != name.rank)
      find(cat("by its name the file is of rank ", name.rank, ", but rank ", s->writer(), " wrote it"));
    else if (name.world >= 0 && s->least_ranks() > name.world)
      find(cat("by its name the file is of one of ", name.world, " ranks, but a job of ", s->least_ranks(),
               " ranks wrote it"));
    else if (s->writer() < 0)
      check_saved_name(file, name);
    return s->least_ranks();
  }
  check_saved_name(file, name);
  return 0;
}

// Where no tensor says the rank.
void RankGroup::check_saved_name(const OpenedTorchFile& file, const RankName& name) {
  const std::optional<RankName> saved = rank_name(saved_as(file));
  const bool says = saved && saved->group == name.group;
  unsaid_ranks_ |= !says;
  if (says && (saved->rank != name.rank || saved->world != name.world))
    store_.add_finding(moved_file(file, name.rank));
}

i64 RankGroup::least_ranks() const {
  i64 most = 0;
  for (const Part& p : files_) most = std::max(most, p.least_ranks);
  return most;
}

void RankGroup::add_finding(const std::string& tensor, std::string message) {
  store_.add_finding(
      {.code = Code::kBadShards, .tensor = cat(prefix_, tensor), .message = std::move(message)});
}

void RankGroup::join(bool whole) {
  whole_ &= whole;
  for (const Name& n : names_)
    if (is_flat_parameter(n)) add_flat_parameter(n);
  for (const Name& n : names_) {
    if (units_.size() > 0 && (is_flat_parameter(n) || join_flat(n))) continue;
    const auto pieces =
        std::ranges::count_if(n.holders, [&](const Holder& h) { return sharding(h) != nullptr; });
    if (pieces > 0)
      join_distributed(n);
    else
      join_plain(n);
  }
  if (units_.size() > 0) conclude_flat();
  if (unsaid_ranks_ && files_.size() > 1 && (distributed_ || units_.size() > 0))
    store_.traits.says_rank_order = false;
  std::vector<i32> files;
  for (const Part& p : files_) files.push_back(p.file);
  saves_.compare_objects(files);
  note_uncompared();
}

bool RankGroup::same_boxes(const TorchBoxes& a, const TorchBoxes& b) {
  auto [it, is_new] = same_boxes_.try_emplace({&a, &b}, false);
  auto equal = [](const std::vector<i64>* left, const std::vector<i64>* right) { return *left == *right; };
  if (is_new) it->second = std::ranges::equal(a.all, b.all, equal);
  return it->second;
}

// Whether they are one mesh, or rows of one grid, each with the tensor.
bool RankGroup::same_mesh(const TorchMesh& a, const TorchMesh& b) {
  auto [it, is_new] = same_mesh_.try_emplace({&a, &b}, false);
  auto in_a = [&](i64 rank) { return std::ranges::find(a.ranks, rank) != a.ranks.end(); };
  if (is_new) it->second = a.sizes == b.sizes && (a.ranks == b.ranks || std::ranges::none_of(b.ranks, in_a));
  return it->second;
}

// Whether both describe the same layout; the rank that wrote it does not matter.
bool RankGroup::alike(const TorchSharding& a, const TorchSharding& b) {
  if (a.global != b.global || !a.boxes != !b.boxes) return false;
  if (a.boxes) return a.ranks == b.ranks && a.group_ranks == b.group_ranks && same_boxes(*a.boxes, *b.boxes);
  return a.placements == b.placements && a.shard_order == b.shard_order && same_mesh(*a.mesh, *b.mesh);
}

// Whether two ranks describe the same tensor.
bool RankGroup::is_described_alike(const Holder& a, const Holder& b) {
  const TorchSharding *one = sharding(a), *other = sharding(b);
  if (one == nullptr || other == nullptr) return one == other;
  return alike(*other, *one) && table(a).dtype(a.row) == table(b).dtype(b.row);
}

// The ranks that describe more than half of that rank's tensors in another way, or do not have them. For one
// or two tensors each says for itself what is wrong.
std::vector<i64> RankGroup::unlike_ranks(i64 reference) {
  std::map<i64, i64> fitting;
  i64 tensors = 0;
  for (const Name& n : names_) {
    auto own = std::ranges::find(n.holders, reference, &Holder::rank);
    if (own == n.holders.end()) continue;
    tensors++;
    i64 last = reference;  // a rank may have several shards
    for (const Holder& h : n.holders)
      if (h.rank != reference && h.rank != std::exchange(last, h.rank))
        fitting[h.rank] += is_described_alike(*own, h);
  }
  std::vector<i64> out;
  if (tensors < 3) return out;
  for (const Part& p : files_)
    if (p.rank != reference && 2 * fitting[p.rank] < tensors) out.push_back(p.rank);
  return out;
}

// Leaves out files of other models, and reports each once: all their tensors would be unlike the tensors of
// the other ranks.
void RankGroup::leave_out_others() {
  if (!model_ || files_.size() < 2) return;
  i64 reference = files_[0].rank;
  std::vector<i64> others = unlike_ranks(reference);
  if (std::size_t all = files_.size() - 1; 2 * others.size() > all)
    if (std::vector<i64> again = unlike_ranks(files_[1].rank); again.size() < others.size())
      others = std::move(again), reference = files_[1].rank;
  if (others.empty()) return;
  auto path = [&](i64 rank) {
    return store_.files()[std::ranges::find(files_, rank, &Part::rank)->file].path;
  };
  for (i64 rank : others)
    store_.add_finding({.code = Code::kBadShards,
                        .file = path(rank),
                        .message = cat("most tensors of the file are not described as in ", path(reference),
                                       ", or are missing: it is of another model, and is not used"),
                        .help = cat("copy rank ", rank, "'s file of the same save here")});
  auto is_other = [&](const auto& of) { return std::ranges::find(others, of.rank) != others.end(); };
  for (Name& n : names_) std::erase_if(n.holders, is_other);
  std::erase_if(files_, is_other);
  std::erase_if(names_, [](const Name& n) { return n.holders.empty(); });
  by_name_.clear();
  for (std::size_t i = 0; i < names_.size(); i++) by_name_.emplace(names_[i].name, i);
  ranks_ -= std::ssize(others);
  whole_ = false;
}

// Says how the ranks fail to describe the same tensor, or "".
std::string RankGroup::unlike_rank(const Name& n) {
  const Holder& first = n.holders[0];
  for (const Holder& h : n.holders)
    if (!is_described_alike(first, h))
      return cat("rank ", h.rank, " describes the tensor differently than rank ", first.rank);
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
  const Name held = layout.boxes ? with_items(n) : in_mesh(n);
  std::vector<TorchPiece> pieces;
  for (const Holder& h : held.holders)
    pieces.push_back({.rank = h.rank, .sizes = table(h).dims(h.row), .sharding = sharding(h)});
  wrong = layout.boxes ? place_shards(held, pieces) : place_pieces(pieces);
  if (wrong.empty() || layout.boxes) {
    add_pieces(held, layout.global, pieces);
    if (wrong.empty()) wrong = fault_of(held, pieces);
  }
  if (!wrong.empty()) add_finding(n.name, cat(wrong, " (", to_string(layout), ")"));
}

// The holders that have a shard: a rank without one has no box. All, if there is none at all.
RankGroup::Name RankGroup::with_items(const Name& n) const {
  Name out = n;
  std::erase_if(out.holders, [&](const Holder& h) { return table(h).storage(h.row) == nullptr; });
  return out.holders.empty() ? n : out;
}

// The holders that are ranks of the tensor's mesh: others have a DTensor of no items. All, if there is none
// at all.
RankGroup::Name RankGroup::in_mesh(const Name& n) const {
  Name out = n;
  std::erase_if(out.holders, [&](const Holder& h) {
    return items_of(table(h).dims(h.row)) == 0 && !mesh_place(*sharding(h)->mesh, h.rank);
  });
  return out.holders.empty() ? n : out;
}

// Adds the tensor that consists of the pieces, in the places that they have.
void RankGroup::add_pieces(const Name& n, std::span<const i64> dims, std::span<const TorchPiece> pieces) {
  std::vector<TorchStore::Piece> placed;
  for (std::size_t i = 0; i < pieces.size(); i++)
    for (TorchStore::Piece& box : store_pieces(pieces[i], n.holders[i].file, n.holders[i].row))
      placed.push_back(std::move(box));
  store_.add_sharded(cat(prefix_, n.name), dims, placed);
}

// Places the shards of a ShardedTensor by their own boxes. Two ranks may have one box only where the job has
// several groups of ranks, each with the whole tensor.
std::string RankGroup::place_shards(const Name& n, std::span<TorchPiece> pieces) const {
  for (std::size_t i = 0; i < pieces.size(); i++) pieces[i].offsets = sharding(n.holders[i])->offsets;
  return doubled(*sharding(n.holders[0]), pieces);
}

// Marks replicas. Returns what is wrong with them, or "".
std::string RankGroup::doubled(const TorchSharding& layout, std::span<TorchPiece> pieces) const {
  mark_replicas(pieces);
  if (layout.group_ranks < layout.ranks) return "";
  for (const TorchPiece& p : pieces)
    if (p.replica && items_of(p.sizes) > 0)
      return cat("rank ", p.rank, " has a shard that an earlier rank has as well: offsets ",
                 dims_to_string(p.offsets), ", sizes ", dims_to_string(p.sizes));
  return "";
}

// The fault of pieces that have their places: copies that differ, a hole, an overlap. "": nothing.
// pre: the tensor is the last one of the store.
std::string RankGroup::fault_of(const Name& n, std::span<const TorchPiece> pieces) {
  std::map<std::vector<i64>, std::size_t> first;  // by where the pieces are
  bool unknown = false;
  for (std::size_t i = 0; i < pieces.size(); i++) {
    if (items_of(pieces[i].sizes) == 0) continue;
    auto [it, is_new] = first.try_emplace(place_of(pieces[i]), i);
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
             " leave out items of the tensor: a piece is too short, or ", kAFileIsMissing);
}

// A count that ranks make together, as a tensor of one item: the steps of a parameter, the scale of a loss.
void RankGroup::compare_counts(const Name& n) {
  const Holder& first = n.holders[0];
  if (items_of(table(first).dims(first.row)) != 1 || !ranks_agree_on(n.name)) return;
  for (const Holder& h : n.holders)
    if (h.file != first.file && sharding(h) == nullptr && items_of(table(h).dims(h.row)) == 1 &&
        copies_.compare({first.file, first.row}, {h.file, h.row}) == TorchCopies::Answer::kDifferent)
      saves_.differ(first.file, h.file, n.name, copies_.text({first.file, first.row}),
                    copies_.text({h.file, h.row}));
}

// One tensor if all ranks have it alike, else one of each rank, with the rank in its name.
void RankGroup::join_plain(const Name& n) {
  const Holder& first = n.holders[0];
  const Holder* odd = nullptr;
  bool unknown = false;
  const bool everywhere = std::ssize(n.holders) == ranks_;
  compare_counts(n);
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
       .message = cat(
           "the files have no checksums of ", counted(std::ssize(uncompared_), "tensor"),
           " of which several ranks have copies: the copies were not compared, and the first rank's is used: ",
           listed(uncompared_, 3)),
       .warning = true});
}

}  // namespace mckpt::impl
