// Takes the pieces from offsets and strides to boxes, and proves that boxes tile the shards and the wholes.
#include "io/zero/affine_map.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/box_cover.h"
#include "io/pickle/pickle.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr i64 kVersion = 1;
constexpr i64 kMostDimensions = 16, kMostRanks = 4096;

[[noreturn]] void refuse(std::string_view name, std::string what, std::string found) {
  throw Error(Code::kUnsupportedTorchFile, std::move(what))
      .tensor(name)
      .found(std::move(found))
      .help("DeepSpeed's ds_to_universal.py joins what its own version can");
}

[[noreturn]] void contradict(std::string_view name, std::string what) {
  throw Error(Code::kBadShards, cat("affine_map contradicts itself: ", what)).tensor(name);
}

PickleValue field(PickleValue dict, std::string_view name) {
  const PickleValue* v = dict.find(name);
  return v == nullptr ? PickleValue() : *v;
}

std::vector<i64> numbers(PickleValue list, std::string_view what, std::string_view name) {
  if (!list.is(Kind::kList) && !list.is(Kind::kTuple)) contradict(name, cat(what, " is no list"));
  std::vector<i64> out;
  for (PickleValue v : list.items()) {
    out.push_back(v.to_int(what));
    if (out.back() < 0) contradict(name, cat(what, " has the negative number ", out.back()));
    if (std::ssize(out) > kMostDimensions) contradict(name, cat(what, " is too long"));
  }
  return out;
}

// The name that a regular expression is for: re.escape() of it between ^ and $. Nothing for another one.
std::optional<std::string> literal_name(std::string_view pattern) {
  if (pattern.size() < 3 || !pattern.starts_with('^') || !pattern.ends_with('$')) return std::nullopt;
  pattern = pattern.substr(1, pattern.size() - 2);
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); i++) {
    const bool after_backslash = pattern[i] == '\\';
    if (after_backslash && ++i == pattern.size()) return std::nullopt;
    const char c = pattern[i], lower = static_cast<char>(c | 0x20);
    const bool letter = (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z');  // \d does not stand for d
    if (after_backslash ? letter : std::string_view(".^$*+?{}[]|()").find(c) != std::string_view::npos)
      return std::nullopt;
    name += c;
  }
  return name;
}

// The offsets of the box of `sizes` that begins at item `at` of a tensor and has these strides.
std::vector<i64> box_at(const Shape& tensor, std::span<const i64> sizes, i64 at, std::span<const i64> strides,
                        std::string_view name) {
  if (tensor.items() == 0) contradict(name, cat("a piece is in ", to_string(tensor)));
  std::vector<i64> out;
  i64 step = tensor.items();
  for (int d = 0; d < tensor.rank(); d++) {
    step /= tensor[d];
    if (sizes[d] > 1 && strides[d] != step)
      refuse(name, "a piece of affine_map is no box of the parameter",
             cat("strides ", dims_to_string(strides), " in ", to_string(tensor)));
    out.push_back(at / step);
    at %= step;
    if (out[d] > tensor[d] - sizes[d])
      contradict(name, cat("a piece of ", dims_to_string(sizes), " reaches out of ", to_string(tensor)));
  }
  if (tensor.rank() == 0 && at != 0) contradict(name, "a piece begins outside of the parameter");
  return out;
}

// {"shape": [..], "source": [offset, [strides]], "dest": [offset, [strides]], "locations": [ranks]}, and
// perhaps "scale".
struct ReadPiece {
  ZeroPiece piece;
  std::vector<i64> locations;
};

std::vector<i64> place(PickleValue pair, const Shape& tensor, std::span<const i64> sizes,
                       std::string_view what, std::string_view name) {
  std::vector<PickleValue> both(pair.items().begin(), pair.items().end());
  if (both.size() != 2) contradict(name, cat(what, " is no offset with strides"));
  const i64 at = both[0].to_int(what);
  const std::vector<i64> strides = numbers(both[1], what, name);
  if (std::ssize(strides) != tensor.rank() || at < 0)
    contradict(name, cat(what, " does not fit ", to_string(tensor)));
  return box_at(tensor, sizes, at, strides, name);
}

// A field that is not known could say otherwise where the items are.
void require_known(PickleValue entry, std::initializer_list<std::string_view> fields, std::string_view name) {
  for (PickleEntry e : entry.entries())
    if (const std::string_view key = e.key.to_text("a field of affine_map");
        std::ranges::find(fields, key) == fields.end())
      refuse(name, "affine_map has a field that mckpt does not know", escaped(key));
}

ReadPiece read_piece(PickleValue entry, i64 rank, const ZeroSplit& split, std::string_view name) {
  require_known(entry, {"shape", "source", "dest", "locations", "scale"}, name);
  if (PickleValue scale = field(entry, "scale"); !scale.is_none() && scale.to_float("scale") != 1)
    refuse(name, "the ranks hold the parameter multiplied by a number",
           cat("scale ", scale.to_float("scale")));
  ReadPiece out{.piece = {.rank = rank, .sizes = numbers(field(entry, "shape"), "shape", name)},
                .locations = numbers(field(entry, "locations"), "locations", name)};
  if (std::ssize(out.piece.sizes) != split.whole.rank()) contradict(name, "a piece has other dimensions");
  if (checked_items(out.piece.sizes) == 0) return out;
  out.piece.in_whole = place(field(entry, "source"), split.whole, out.piece.sizes, "source", name);
  out.piece.in_shard = place(field(entry, "dest"), split.shards[rank], out.piece.sizes, "dest", name);
  return out;
}

