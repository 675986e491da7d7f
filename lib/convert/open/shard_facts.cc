// Three kinds of files, each with its own source of facts.
#include "convert/open/shard_facts.h"

#include <algorithm>
#include <charconv>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/megatron_shard.h"
#include "core/base/text.h"
#include "io/store/lone_shard.h"
#include "io/store/one_file.h"
#include "io/store/store.h"
#include "io/torch/placing.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

std::vector<i64> vector(std::span<const i64> numbers) { return {numbers.begin(), numbers.end()}; }

// The dimensions of which a box has a part: "Shard(0)", "Shard(0), Shard(1)"; "whole" of all of a tensor.
std::string cuts_of_box(std::span<const i64> sizes, std::span<const i64> dims) {
  std::string out;
  for (std::size_t d = 0; d < dims.size(); d++)
    if (sizes[d] != dims[d]) out += cat(out.empty() ? "" : ", ", "Shard(", d, ")");
  return out.empty() ? std::string(kWholeHere) : out;
}

// The tensor as its chunks have it.
ShardTensor of_chunks(const Store& store, i64 t) {
  ShardTensor out{.tensor = t, .whole = vector(store.dims(t))};
  if (store.chunk_count(t) == 0) return out;
  const Chunk first = store.chunk(t, 0);
  out.local = local_shape(store, t).value_or(vector(first.sizes));
  out.offsets = local_offsets(store, t);
  out.placements = cuts_of_box(out.local, store.dims(t));
  return out;
}

// ---- files of DTensors and ShardedTensors

// "Shard(0)" without the mesh, which is said once.
std::string placements_of(const TorchSharding& sharding, const TorchSharding* usual) {
  const std::string text = to_string(sharding);
  const bool same = usual && sharding.mesh && usual->mesh && sharding.mesh->sizes == usual->mesh->sizes;
  return same ? text.substr(0, text.find(" over a mesh")) : text;
}

// Whether the rule of the placements says where the piece is.
bool has_place(const TorchSharding& s, std::span<const i64> local) {
  return std::ranges::equal(local, s.global) || even_stretches(s, s.mesh->rank, local).has_value();
}

// The sharding over the most ranks: others are over parts of the same mesh.
const TorchSharding* widest(const TorchStore& store) {
  const TorchSharding* out = nullptr;
  auto ranks = [](const TorchSharding& s) { return s.mesh->ranks.size(); };
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (const TorchSharding* s = store.sharding(t); s && s->mesh && (!out || ranks(*s) > ranks(*out)))
      out = s;
  return out;
}

// The number in "model_world_size_8_rank_1.pt".
std::optional<i64> world_of_name(const std::string& path) {
  constexpr std::string_view kFront = "_world_size_";
  const std::size_t at = path.find(kFront, path.rfind('/') + 1);
  i64 n = 0;
  if (at == path.npos) return std::nullopt;
  const char* begin = path.data() + at + kFront.size();
  const auto [end, error] = std::from_chars(begin, path.data() + path.size(), n);
  return error == std::errc() && n > 0 ? std::optional(n) : std::nullopt;
}

std::optional<ShardFacts> of_torch_file(const TorchStore& store) {
  ShardFacts out;
  const TorchSharding* usual = widest(store);
  for (i64 t = 0; t < store.tensor_count(); t++) {
    ShardTensor& tensor = out.tensors.emplace_back(of_chunks(store, t));
    const TorchSharding* s = store.sharding(t);
    if (s == nullptr) continue;
    const bool copied = std::ranges::all_of(
        s->placements, [](const TorchPlacement& p) { return p.kind == TorchPlacement::Kind::kReplicate; });
    if (!copied || tensor.local != tensor.whole) tensor.placements = placements_of(*s, usual);
    if (out.rank < 0) out.rank = s->writer();
    out.ranks = std::max(out.ranks, s->least_ranks());
    if (s->mesh && !has_place(*s, tensor.local)) tensor.offsets.reset();
  }
  out.ranks = world_of_name(store.root()).value_or(out.ranks > out.rank ? out.ranks : -1);
  if (usual) {
    const std::optional<std::vector<i64>> at = mesh_place(*usual->mesh, usual->mesh->rank);
    for (std::size_t d = 0; d < usual->mesh->sizes.size(); d++)
      out.mesh.push_back({"", usual->mesh->sizes[d], at ? (*at)[d] : -1});
  }
  return out;
}

// ---- .distcp files

std::optional<ShardFacts> of_dcp_file(const Store& store, const Store& folder) {
  ShardFacts out{.ranks = folder.ranks()};
  for (i64 t = 0; t < store.tensor_count(); t++) {
    out.tensors.push_back(of_chunks(store, t));
    out.rank = store.chunk(t, 0).rank;
  }
  const std::optional<PackedBy> by = packed_by(folder);
  if (!by || !by->fits() || out.rank < 0) return out;
  const Grid& g = by->guess.grid;
  const Cell cell = cell_of(g, out.rank);
  out.ranks = g.world();
  if (g.tp > 1) out.mesh.push_back({"tp", g.tp, cell.tp});
  const FsdpPlace place = dense_place(g, cell);
  if (g.hsdp > 1) out.mesh.push_back({"hsdp", g.hsdp, place.outer});
  out.mesh.push_back({"dp", g.dp / g.hsdp, place.inner});
  if (g.ep > 1) out.mesh.push_back({"ep", g.ep, cell.ep});
  return out;
}

}  // namespace

std::optional<ShardFacts> shard_facts(const Store& store) {
  if (const Store* folder = all_files_of(store)) return of_dcp_file(store, *folder);
  const auto* torch = dynamic_cast<const TorchStore*>(&store);
  if (torch == nullptr || store.files().size() != 1) return std::nullopt;
  if (is_lone_shard(store)) return of_torch_file(*torch);
  return shard_of_megatron(*torch);
}

std::string to_string(const ShardFacts& facts) {
  std::string out = facts.rank < 0 ? "one rank" : cat("rank ", facts.rank);
  if (facts.ranks > 0) out += cat(" of ", facts.ranks);
  if (facts.mesh.empty()) return out;
  const bool named = !facts.mesh[0].name.empty();
  std::string sizes, places;
  for (const ShardAxis& a : facts.mesh) {
    sizes += named ? cat(" ", a.name, "=", a.size) : cat(sizes.empty() ? " [" : ", ", a.size);
    const std::string at = a.at < 0 ? "?" : cat(a.at);
    places +=
        named ? cat(places.empty() ? " " : ", ", a.name, " ", at) : cat(places.empty() ? " [" : ", ", at);
  }
  return cat(out, "; mesh", sizes, named ? "" : "]", " at", places, named ? "" : "]");
}

}  // namespace mckpt::impl
