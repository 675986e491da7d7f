// A folder of several torch files, as one store. Three kinds:
//
//   model_world_size_4_rank_0.pt ...    one file for each rank: pieces of DTensors become whole tensors,
//                                       in the order of their mesh; plain tensors that all ranks have
//                                       alike become one
//   pytorch_model-00001-of-00002.bin    shards of one state dict, each with tensors of its own
//   model.pt, optimizer.pt              independent files; tensors are named FILE:NAME
#include <algorithm>
#include <map>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/file/folder.h"
#include "io/pickle/render.h"
#include "io/store/open/torch_names.h"
#include "io/torch/files.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

// The files of one group of ranks, joined tensor by tensor.
class RankGroup {
 public:
  RankGroup(TorchStore& store, std::string prefix) : store_(store), prefix_(std::move(prefix)) {}

  // Takes over a file of a rank. pre: the file could be read; ranks ascend.
  void add(OpenedTorchFile& o, i64 rank) {
    i32 file = store_.add_file(o.path, o.bytes, std::move(*o.file), cat(prefix_, "rank_", rank, ":"),
                               static_cast<i32>(rank));
    const TorchTable& table = store_.table(file);
    for (i64 row = 0; row < table.size(); row++) {
      auto [it, is_new] = by_name_.try_emplace(std::string(table.name(row)), names_.size());
      if (is_new) names_.push_back({std::string(table.name(row)), {}});
      names_[it->second].holders.push_back({rank, file, row});
    }
  }

  // DTensors are joined by their placements; a plain tensor is one if all `ranks` have it alike, else one
  // of each rank, with the rank in its name.
  void join(i64 ranks) {
    for (const Name& n : names_) {
      if (n.sharding(store_) != nullptr)
        join_pieces(n);
      else if (alike(n, ranks))
        join_copies(n);
      else
        for (const Holder& h : n.holders)
          store_.add_tensor(h.file, h.row, cat(prefix_, "rank_", h.rank, ":"));
    }
  }

 private:
  // A rank that has the tensor, and where.
  struct Holder {
    i64 rank;
    i32 file;
    i64 row;
  };
  struct Name {
    std::string name;
    std::vector<Holder> holders;
    const TorchSharding* sharding(const TorchStore& store) const {
      return store.table(holders[0].file).sharding(holders[0].row);
    }
  };

  const TorchTable& table(const Holder& h) const { return store_.table(h.file); }

  // Adds the tensor that the pieces make up. If they do not fit together, adds a finding instead: nothing is guessed.
  void join_pieces(const Name& n) {
    const TorchSharding& sharding = *n.sharding(store_);
    std::string wrong;
    std::vector<TorchPiece> pieces;
    for (const Holder& h : n.holders) {
      const TorchSharding* other = table(h).sharding(h.row);
      if (other == nullptr || !alike(*other, sharding) ||
          table(h).dtype(h.row) != table(n.holders[0]).dtype(n.holders[0].row))
        wrong = cat("rank ", h.rank, " describes the tensor differently than rank ", n.holders[0].rank);
      pieces.push_back({.rank = h.rank, .sizes = table(h).dims(h.row)});
    }
    if (wrong.empty()) wrong = place_pieces(sharding, pieces);
    if (wrong.empty()) {
      std::vector<TorchStore::Piece> placed;
      for (std::size_t i = 0; i < pieces.size(); i++)
        placed.push_back({n.holders[i].file, n.holders[i].row, pieces[i].offsets, pieces[i].replica});
      store_.add_sharded(cat(prefix_, n.name), sharding.global, placed);
      if (i64 rank = unlike_replica(n, pieces); rank >= 0)
        wrong = cat("rank ", rank, " has other values of the tensor than the rank of which it has a copy");
      else if (!covered(sharding, pieces))
        wrong = cat("the pieces of ", pieces.size(),
                    " ranks leave out items of the tensor: a file is missing, or a piece is too short");
    }
    if (!wrong.empty())
      store_.add_finding({.code = Code::kBadShards,
                          .tensor = cat(prefix_, n.name),
                          .message = cat(wrong, " (", to_string(sharding), ")")});
  }

