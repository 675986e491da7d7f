// Both versions are read into one form. Names are checked where files are opened.
#include "io/ranks/item_metadata.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"
#include "io/store/open/item_folder.h"
#include "io/torch/table/spec_fields.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;
using Placement = TorchPlacement::Kind;

constexpr i64 kMostBytes = i64{256} << 20;
constexpr const char* kUsualFormat = "TorchSerialization";

// The entry of a dict. Throws kBadPickle where there is none.
PickleValue entry(PickleValue dict, std::string_view key) {
  const PickleValue* v = dict.find(key);
  if (v == nullptr)
    throw Error(Code::kBadPickle, cat("an entry is missing: ", key)).found(pickle_line(dict, 80));
  return *v;
}

PickleValue entry_or_none(PickleValue dict, std::string_view key) {
  const PickleValue* v = dict.find(key);
  return v ? *v : PickleValue();
}

// A text that is a list in JSON, its parts with dots between them: '["state","w"]' -> "state.w". In version
// 1.0 the first part is the item.
std::vector<std::string> parts_of(PickleValue path) {
  const JsonValue list = parse_json(path.to_text("the path of a tensor"));
  std::vector<std::string> out;
  for (const JsonValue& part : list.array("the path of a tensor"))
    out.push_back(part.is(JsonType::kString) ? std::string(part.string("the path of a tensor"))
                                             : cat(part.integer("the path of a tensor")));
  return out;
}

std::string joined(std::span<const std::string> parts) {
  std::string out;
  for (const std::string& p : parts) out += cat(out.empty() ? "" : ".", p);
  return out;
}

i64 checked_rank(i64 rank) {
  if (rank >= 0 && rank < kMostRanks) return rank;
  throw Error(Code::kBadPickle, "there is no such rank").expected(cat("0 to ", kMostRanks - 1)).found(rank);
}

std::vector<i64> ranks_of(PickleValue list) {
  std::vector<i64> ranks = spec_integers(list);
  for (i64 rank : ranks) checked_rank(rank);
  return ranks;
}

i64 rank_of(PickleValue key) {
  if (key.is_int()) return checked_rank(key.as_int());
  const std::string text(key.to_text("a rank"));
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != text.npos)
    throw Error(Code::kBadPickle, "a rank is not a number").found(escaped(text));
  return checked_rank(std::stoll(text));
}

TorchPlacement placement_of(PickleValue v) {
  const std::string_view type = entry(v, "type").to_text("the type of a placement");
  if (type == "Replicate") return {Placement::kReplicate, 0};
  if (type == "Partial") return {Placement::kPartial, 0};
  if (type != "Shard" && type != "StridedShard" && type != "_StridedShard")
    throw Error(Code::kBadPickle, "a placement is of a type that mckpt does not know").found(escaped(type));
  const i64 dim = entry(v, "dim").to_int("the dimension of a placement");
  if (type == "Shard") return cut_along(dim, std::nullopt);
  return cut_along(dim, entry(v, "split_factor").to_int("the split factor of a placement"));
}

void read_dtensor(PickleValue data, ItemSharding& out) {
  const PickleValue spec = entry(data, "mesh_spec");
  auto mesh = std::make_shared<TorchMesh>();
  mesh->sizes = spec_integers(entry(spec, "mesh_shape"));
  mesh->ranks = ranks_of(entry(spec, "mesh_data"));
  if (Shape(mesh->sizes).items() != std::ssize(mesh->ranks))
    throw Error(Code::kBadPickle, "the shape and the ranks of a mesh do not fit together")
        .expected(cat(dims_to_string(mesh->sizes), " ranks"))
        .found(counted(std::ssize(mesh->ranks), "rank"));
  for (PickleValue p : entry(data, "placements").items()) out.layout.placements.push_back(placement_of(p));
  out.layout.mesh = std::move(mesh);
  check_placements(out.layout);
}

void read_boxes(PickleValue data, ItemSharding& out) {
  out.layout = sharding_by_boxes(std::move(out.layout.global));
  out.boxes = read_torch_boxes(entry(data, "global_offsets"), entry(data, "local_offsets"),
                               entry(data, "local_sizes"));
}

