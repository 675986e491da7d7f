// Three kinds of files, each with its own source of facts.
#include "convert/open/shard_facts.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/keys/cut_by_name.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/value.h"
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
  return out.empty() ? "whole" : out;
}

// The tensor as its chunks have it.
ShardTensor of_chunks(const Store& store, i64 t) {
  ShardTensor out{.tensor = t, .whole = vector(store.dims(t))};
  if (store.chunk_count(t) == 0) return out;
  const Chunk first = store.chunk(t, 0);
  out.local = local_shape(store, t).value_or(vector(first.sizes));
  out.offsets = vector(first.offsets);
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

std::optional<ShardFacts> of_torch_file(const TorchStore& store) {
  ShardFacts out;
  const TorchSharding* usual = nullptr;
  for (i64 t = 0; t < store.tensor_count() && !usual; t++)
    if (const TorchSharding* s = store.sharding(t); s && s->mesh) usual = s;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    ShardTensor& tensor = out.tensors.emplace_back(of_chunks(store, t));
    const TorchSharding* s = store.sharding(t);
    if (s == nullptr) continue;
    tensor.placements = placements_of(*s, usual);
    if (out.rank < 0) out.rank = s->writer(), out.ranks = s->least_ranks();
    if (s->mesh && !has_place(*s, tensor.local)) tensor.offsets.reset();
  }
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

// ---- files of Megatron's ranks

// The numbers in "mp_rank_01_003", the folder of the file.
std::vector<i64> folder_numbers(const std::string& path) {
  constexpr std::string_view kFront = "mp_rank_";
  std::vector<i64> out;
  const std::size_t at = path.rfind(kFront);
  if (at == path.npos) return out;
  const char* p = path.data() + at + kFront.size();
  const char* end = path.data() + path.size();
  for (i64 n; p < end; p++) {
    auto [next, error] = std::from_chars(p, end, n);
    if (error != std::errc()) break;
    out.push_back(n);
    p = next;
    if (p == end || *p != '_') break;
  }
  return out;
}

// None in the args is 0 here, and means the default.
i64 size_of(const std::optional<i64>& said, i64 otherwise) {
  return said.value_or(0) > 0 ? *said : otherwise;
}

// Megatron names the folder by the tensor-parallel rank, then the stage and the expert-parallel rank where
// there is more than one.
std::vector<ShardAxis> axes_of_folder(const std::string& path, const RunSizes& sizes) {
  std::vector<ShardAxis> axes;
  const std::vector<i64> numbers = folder_numbers(path);
  auto add = [&](const char* name, i64 size, bool always) {
    if (size <= 1 && !always) return;
    axes.push_back({name, size, axes.size() < numbers.size() ? numbers[axes.size()] : -1});
  };
  add("tp", size_of(sizes.tensor_ranks, 1), true);
  add("pp", size_of(sizes.pipeline_stages, 1), false);
  add("ep", size_of(sizes.expert_ranks, 1), false);
  return axes;
}

// The name of the module's parameter: behind "model.", "model0." and wrappers.
std::string_view parameter_of(std::string_view name) {
  std::size_t dot = name.find('.');
  return name.starts_with("model") && dot != name.npos ? name.substr(dot + 1) : std::string_view();
}

std::optional<ShardFacts> of_megatron_file(const TorchStore& store) {
  std::shared_ptr<const PickleValue> args;
  try {
    args = args_of(store);
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
  }
  if (!args) return std::nullopt;
  const RunSizes sizes = run_sizes(*args);
  const i64 tp = size_of(sizes.tensor_ranks, 1);
  ShardFacts out{.mesh = axes_of_folder(store.root(), sizes)};
  if (tp == 1 && out.mesh.size() == 1) return std::nullopt;
  const i64 at = out.mesh[0].at;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    ShardTensor& tensor = out.tensors.emplace_back(ShardTensor{.tensor = t, .local = vector(store.dims(t))});
    const std::string_view name = parameter_of(store.name(t));
    const std::optional<int> cut = cut_by_name(name);
    const bool expert = name.find(".experts.") != name.npos;
    const i64 parts = expert ? size_of(sizes.expert_tensor_ranks, tp) : tp;
    if (name.empty() || !cut || *cut >= std::ssize(tensor.local)) continue;
    tensor.whole = tensor.local;
    tensor.placements = *cut < 0 || parts == 1 ? "Replicate" : cat("Shard(", *cut, ")");
    tensor.offsets.emplace(tensor.local.size());
    if (*cut < 0 || parts == 1) continue;
    (*tensor.whole)[*cut] *= parts;
    if (at < 0 || (expert && parts != tp))
      tensor.offsets.reset();
    else
      (*tensor.offsets)[*cut] = at * tensor.local[*cut];
  }
  return out;
}

}  // namespace

std::optional<ShardFacts> shard_facts(const Store& store) {
  if (const Store* folder = all_files_of(store)) return of_dcp_file(store, *folder);
  const auto* torch = dynamic_cast<const TorchStore*>(&store);
  if (torch == nullptr || store.files().size() != 1) return std::nullopt;
  if (is_lone_shard(store)) return of_torch_file(*torch);
  return of_megatron_file(*torch);
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
