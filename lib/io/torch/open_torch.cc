// Opens one torch file as a store. A file that one of several ranks wrote has pieces of tensors; alone, it
// shows the whole tensors with the piece that is there.
#include "core/base/error.h"
#include "io/file/file.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

// Adds the piece of a DTensor that the file has. Returns whether its place is known: it follows from the rank if the
// cut is even, and from nothing in the file if it is uneven.
bool add_piece(TorchStore& store, i32 file, i64 row, const TorchSharding& sharding) {
  const TorchTable& table = store.table(file);
  std::optional<std::vector<i64>> offsets = even_offsets(sharding, sharding.mesh->rank, table.dims(row));
  TorchStore::Piece piece{file, row, offsets ? *offsets : std::vector<i64>(table.dims(row).size(), 0)};
  store.add_sharded(table.name(row), sharding.global, {&piece, 1});
  return offsets.has_value();
}

// Adds all tensors of the file, and a warning if it is one of several ranks' files.
void add_tensors(TorchStore& store, i32 file) {
  const TorchTable& table = store.table(file);
  std::vector<std::string_view> shards, unplaced;
  const TorchSharding* any = nullptr;
  for (i64 row = 0; row < table.size(); row++) {
    const TorchSharding* sharding = table.sharding(row);
    if (sharding == nullptr) {
      store.add_tensor(file, row);
      continue;
    }
    if (!add_piece(store, file, row, *sharding)) unplaced.push_back(table.name(row));
    if (!std::ranges::equal(sharding->global, table.dims(row)))
      shards.push_back(table.name(row)), any = sharding;
  }
  if (any == nullptr) return;
  std::string who = any->mesh->rank >= 0 ? cat("rank ", any->mesh->rank) : "one rank";
  std::string message = cat("the file has only the pieces of ", who, " of ", any->mesh->ranks.size(), ", of ",
                            shards.size(), " tensors: ", listed(shards, 3), " (", to_string(*any), ")");
  if (!unplaced.empty())
    message +=
        cat("; uneven pieces do not say where in the tensor they belong, and are shown at its beginning: ",
            listed(unplaced, 3));
  store.add_finding({.code = Code::kShardAlone,
                     .file = store.root(),
                     .message = message,
                     .help = "open the folder that holds the files of all ranks",
                     .warning = true});
}

}  // namespace

std::unique_ptr<Store> open_torch_file(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&]() -> std::unique_ptr<Store> {
    InputFile file(path, opening);
    TorchFile torch = read_torch_file(file);
    auto store = std::make_unique<TorchStore>(path, torch.format, opening);
    for (auto& [name, value] : torch.facts) store->add_fact(name, std::move(value));
    i32 index = store->add_file("", file.size(), std::move(torch));
    add_tensors(*store, index);
    return store;
  });
}

}  // namespace mckpt::impl
