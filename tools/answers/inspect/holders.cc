// Draws who holds what as a map: a line a tensor, a column a rank, and how full the square is.
//
//   tensor                  shape      r0 r1 r2 r3     coverage
//   ...linear_fc1.weight_w  [16, 16]   ## ## ## ##     full, 4 x 4 rows
//   ...linear_proj.weight   [16, 32]   ## ## #. ..     full, uneven rows: 6 6 4
//   ...layer_norm_weight    [16]       ## .. .. ..     full, in one piece
//
// A format without ranks has a column for each file. Over 64 columns, neighbours share one. The check of
// coverage is the one of `verify` (io/store/cover.h), for the tensors shown.
#include "tools/answers/inspect/holders.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/cover.h"
#include "io/store/missing_file.h"
#include "io/store/store.h"
#include "tools/answers/inspect/shard.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// The most columns of the map; with more ranks, neighbouring ranks share a column.
constexpr i64 kMostColumns = 64;

// The signs of one square, in both sets of characters. Each is two cells wide.
struct Signs {
  const char *whole, *part, *none, *lost, *twice;
};
constexpr Signs kUnicodeSigns = {"██", "█░", "··", "!!", "××"};
constexpr Signs kAsciiSigns = {"##", "#.", "..", "!!", "xx"};

// The columns: ranks where the format knows them, otherwise files.
struct Columns {
  explicit Columns(const Store& store) {
    by_rank = store.ranks() > 1;
    holders = by_rank ? store.ranks() : static_cast<i64>(store.files().size());
    per_column = std::max<i64>(1, ceil_div(holders, kMostColumns));
    count = ceil_div(holders, per_column);
  }
  i64 of(const Chunk& c) const {
    i64 holder = by_rank ? c.rank : c.file;
    return holder < 0 || holder >= holders ? -1 : holder / per_column;
  }
  bool by_rank;
  i64 holders, per_column, count;
};

// The drawing of one tensor. `twice` marks columns that hold items which another chunk holds too.
struct Row {
  std::vector<i64> items;  // by column
  std::vector<bool> twice;
  std::string coverage;
  bool faulty = false;
};

// True if the chunk has the full size of the tensor in every dimension but the first.
bool whole_rows(const Chunk& c, std::span<const i64> dims) {
  return !dims.empty() && std::ranges::equal(c.sizes.subspan(1), dims.subspan(1));
}

// "8 x 1024 rows", or "uneven rows: 1280 1280 512"; boxes that are not whole rows are only counted.
std::string share_text(const std::vector<Chunk>& chunks, std::span<const i64> dims) {
  std::vector<i64> rows;
  bool all_rows = true;
  for (const Chunk& c : chunks) {
    all_rows &= whole_rows(c, dims);
    if (!c.sizes.empty()) rows.push_back(c.sizes[0]);
  }
  if (chunks.size() == 1) return "in one piece";
  if (!all_rows) return cat(chunks.size(), " boxes");
  if (std::all_of(rows.begin(), rows.end(), [&](i64 n) { return n == rows[0]; }))
    return cat(rows.size(), " x ", rows[0], " rows");
  std::string out = "uneven rows:";
  for (std::size_t i = 0; i < rows.size() && i < 8; i++) out += cat(" ", rows[i]);
  return rows.size() > 8 ? out + " ..." : out;
}

// Describes the faults of the tensor's cover and marks the columns that hold something twice. pre: `chunks`
// are those that are not replicas.
std::string fault_text(const Columns& columns, const std::vector<Chunk>& chunks, std::vector<BoxFault> faults,
                       Row& row) {
  if (faults.empty()) return "";
  for (const BoxFault& f : faults) {
    if (f.kind != BoxFault::Kind::kOverlap) continue;
    for (i64 box : {f.first, f.second})
      if (i64 column = columns.of(chunks[box]); column >= 0) row.twice[column] = true;
  }
  row.faulty = true;
  return to_string(faults[0]);
}

