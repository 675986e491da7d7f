// Reads the spec of a DTensor: its mesh, its placements, and the order of its cuts.
#include "io/torch/table/sharding.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/pickle/render.h"
#include "io/torch/table/spec_fields.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;
using Placement = TorchPlacement::Kind;

// An integer, or a tuple (of tuples) of them, flattened. `left` bounds the work.
void append_integers(std::vector<i64>& out, PickleValue v, int depth, i64& left) {
  if (v.is_int()) out.push_back(v.as_int());
  if (--left < 0 || depth == 0)
    throw Error(Code::kBadPickle, "a device mesh is not made of integers, or is too large");
  for (PickleValue item : v.items()) append_integers(out, item, depth - 1, left);
}

// Older releases pickle the dimension as an argument, newer ones as a field.
TorchPlacement read_placement(PickleValue v) {
  if (!v.is(Kind::kObject))
    throw Error(Code::kBadPickle, "a placement of a DTensor is not a placement of torch");
  const PickleObject& o = v.as_object();
  PickleValue dim = o.field("dim") ? spec_field(o, "dim") : o.args.at(0);
  switch (o.type->known) {
    case Known::kReplicate:
      return {Placement::kReplicate, 0};
    case Known::kPartial:
      return {Placement::kPartial, 0};
    case Known::kShard:
    case Known::kStridedShard: {
      const i64 d = dim.to_int("the dimension of a placement");
      if (o.type->known == Known::kShard) return cut_along(d, std::nullopt);
      PickleValue factor = o.field("split_factor") ? spec_field(o, "split_factor") : o.args.at(1);
      return cut_along(d, factor.to_int("the split factor of a placement"));
    }
    default:
      throw Error(Code::kBadPickle, "a DTensor has a placement that mckpt does not know")
          .found(escaped(o.type->name));
  }
}

}  // namespace

const PickleObject* spec_object(PickleValue v, Known known) {
  return v.is(Kind::kObject) && v.as_object().type->known == known ? &v.as_object() : nullptr;
}

PickleValue spec_field(const PickleObject& o, std::string_view name) {
  const PickleValue* v = o.field(name);
  return v ? *v : PickleValue();
}

std::vector<i64> spec_integers(PickleValue v) {
  std::vector<i64> out;
  i64 left = kMostRanks;
  append_integers(out, v, 8, left);
  return out;
}

TorchPlacement cut_along(i64 dim, std::optional<i64> blocks) {
  if (dim < 0 || dim >= Shape::kMaxRank)
    throw Error(Code::kBadPickle, "a DTensor is sharded along no dimension").found(dim);
  if (!blocks) return {Placement::kShard, static_cast<int>(dim)};
  if (*blocks < 1)
    throw Error(Code::kBadPickle, "a strided shard of a DTensor is of no blocks").found(*blocks);
  return {Placement::kStridedShard, static_cast<int>(dim), *blocks};
}

void check_placements(const TorchSharding& s) {
  if (s.placements.size() != s.mesh->sizes.size())
    throw Error(Code::kBadPickle, "a DTensor does not have one placement for each dimension of its mesh")
        .expected(s.mesh->sizes.size())
        .found(s.placements.size());
  for (const TorchPlacement& p : s.placements)
    if (p.dim >= std::ssize(s.global) && p.kind != Placement::kReplicate && p.kind != Placement::kPartial)
      throw Error(Code::kBadShape, "a DTensor is sharded along a dimension that it does not have")
          .found(p.dim);
}

i64 TorchSharding::least_ranks() const {
  if (!mesh) return ranks;
  return mesh->ranks.empty() ? 0 : *std::ranges::max_element(mesh->ranks) + 1;
}

std::shared_ptr<const TorchMesh> TorchMeshes::read(PickleValue device_mesh) {
  const PickleObject* o = spec_object(device_mesh, Known::kDeviceMesh);
  if (o == nullptr)
    throw Error(Code::kBadPickle, "a DTensor has no device mesh").found(kind_name(device_mesh.kind()));
  std::shared_ptr<const TorchMesh>& mesh = by_node_[device_mesh.node()];
  if (!mesh) mesh = std::make_shared<const TorchMesh>(read_torch_mesh(*o));
  return mesh;
}

TorchSharding read_torch_sharding(PickleValue spec, TorchMeshes& meshes) {
  const PickleObject* o = spec_object(spec, Known::kDTensorSpec);
  if (o == nullptr) throw Error(Code::kBadPickle, "a DTensor has no spec").found(kind_name(spec.kind()));
  auto part = [&](std::string_view name, i64 position) {
    return o->field(name) ? spec_field(*o, name) : o->args.at(position);
  };
  TorchSharding s;
  s.mesh = meshes.read(part("mesh", 0));
  for (PickleValue p : part("placements", 1).items()) {
    if (s.placements.size() == s.mesh->sizes.size()) break;
    s.placements.push_back(read_placement(p));
  }
  if (s.placements.size() != s.mesh->sizes.size() ||
      part("placements", 1).size() != static_cast<i64>(s.placements.size()))
    throw Error(Code::kBadPickle, "a DTensor does not have one placement for each dimension of its mesh")
        .expected(s.mesh->sizes.size())
        .found(part("placements", 1).size());
  for (PickleValue entry : spec_field(*o, "shard_order").items()) {
    if (!entry.is(Kind::kObject)) continue;  // ShardOrderEntry(tensor dimension, mesh dimensions)
    for (i64 m : spec_integers(entry.as_object().args.at(1)))
      if (m >= 0 && m < static_cast<i64>(s.placements.size()) && s.shard_order.size() < s.placements.size())
        s.shard_order.push_back(static_cast<int>(m));
  }
  // torch before 2.10 has no such field, and means an order by strided shards.
  const PickleValue strided_is_order = spec_field(*o, "use_strided_shard_as_shard_order");
  s.order_is_recorded = strided_is_order.is(Kind::kBool) && !strided_is_order.as_bool();
  return s;
}

std::string to_string(const TorchSharding& s) {
  if (s.boxes && s.boxes->all.empty()) return cat("boxes of ", dims_to_string(s.global));
  if (s.boxes)
    return cat("ShardedTensor ", dims_to_string(s.global), " of ",
               counted(std::ssize(s.boxes->all), "shard"));
  std::string out;
  for (const TorchPlacement& p : s.placements) {
    if (!out.empty()) out += ", ";
    switch (p.kind) {
      case Placement::kReplicate:
        out += "Replicate";
        break;
      case Placement::kPartial:
        out += "Partial";
        break;
      case Placement::kShard:
        out += cat("Shard(", p.dim, ")");
        break;
      case Placement::kStridedShard:
        out += cat("StridedShard(", p.dim, ", in ", counted(p.blocks, "block"), ")");
        break;
    }
  }
  out += cat(" over a mesh of ", dims_to_string(s.mesh->sizes));
  if (std::ranges::is_sorted(s.shard_order)) return out;
  return cat(out, ", cut in the order of its dimensions ",
             dims_to_string(std::vector<i64>(s.shard_order.begin(), s.shard_order.end())));
}

}  // namespace mckpt::impl