  // Whether both describe the same layout; the rank that wrote it does not matter.
  static bool alike(const TorchSharding& a, const TorchSharding& b) {
    return a.global == b.global && a.placements == b.placements && a.shard_order == b.shard_order &&
           a.mesh->sizes == b.mesh->sizes && a.mesh->ranks == b.mesh->ranks;
  }

  // Whether the pieces are the whole tensor. pre: place_pieces() accepted them, so none overlap and
  // counting items is enough.
  static bool covered(const TorchSharding& sharding, std::span<const TorchPiece> pieces) {
    i64 items = 0;
    for (const TorchPiece& p : pieces)
      if (!p.replica) items += Shape(p.sizes).items();
    return items == Shape(sharding.global).items();
  }

  // The first rank whose copy of a piece has another checksum than the piece; -1: none.
  i64 unlike_replica(const Name& n, std::span<const TorchPiece> pieces) const {
    std::map<std::vector<i64>, std::optional<u32>> sums;  // by where the pieces are
    auto sum = [&](std::size_t i) { return store_.checksum(n.holders[i].file, n.holders[i].row); };
    for (std::size_t i = 0; i < pieces.size(); i++)
      if (!pieces[i].replica && Shape(pieces[i].sizes).items() > 0) sums[pieces[i].offsets] = sum(i);
    for (std::size_t i = 0; i < pieces.size(); i++) {
      auto first = pieces[i].replica ? sums.find(pieces[i].offsets) : sums.end();
      if (first == sums.end() || !first->second) continue;
      if (std::optional<u32> own = sum(i); own && own != first->second) return pieces[i].rank;
    }
    return -1;
  }

  // Whether every rank has the tensor, with the same bytes. Without checksums the bytes are not
  // compared, and the answer is no.
  bool alike(const Name& n, i64 ranks) const {
    if (static_cast<i64>(n.holders.size()) != ranks) return false;
    const Holder& a = n.holders[0];
    for (const Holder& b : n.holders) {
      if (table(b).sharding(b.row) != nullptr || table(a).dtype(a.row) != table(b).dtype(b.row) ||
          !std::ranges::equal(table(a).dims(a.row), table(b).dims(b.row)) ||
          !std::ranges::equal(table(a).strides(a.row), table(b).strides(b.row)))
        return false;
      if (table(a).extent_bytes(a.row) == 0) continue;
      std::optional<u32> crc = store_.checksum(a.file, a.row);
      if (!crc || crc != store_.checksum(b.file, b.row)) return false;
    }
    return true;
  }

  // One tensor; the first rank's is used, the others are replicas.
  void join_copies(const Name& n) {
    std::span<const i64> dims = table(n.holders[0]).dims(n.holders[0].row);
    std::vector<TorchStore::Piece> pieces;
    for (const Holder& h : n.holders)
      pieces.push_back({h.file, h.row, std::vector<i64>(dims.size(), 0), !pieces.empty()});
    store_.add_sharded(cat(prefix_, n.name), dims, pieces);
  }