// Throws unless the boxes tile the tensor.
void check_tiled(const Shape& tensor, std::span<const ZeroPiece* const> pieces,
                 std::vector<i64> ZeroPiece::*offsets, std::string_view of, std::string_view name) {
  std::vector<i64> at, sizes;
  for (const ZeroPiece* p : pieces) {
    at.insert(at.end(), (p->*offsets).begin(), (p->*offsets).end());
    sizes.insert(sizes.end(), p->sizes.begin(), p->sizes.end());
  }
  const auto faults = cover_faults(tensor.dims(), at, sizes, std::ssize(pieces), 1);
  if (!faults.empty()) contradict(name, cat(of, ": ", to_string(faults[0], "piece")));
}

// Boxes that several ranks have count once, and each names these ranks.
void mark_replicas(std::vector<ReadPiece>& read, std::string_view name) {
  std::map<std::pair<std::vector<i64>, std::vector<i64>>, std::set<i64>> ranks_of;
  for (ReadPiece& r : read) {
    std::set<i64>& ranks = ranks_of[{r.piece.in_whole, r.piece.sizes}];
    r.piece.replica = !ranks.empty();
    if (!ranks.insert(r.piece.rank).second) contradict(name, "a rank has a piece twice");
  }
  for (const ReadPiece& r : read)
    if (ranks_of[{r.piece.in_whole, r.piece.sizes}] != std::set<i64>(r.locations.begin(), r.locations.end()))
      contradict(name, cat("a piece of rank ", r.piece.rank, " is said to be on ranks ",
                           dims_to_string(r.locations), ", and other ranks have it"));
}

// {0: .., 1: .., ranks - 1: ..}, in this order.
std::vector<PickleValue> by_rank(PickleValue dict, i64 ranks, std::string_view name) {
  std::map<i64, PickleValue> found;
  for (PickleEntry e : dict.entries()) found[e.key.to_int("a rank of affine_map")] = e.value;
  if (std::ssize(found) != ranks || found.begin()->first != 0 || found.rbegin()->first != ranks - 1)
    contradict(name, cat("it has ", dict.size(), " ranks, the save ", ranks));
  std::vector<PickleValue> out;
  for (const auto& [rank, of] : found) out.push_back(of);
  return out;
}

ZeroSplit read_split(PickleValue entry, i64 ranks, std::string_view name) {
  require_known(entry, {"logical_shape", "ranks"}, name);
  ZeroSplit out{.whole = Shape(numbers(field(entry, "logical_shape"), "logical_shape", name))};
  const std::vector<PickleValue> all = by_rank(field(entry, "ranks"), ranks, name);
  std::vector<ReadPiece> read;
  for (i64 r = 0; r < ranks; r++) {
    const PickleValue of = all[r];
    require_known(of, {"shard_shape", "pieces"}, name);
    out.shards.emplace_back(numbers(field(of, "shard_shape"), "shard_shape", name));
    if (out.shards[r].rank() != out.whole.rank()) contradict(name, "a shard has other dimensions");
    for (PickleValue p : field(of, "pieces").items()) {
      ReadPiece piece = read_piece(p, r, out, name);
      if (!piece.piece.in_whole.empty() || out.whole.rank() == 0) read.push_back(std::move(piece));
    }
  }
  mark_replicas(read, name);
  for (ReadPiece& r : read) out.pieces.push_back(std::move(r.piece));
  auto at = out.pieces.begin();  // they are in the order of the ranks
  for (i64 r = 0; r < ranks; r++) {
    std::vector<const ZeroPiece*> mine;
    for (; at != out.pieces.end() && at->rank == r; ++at) mine.push_back(&*at);
    check_tiled(out.shards[r], mine, &ZeroPiece::in_shard, cat("the shard of rank ", r), name);
  }
  std::vector<const ZeroPiece*> firsts;
  for (const ZeroPiece& p : out.pieces)
    if (!p.replica) firsts.push_back(&p);
  check_tiled(out.whole, firsts, &ZeroPiece::in_whole, "the parameter", name);
  return out;
}

std::string name_of(PickleValue key) {
  const std::string_view pattern = key.to_text("a pattern of affine_map");
  if (std::optional<std::string> name = literal_name(pattern)) return *std::move(name);
  refuse("", "a pattern of affine_map is not the name of one parameter", escaped(pattern));
}

}  // namespace

ZeroAffineMap read_affine_map(PickleValue model_states, i64 ranks) {
  ZeroAffineMap out{.ranks = ranks};
  const PickleValue info = field(model_states, "universal_checkpoint_info");
  const PickleValue map = field(info, "affine_map");
  if (map.is_none()) return out;
  if (ranks > kMostRanks)
    refuse("", "more tensor-parallel ranks than any model has", cat("mp_world_size ", ranks));
  if (PickleValue version = field(map, "version"); !version.is_int() || version.as_int() != kVersion)
    refuse("", "affine_map is of a version that mckpt does not know",
           version.is_int() ? cat("version ", version.as_int()) : std::string("no version"));
  require_known(map, {"version", "params"}, "");
  for (PickleEntry e : field(map, "params").entries()) {
    const std::string name = name_of(e.key);
    if (!out.splits.emplace(name, read_split(e.value, ranks, name)).second)
      contradict(name, "the parameter is in it twice");
  }
  for (PickleEntry e : field(info, "autotp_unsupported_parameter_patterns").entries())
    out.unsupported[name_of(e.key)] = e.value.to_text("a reason");
  return out;
}

}  // namespace mckpt::impl