// Looks at every chunk of the tensor twice: once for the squares, once for the check of coverage. Replicas
// fill squares but are not part of the cover.
Row make_row(const Store& store, const Columns& columns, i64 tensor) {
  Row row{std::vector<i64>(static_cast<std::size_t>(columns.count)),
          std::vector<bool>(static_cast<std::size_t>(columns.count)), "", false};
  std::vector<Chunk> chunks, filled;
  bool lost = false;
  for (i64 i = 0; i < store.chunk_count(tensor); i++) {
    Chunk c = store.chunk(tensor, i);
    i64 items = Shape(c.sizes).items();
    if (i64 column = columns.of(c); column >= 0) row.items[column] += items;
    if (c.replica) continue;
    chunks.push_back(c);
    if (items > 0) filled.push_back(c);
    lost |= store.files()[c.file].bytes < 0;
  }
  std::string fault = fault_text(columns, chunks, chunk_faults(store, tensor, 4), row);
  if (lost) {
    row.faulty = true;
    row.coverage = kAFileIsMissing;
  } else {
    row.coverage = !fault.empty()   ? fault
                   : filled.empty() ? "no items"
                                    : cat("full, ", share_text(filled, store.dims(tensor)));
  }
  return row;
}

// The squares of a line. Full is what the column with most items has, so an even sharding is drawn full
// everywhere.
std::string cells(const Row& row, const Signs& signs) {
  i64 most = row.items.empty() ? 0 : *std::max_element(row.items.begin(), row.items.end());
  std::string out;
  for (std::size_t i = 0; i < row.items.size(); i++) {
    const char* sign = row.twice[i]           ? signs.twice
                       : row.items[i] == 0    ? signs.none
                       : row.items[i] == most ? signs.whole
                                              : signs.part;
    out += cat(i ? " " : "", sign);
  }
  return row.faulty ? cat(out, " ", signs.lost) : out;
}

std::string column_titles(const Columns& columns) {
  std::string out;
  for (i64 i = 0; i < columns.count; i++) {
    std::string name = cat(columns.by_rank ? "r" : "f", i * columns.per_column);
    // A column is two cells wide: wider numbers are printed for every fourth column, where there is room.
    bool room = name.size() <= 2 || i % 4 == 0;
    name = room ? name : "";
    std::size_t width = static_cast<std::size_t>(i * 3);
    if (out.size() < width) out += std::string(width - out.size(), ' ');
    if (room) out += name;
  }
  return out;
}

}  // namespace

void write_holders(Output& out, const Store& store, std::span<const i64> tensors, const ShardFacts* facts) {
  const Signs& signs = out.unicode() ? kUnicodeSigns : kAsciiSigns;
  Columns columns(store);
  if (!tensors.empty() && facts) return write_shard_map(out, store, tensors, *facts);
  auto is_faulty = [&](i64 t) { return make_row(store, columns, t).faulty; };
  if (columns.holders <= 1 && std::ranges::none_of(tensors, is_faulty)) {
    out.line("");
    return out.line(
        tensors.empty()
            ? "there is nothing to map: the checkpoint has no tensors"
            : "there is nothing to map: one file of one rank has every tensor whole; mckpt ls lists them with their places");
  }
  TextTable table({{"tensor", Align::kLeft},
                   {"shape", Align::kLeft},
                   {column_titles(columns), Align::kLeft},
                   {"coverage", Align::kLeft, true}});
  i64 faulty = 0;
  for (i64 t : tensors) {
    Row row = make_row(store, columns, t);
    faulty += row.faulty;
    table.row({escaped(store.name(t)), dims_to_string(store.dims(t)), cells(row, signs), row.coverage});
  }
  out.line("");
  table.write(out);
  out.line("");
  out.line(cat(signs.whole, " largest share  ", signs.part, " less  ", signs.none, " nothing  ", signs.lost,
               " items missing or wrong  ", signs.twice, " stored twice"));
  if (!columns.by_rank) out.line("columns are files, in the order of mckpt inspect --json");
  if (columns.per_column > 1) out.line(cat("each column is ", columns.per_column, " ranks"));
  if (faulty > 0)
    out.line(cat(faulty, faulty == 1 ? " tensor is" : " tensors are",
                 " not covered exactly once: mckpt verify ", escaped(store.root(), 4096)));
}

}  // namespace mckpt::impl