std::vector<ItemSharding> groups_of(PickleValue list) {
  std::vector<ItemSharding> out;
  for (PickleValue group : list.items()) {
    const PickleValue sharding = entry(group, "sharding_metadata");
    ItemSharding& s = out.emplace_back();
    s.ranks = ranks_of(entry(group, "ranks"));
    const std::string_view type =
        entry_or_none(sharding, "type").is(Kind::kText) ? entry(sharding, "type").text() : "";
    const PickleValue data = entry(sharding, "data");
    s.layout.global = spec_integers(entry(data, "global_shape"));
    Shape global(s.layout.global);  // throws when it is none
    if (type == "DTensorShardingMetadata")
      read_dtensor(data, s);
    else if (data.find("local_offsets") != nullptr)
      read_boxes(data, s);
    else
      throw Error(Code::kBadPickle, "a tensor is distributed in a way that mckpt does not know")
          .found(escaped(type));
  }
  return out;
}

ItemFile file_of(const std::string& item, PickleValue rank, PickleValue layout) {
  ItemFile out{item, "", kUsualFormat, rank_of(rank)};
  if (layout.is_none()) {
    out.path = cat(item, "_", out.rank, ".pt");
    return out;
  }
  out.path = entry(layout, "file_path").to_text("the path of a file");
  out.format = entry(entry(layout, "serialization_format"), "type").to_text("the format of a file");
  return out;
}

void read_second(PickleValue metadata, ItemMetadata& out) {
  for (PickleEntry item : metadata.entries()) {
    const std::string name(item.key.to_text("the name of an item"));
    for (PickleEntry t : entry(item.value, "nested_path_to_metadata").entries())
      out.tensors[{name, joined(parts_of(t.key))}] = groups_of(t.value);
    for (PickleEntry rank : entry(item.value, "rank_to_layout_info").entries())
      out.files.push_back(file_of(name, rank.key, rank.value));
  }
}

void read_first(PickleValue root, PickleValue metadata, ItemMetadata& out) {
  for (PickleEntry t : metadata.entries()) {
    const std::vector<std::string> parts = parts_of(t.key);
    if (parts.empty()) throw Error(Code::kBadPickle, "the path of a tensor is empty");
    out.tensors[{parts[0], joined(std::span(parts).subspan(1))}] = groups_of(t.value);
  }
  for (PickleEntry rank : entry(root, "rank_to_layout_info_mappings").entries())
    for (PickleEntry item : rank.value.entries())
      out.files.push_back(
          file_of(std::string(item.key.to_text("the name of an item")), rank.key, item.value));
}

}  // namespace

const ItemSharding* ItemMetadata::of(const std::string& item, const std::string& name, i64 rank) const {
  auto groups = tensors.find({item, name});
  if (groups == tensors.end()) return nullptr;
  for (const ItemSharding& s : groups->second)
    if (std::ranges::find(s.ranks, rank) != s.ranks.end()) return &s;
  return nullptr;
}

std::optional<ItemMetadata> read_item_metadata(const Folder& folder) {
  if (!folder.has_file(kItemMetadata)) return std::nullopt;
  InputFile file = folder.open_file(kItemMetadata);
  if (file.size() > kMostBytes) return std::nullopt;
  std::shared_ptr<const Pickle> pickle;
  try {
    pickle = Pickle::own(file.read(0, file.size()));
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return std::nullopt;  // another program's file of this name
  }
  const PickleValue root = pickle->root(), metadata = entry_or_none(root, "metadata");
  const PickleValue ranks = entry_or_none(root, "world_size");
  if (!metadata.is(Kind::kDict) || !ranks.is_int()) return std::nullopt;
  return with_file(cat(folder.path(), "/", kItemMetadata), [&] {
    ItemMetadata out;
    out.ranks = ranks.as_int();
    if (out.ranks < 1 || out.ranks > kMostRanks)
      throw Error(Code::kBadPickle, "the number of ranks is not possible").found(out.ranks);
    const PickleValue version = entry_or_none(root, "version");
    out.version = version.is(Kind::kText) ? std::string(version.text()) : "1.0";
    if (root.find("rank_to_layout_info_mappings") != nullptr)
      read_first(root, metadata, out);
    else
      read_second(metadata, out);
    return out;
  });
}

}  // namespace mckpt::impl
