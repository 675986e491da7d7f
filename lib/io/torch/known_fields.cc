// Walks over all values of a pickle; they may be shared and contain themselves.
#include "io/torch/known_fields.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_set>

#include "core/base/text.h"
#include "io/pickle/classes.h"
#include "io/pickle/pickle.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMost = 20;

struct KnownFields {
  Known of;
  std::vector<std::string_view> names;
};

// As torch 2.0 to 2.15 write them.
const std::vector<KnownFields>& table() {
  static const std::vector<KnownFields> kTable = {
      {Known::kDTensor, {"_local_tensor", "_spec"}},
      {Known::kDTensorSpec,
       {"mesh", "placements", "tensor_meta", "shard_order", "use_strided_shard_as_shard_order", "_hash"}},
      {Known::kDeviceMesh,
       {"_device_type",
        "_layout",
        "_rank_map",
        "_mesh_dim_names",
        "_root_mesh",
        "_preserve_rank_order",
        "_flatten_rank_map",
        "_thread_id",
        "_flatten_mapping",
        "_dim_group_names",
        "_rank",
        "_coordinate_on_dim",
        "_hash",
        "_pg_registry",
        "device_type",
        "mesh",
        "mesh_dim_names",
        "_flatten_mesh_list",
        "_dim_group_infos",
        "_parent_mesh"}},
      {Known::kMeshLayout, {"shape", "stride", "axes"}},
      {Known::kFlatLayout, {"shape", "stride"}},
      {Known::kShard, {"dim"}},
      {Known::kStridedShard, {"dim", "split_factor"}},
      {Known::kReplicate, {}},
      {Known::kTensorShard, {"tensor", "metadata"}},
      {Known::kShardedTensorMetadata, {"shards_metadata", "size", "tensor_properties"}},
      {Known::kProcessGroupState, {"global_rank", "global_world_size", "local_rank", "local_world_size"}},
  };
  return kTable;
}

class FieldWalk {
 public:
  std::vector<std::string> run(PickleValue root) {
    left_.push_back(root);
    while (!left_.empty()) {
      const PickleValue value = left_.back();
      left_.pop_back();
      if (value.container() == nullptr || !seen_.insert(value.container()).second) continue;
      for (PickleValue item : value.items()) left_.push_back(item);
      for (auto [key, inner] : value.entries()) left_.push_back(inner);
      if (value.is(Kind::kObject)) object(value.as_object());
    }
    return std::move(found_);
  }

 private:
  void object(const PickleObject& o) {
    for (PickleValue part : {o.args, o.state, o.items}) left_.push_back(part);
    look(*o.type, o.state);
    for (PickleValue part : o.state.tuple()) look(*o.type, part);  // (None, dict) of a class with __slots__
    // A DTensor is made by a call: of its class, with a dict of what it has.
    if (o.type->known == Known::kRebuildFromType && o.args.at(1).is(Kind::kClass))
      look(o.args.at(1).as_class(), o.args.at(3));
  }

  void look(const PickleClass& type, PickleValue fields) {
    if (!fields.is(Kind::kDict)) return;
    const auto known = std::ranges::find(table(), type.known, &KnownFields::of);
    if (known == table().end()) return;
    for (auto [key, value] : fields.entries()) {
      if (!key.is(Kind::kText) || std::ranges::find(known->names, key.text()) != known->names.end()) continue;
      std::string name = cat(escaped(type.name), ".", escaped(key.text()));
      if (found_.size() < kMost && std::ranges::find(found_, name) == found_.end())
        found_.push_back(std::move(name));
    }
  }

  std::vector<PickleValue> left_;
  std::unordered_set<const PickleNode*> seen_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> unknown_fields(const Pickle& pickle) { return FieldWalk().run(pickle.root()); }

}  // namespace mckpt::impl
