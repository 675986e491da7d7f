// Joins the pieces of tensors from the shards of all ranks.
//
//   shard-00001...: "w" [5, 4] at [0, 0]   shard-00002...: "w" [3, 4] at [5, 0]  -->   "w" [8, 4], two chunks
#include "io/safetensors/shards.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/names.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/json/json.h"
#include "io/safetensors/safetensors.h"
#include "io/safetensors/table.h"
#include "io/store/cover.h"
#include "io/store/finding.h"
#include "io/store/open/format_ids.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Piece = SafetensorsStore::Piece;

// Tensors are listed in natural order: layers.2 before layers.10.
struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const { return natural_less(a, b); }
};
using Pieces = std::map<std::string_view, std::vector<Piece>, NaturalLess>;

const std::string* sharding_info(const SafetensorsTable& table) {
  for (const auto& [key, value] : table.metadata())
    if (key == kShardingInfoKey) return &value;
  return nullptr;
}

// "shard-00003-model-..." was written by rank 2; -1 if the name does not say.
i32 rank_of(std::string_view file) {
  constexpr std::string_view kPrefix = "shard-";
  if (!file.starts_with(kPrefix)) return -1;
  i32 number = 0;
  for (char c : file.substr(kPrefix.size(), 5))
    number = c >= '0' && c <= '9' ? number * 10 + (c - '0') : -1000000;
  return number > 0 ? number - 1 : -1;
}

// Throws kBadShards if the entry has none.
std::vector<i64> saved_offsets(const JsonValue& entry) {
  const JsonValue* offsets = entry.find("saved_offsets");
  if (!offsets) throw Error(Code::kBadShards, cat(kShardingInfoKey, ": saved_offsets is missing"));
  std::vector<i64> out;
  for (const JsonValue& v : offsets->array("saved_offsets")) out.push_back(v.integer("saved_offsets"));
  return out;
}

// Where each tensor of the file begins in its global tensor; a tensor without an entry begins at 0.
NameMap<std::string, std::vector<i64>> offsets_of(const SafetensorsTable& table) {
  NameMap<std::string, std::vector<i64>> out;
  const std::string* text = sharding_info(table);
  if (!text) return out;
  JsonValue info = parse_json(*text);
  for (const JsonMember& m : info.object(kShardingInfoKey)) out.emplace(m.name, saved_offsets(m.value));
  return out;
}

// The pieces of every tensor, in the order of the files.
Pieces all_pieces(const SafetensorsStore& store) {
  Pieces pieces;
  for (i32 f = 0; f < static_cast<i32>(store.files().size()); f++) {
    const SafetensorsTable& table = store.table(f);
    const std::string& path = store.files()[f].path;
    with_file(file_path(store, f), [&] {
      auto offsets = offsets_of(table);
      for (i64 row = 0; row < table.size(); row++) {
        Piece piece{f, row, {}, rank_of(path)};
        auto found = offsets.find(std::string(table.name(row)));
        std::size_t rank = table.dims(row).size();
        piece.offsets = found == offsets.end() ? std::vector<i64>(rank, 0) : found->second;
        if (piece.offsets.size() != rank)
          throw Error(Code::kBadShards, "saved_offsets have another number of dimensions than the piece")
              .tensor(table.name(row))
              .expected(rank)
              .found(piece.offsets.size());
        pieces[table.name(row)].push_back(std::move(piece));
      }
    });
  }
  return pieces;
}

// The shape that the pieces reach to. Throws kBadShards if they cannot belong to one tensor.
std::vector<i64> global_dims(const SafetensorsStore& store, const std::vector<Piece>& pieces) {
  const SafetensorsTable& first = store.table(pieces[0].file);
  std::vector<i64> dims(pieces[0].offsets.size(), 0);
  for (const Piece& p : pieces) {
    const SafetensorsTable& table = store.table(p.file);
    if (p.offsets.size() != dims.size() || table.dtype(p.row) != first.dtype(pieces[0].row))
      throw Error(Code::kBadShards, "the pieces of the tensor differ in data type or number of dimensions")
          .file(file_path(store, p.file))
          .expected(cat(dtype_name(first.dtype(pieces[0].row)), ", ", dims.size(), " dimensions"))
          .found(cat(dtype_name(table.dtype(p.row)), ", ", p.offsets.size(), " dimensions"));
    for (std::size_t d = 0; d < dims.size(); d++)
      dims[d] = std::max(dims[d], checked_add(p.offsets[d], table.dims(p.row)[d], "the end of a piece"));
  }
  return Shape(dims), dims;
}

// Reports holes and overlaps among the pieces.
void check_cover(SafetensorsStore& store, i64 tensor, const std::vector<Piece>& pieces) {
  for (const BoxFault& fault : chunk_faults(store, tensor)) {
    const Piece& first = pieces[fault.first >= 0 ? static_cast<std::size_t>(fault.first) : 0];
    store.add_finding({.code = cover_code(fault.kind),
                       .tensor = std::string(store.name(tensor)),
                       .file = store.files()[first.file].path,
                       .message = to_string(fault, "piece"),
                       .rank = first.rank});
  }
}

}  // namespace

bool has_sharding_info(const SafetensorsTable& table) { return sharding_info(table) != nullptr; }

void add_dcp_shards(SafetensorsStore& store) {
  store.set_format(Format::kSafetensorsShards);
  i32 last_rank = -1;
  for (const auto& [name, pieces] : all_pieces(store)) {
    std::vector<i64> dims;
    try {
      dims = global_dims(store, pieces);
    } catch (Error& e) {
      e.default_tensor(name);
      store.add_finding(to_finding(e));
      continue;
    }
    for (const Piece& p : pieces) last_rank = std::max(last_rank, p.rank);
    store.add_sharded(pieces, std::move(dims));
    check_cover(store, store.tensor_count() - 1, pieces);
  }
  if (last_rank >= 0) store.set_ranks(last_rank + 1);
}

}  // namespace mckpt::impl