  TorchStore& store_;
  std::string prefix_;
  std::vector<Name> names_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

// "model_..._rank_N.pt" and "optim_..._rank_N.pt" are two groups; names of groups other than "model" go in
// front of their tensors.
void add_rank_groups(TorchStore& store, std::vector<OpenedTorchFile>& files) {
  std::map<std::string, std::map<i64, OpenedTorchFile*>> groups;
  i64 world = -1, ranks = 0;
  for (OpenedTorchFile& o : files) {
    RankName n = *rank_name(o.path);
    if (auto [there, added] = groups[n.group].emplace(n.rank, &o); !added)
      store.add_finding(
          {.code = Code::kBadShards,
           .file = o.path,
           .message = cat("the file is of rank ", n.rank, ", and so is ", there->second->path)});
    world = std::max(world, n.world);
  }
  for (auto& [name, members] : groups) {
    RankGroup group(store, groups.size() == 1 || name == "model" ? "" : name + ":");
    for (auto& [rank, o] : members)
      if (o->file) group.add(*o, rank);
    group.join(static_cast<i64>(members.size()));
    ranks = std::max(ranks, static_cast<i64>(members.size()));
    const i64 expected = std::max(world, members.rbegin()->first + 1);
    if (static_cast<i64>(members.size()) != expected)
      store.add_finding({.code = Code::kShardMissing,
                         .message = cat("files of ", name, " are missing: ", members.size(), " of ", expected,
                                        " ranks are there")});
  }
  store.set_ranks(ranks);
}

// A tensor in two shards, and missing shards by the "-of-N" of the names, are findings.
void add_shards(TorchStore& store, std::vector<OpenedTorchFile>& files) {
  std::map<std::string, std::string, std::less<>> file_of;
  for (OpenedTorchFile& o : files) {
    if (!o.file) continue;
    i32 file = store.add_file(o.path, o.bytes, std::move(*o.file));
    for (i64 row = 0; row < store.table(file).size(); row++) {
      store.add_tensor(file, row);
      auto [it, is_new] = file_of.try_emplace(std::string(store.table(file).name(row)), o.path);
      if (!is_new)
        store.add_finding({.code = Code::kIndexMismatch,
                           .tensor = it->first,
                           .file = o.path,
                           .message = cat("the tensor is in ", it->second, " as well")});
    }
  }
  // Each set by the part of the names that its files share.
  std::map<std::pair<std::string, i64>, i64> sets;
  for (const OpenedTorchFile& o : files)
    sets[{
        o.path.substr(0, o.path.rfind("-of-")).substr(0, o.path.find_last_of('-', o.path.rfind("-of-") - 1)),
        shard_count(o.path)}]++;
  for (const auto& [set, there] : sets)
    if (there != set.second)
      store.add_finding({.code = Code::kShardMissing,
                         .message = cat("shards of ", escaped(set.first), " are missing: ", there, " of ",
                                        set.second, " are there")});
}

// Files that have nothing to do with each other.
void add_separate(TorchStore& store, std::vector<OpenedTorchFile>& files) {
  for (OpenedTorchFile& o : files) {
    if (!o.file) continue;
    std::string prefix = o.path + ":";
    i32 file = store.add_file(o.path, o.bytes, std::move(*o.file), prefix);
    for (i64 row = 0; row < store.table(file).size(); row++) store.add_tensor(file, row, prefix);
  }
}

}  // namespace

std::unique_ptr<Store> open_torch_folder(const std::string& path, const OpenOptions& opening) {
  Folder folder(path, opening);
  std::vector<std::string> names, ranked, shards;
  for (const FolderEntry& e : folder.entries()) {
    if (e.folder || !has_torch_suffix(e.name)) continue;
    names.push_back(e.name);
    if (rank_name(e.name)) ranked.push_back(e.name);
    if (shard_count(e.name) > 0) shards.push_back(e.name);
  }
  // Beside the files of ranks or shards there may be others (arguments of the trainer), which are not the
  // model.
  std::vector<std::string>& chosen = !ranked.empty() ? ranked : !shards.empty() ? shards : names;
  auto store = std::make_unique<TorchStore>(path,
                                            !ranked.empty()   ? Format::kTorchRanks
                                            : !shards.empty() ? Format::kTorchShards
                                                              : Format::kTorchFiles,
                                            opening);
  for (const std::string& n : names)
    if (std::find(chosen.begin(), chosen.end(), n) == chosen.end())
      store->add_finding({.code = Code::kUnusedFile,
                          .file = n,
                          .message = "the file is not of a rank or a shard, so it is not part of the model",
                          .warning = true});
  std::vector<OpenedTorchFile> files = open_torch_files(folder, chosen);
  for (const OpenedTorchFile& o : files)
    if (o.problem) store->add_finding(*o.problem);
  if (!ranked.empty())
    add_rank_groups(*store, files);
  else if (!shards.empty())
    add_shards(*store, files);
  else
    add_separate(*store, files);
  return store;
}

}  // namespace mckpt::impl
