// A DTensor's piece is placed if its cut is even, a ShardedTensor's shards always.
#include "io/torch/lone_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/store/lone_shard.h"
#include "io/store/open/format_ids.h"
#include "io/torch/flat_pieces.h"
#include "io/torch/placing.h"
#include "io/torch/store.h"

namespace mckpt::impl {
namespace {

// Adds the tensor that begins with this row. Returns the number of its rows: a ShardedTensor may have
// several.
i64 add_shards(TorchStore& store, i32 file, i64 row, std::string_view prefix) {
  const TorchTable& table = store.table(file);
  std::vector<TorchStore::Piece> pieces;
  for (i64 r = row; r < table.size() && table.name(r) == table.name(row); r++)
    pieces.push_back({file, r, table.sharding(r)->offsets});
  store.add_sharded(cat(prefix, table.name(row)), table.sharding(row)->global, pieces);
  return std::ssize(pieces);
}

// Adds the piece of a DTensor that the file has. Returns whether its place is known: it follows from the rank
// if the cut is even, and from nothing in the file if it is uneven.
bool add_piece(TorchStore& store, i32 file, i64 row, std::string_view prefix, const TorchSharding& sharding) {
  const TorchTable& table = store.table(file);
  const std::span<const i64> dims = table.dims(row);
  std::optional<TorchStretches> stretches = even_stretches(sharding, sharding.mesh->rank, dims);
  TorchPiece piece{.rank = sharding.mesh->rank, .sizes = dims, .offsets = std::vector<i64>(dims.size(), 0)};
  if (stretches) place_at(piece, std::move(*stretches));
  store.add_sharded(cat(prefix, table.name(row)), sharding.global, store_pieces(piece, file, row));
  return stretches.has_value();
}

// Adds the flat pieces of a rank and its other tensors, which are whole.
void add_flat_file(TorchStore& store, i32 file, std::string_view prefix, FlatUnits& units) {
  const TorchTable& table = store.table(file);
  const TorchSharding* flat = nullptr;
  std::vector<std::string_view> pieces;
  for (i64 row = 0; row < table.size(); row++) {
    if (is_flat_parameter(table.name(row), table.sharding(row))) {
      flat = table.sharding(row);
      continue;
    }
    if (units.place(file, table, row)) pieces.push_back(table.name(row));
    store.add_tensor(file, row, prefix);
  }
  const std::string path = file_path(store, file);
  with_file(path, [&] { units.refuse_nameless(); });
  store.set_format(Format::kTorchFlat);
  store.add_fact("flat parameters", cat(units.size()));
  if (flat->least_ranks() <= 1) return;
  store.add_finding({.code = Code::kShardAlone,
                     .file = path,
                     .message = cat("the file has only the flat pieces of rank ", flat->writer(), " of ",
                                    flat->least_ranks(), " (LOCAL_STATE_DICT), of ",
                                    counted(std::ssize(pieces), "tensor"), ": ", listed(pieces, 3)),
                     .help = kNameAllRanks,
                     .warning = true});
}

}  // namespace

void add_lone_file(TorchStore& store, i32 file, std::string_view prefix) {
  const TorchTable& table = store.table(file);
  const std::string& path = store.files()[file].path;
  FlatUnits units;
  for (i64 row = 0; row < table.size(); row++)
    if (is_flat_parameter(table.name(row), table.sharding(row)))
      if (std::string wrong = units.add(file, table, row); !wrong.empty())
        store.add_finding(
            {.code = Code::kBadShards, .tensor = cat(prefix, table.name(row)), .message = std::move(wrong)});
  if (units.size() > 0) return add_flat_file(store, file, prefix, units);
  std::vector<std::string_view> shards, unplaced;
  const TorchSharding* any = nullptr;
  for (i64 row = 0, rows = 1; row < table.size(); row += rows) {
    rows = 1;
    const TorchSharding* sharding = table.sharding(row);
    if (sharding == nullptr) {
      store.add_tensor(file, row, prefix);
      continue;
    }
    if (!std::ranges::equal(sharding->global, table.dims(row)))
      shards.push_back(table.name(row)), any = sharding;
    if (sharding->boxes)
      rows = add_shards(store, file, row, prefix);
    else if (!add_piece(store, file, row, prefix, *sharding))
      unplaced.push_back(table.name(row));
  }
  if (any == nullptr) return;
  std::string who = any->writer() >= 0 ? cat("rank ", any->writer()) : "one rank";
  std::string message =
      cat("the file has only the pieces of ", who, " of ", any->least_ranks(), ", of ",
          counted(std::ssize(shards), "tensor"), ": ", listed(shards, 3), " (", to_string(*any), ")");
  if (!unplaced.empty())
    message +=
        cat("; uneven pieces do not say where in the tensor they belong, and are shown at its beginning: ",
            listed(unplaced, 3));
  store.add_finding({.code = Code::kShardAlone,
                     .file = path.empty() ? store.root() : path,
                     .message = message,
                     .help = kNameAllRanks,
                     .warning = true});
}

}  // namespace mckpt::impl
