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
#include "io/pickle/room.h"
#include "io/store/open/item_folder.h"
#include "io/torch/table/spec_fields.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;
using Placement = TorchPlacement::Kind;

constexpr i64 kMostBytes = i64{256} << 20;

// A group is a few dozen bytes of a pickle that has its keys and ranks elsewhere, and 200 bytes here.
constexpr i64 kTimes = 16;
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

// Reads the dicts. A pickle has the lists of ranks once where many tensors share them, and so has the result.
class Reader {
 public:
  Reader(i64 pickle_bytes, ItemMetadata& out) : room_(pickle_bytes, kTimes), out_(out) {}

  void read_second(PickleValue metadata) {
    for (PickleEntry item : metadata.entries()) {
      const std::string name(item.key.to_text("the name of an item"));
      for (PickleEntry t : entry(item.value, "nested_path_to_metadata").entries())
        add_tensor(name, parts(t.key), t.value);
      for (PickleEntry rank : entry(item.value, "rank_to_layout_info").entries())
        add_file(name, rank.key, rank.value);
    }
  }

  void read_first(PickleValue root, PickleValue metadata) {
    for (PickleEntry t : metadata.entries()) {
      const std::vector<std::string> all = parts(t.key);
      if (all.empty()) throw Error(Code::kBadPickle, "the path of a tensor is empty");
      add_tensor(all[0], std::span(all).subspan(1), t.value);
    }
    for (PickleEntry rank : entry(root, "rank_to_layout_info_mappings").entries())
      for (PickleEntry item : rank.value.entries())
        add_file(std::string(item.key.to_text("the name of an item")), rank.key, item.value);
  }

 private:
  using Ranks = std::shared_ptr<const std::vector<i64>>;

  std::vector<std::string> parts(PickleValue path) {
    room_.take(std::ssize(path.to_text("the path of a tensor")));
    return parts_of(path);
  }

  void add_tensor(const std::string& item, std::span<const std::string> parts, PickleValue groups) {
    room_.take(std::ssize(item));
    std::vector<ItemSharding>& out = out_.tensors[{item, joined(parts)}];
    out.clear();
    for (PickleValue group : groups.items()) {
      room_.take(sizeof(ItemSharding));
      out.push_back(read_group(group));
    }
  }

  ItemSharding read_group(PickleValue group) {
    ItemSharding out;
    const PickleValue sharding = entry(group, "sharding_metadata"), data = entry(sharding, "data");
    const PickleValue type = entry_or_none(sharding, "type");
    out.ranks = ranks_of(entry(group, "ranks"));
    out.layout.global = spec_integers(entry(data, "global_shape"));
    Shape global(out.layout.global);  // throws when it is none
    if (type.is(Kind::kText) && type.text() == "DTensorShardingMetadata")
      read_dtensor(data, out);
    else if (data.find("local_offsets") != nullptr)
      read_boxes(data, out);
    else
      throw Error(Code::kBadPickle, "a tensor is distributed in a way that mckpt does not know")
          .found(type.is(Kind::kText) ? escaped(type.text()) : "");
    return out;
  }

  Ranks ranks_of(PickleValue list) {
    Ranks& ranks = ranks_[list.node()];
    if (ranks && list.node() != nullptr) return ranks;
    std::vector<i64> numbers = spec_integers(list);
    for (i64 rank : numbers) checked_rank(rank);
    return ranks = std::make_shared<const std::vector<i64>>(std::move(numbers));
  }

  std::shared_ptr<const TorchMesh> mesh_of(PickleValue spec) {
    std::shared_ptr<const TorchMesh>& mesh = meshes_[spec.node()];
    if (mesh) return mesh;
    TorchMesh made;
    made.sizes = spec_integers(entry(spec, "mesh_shape"));
    made.ranks = *ranks_of(entry(spec, "mesh_data"));
    room_.take(std::ssize(made.ranks) * i64{sizeof(i64)});
    if (Shape(made.sizes).items() != std::ssize(made.ranks))
      throw Error(Code::kBadPickle, "the shape and the ranks of a mesh do not fit together")
          .expected(cat(dims_to_string(made.sizes), " ranks"))
          .found(counted(std::ssize(made.ranks), "rank"));
    return mesh = std::make_shared<const TorchMesh>(std::move(made));
  }

  void read_dtensor(PickleValue data, ItemSharding& out) {
    const PickleValue placements = entry(data, "placements");
    room_.take(placements.size() * i64{sizeof(TorchPlacement)});
    for (PickleValue p : placements.items()) out.layout.placements.push_back(placement_of(p));
    out.layout.mesh = mesh_of(entry(data, "mesh_spec"));
    check_placements(out.layout);
  }

  void read_boxes(PickleValue data, ItemSharding& out) {
    for (std::string_view part : {"global_offsets", "local_offsets", "local_sizes"})
      for (PickleValue numbers : entry(data, part).items())
        room_.take(i64{sizeof(std::vector<i64>)} + numbers.size() * i64{sizeof(i64)});
    out.layout = sharding_by_boxes(std::move(out.layout.global));
    out.boxes = read_torch_boxes(entry(data, "global_offsets"), entry(data, "local_offsets"),
                                 entry(data, "local_sizes"));
  }

  void add_file(const std::string& item, PickleValue rank, PickleValue layout) {
    ItemFile file{item, "", kUsualFormat, rank_of(rank)};
    if (layout.is_none()) {
      file.path = cat(item, "_", file.rank, ".pt");
    } else {
      file.path = entry(layout, "file_path").to_text("the path of a file");
      file.format = entry(entry(layout, "serialization_format"), "type").to_text("the format of a file");
    }
    room_.take(i64{sizeof(ItemFile)} + std::ssize(item) + std::ssize(file.path) + std::ssize(file.format));
    out_.files.push_back(std::move(file));
  }

  PickleRoom room_;
  ItemMetadata& out_;
  std::map<const PickleNode*, Ranks> ranks_;  // by the list in the pickle
  std::map<const PickleNode*, std::shared_ptr<const TorchMesh>> meshes_;
};

}  // namespace

const ItemSharding* ItemMetadata::of(const std::string& item, const std::string& name, i64 rank) const {
  auto groups = tensors.find({item, name});
  if (groups == tensors.end()) return nullptr;
  for (const ItemSharding& s : groups->second)
    if (std::ranges::find(*s.ranks, rank) != s.ranks->end()) return &s;
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
      Reader(pickle->bytes(), out).read_first(root, metadata);
    else
      Reader(pickle->bytes(), out).read_second(metadata);
    return out;
  });
}

}  // namespace mckpt::impl
