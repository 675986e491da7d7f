// Reads the state of a ShardedTensor: (local shards, metadata, ranks, sharding spec, init_rrefs). Its two
// statements about each shard, beside the shard and in the list of all, must agree.
#include "io/torch/table/sharded_tensor.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/pickle/classes.h"
#include "io/pickle/render.h"
#include "io/torch/table/calls.h"
#include "io/torch/table/shard_rows.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

// The object of that class. Throws kBadPickle for any other value.
const PickleObject& object_of(PickleValue v, Known known, std::string_view what) {
  if (!v.is(Kind::kObject) || v.as_object().type->known != known)
    throw Error(Code::kBadPickle, cat(what, " of a ShardedTensor is of another class"))
        .found(pickle_line(v, 60));
  return v.as_object();
}

// Python's None if there is no such field.
PickleValue field(const PickleObject& o, std::string_view name) {
  const PickleValue* v = o.field(name);
  return v != nullptr ? *v : PickleValue();
}

// Numbers that are not negative, as many as a shape may have at most.
std::vector<i64> numbers(PickleValue v, std::string_view what) {
  if (!v.is(Kind::kTuple) && !v.is(Kind::kList))
    throw Error(Code::kBadPickle, cat(what, " of a ShardedTensor is not a list of integers"))
        .found(kind_name(v.kind()));
  if (v.size() > Shape::kMaxRank)
    throw Error(Code::kBadShape, cat(what, " of a ShardedTensor has too many dimensions"))
        .expected(cat("at most ", Shape::kMaxRank));
  std::vector<i64> out;
  for (PickleValue item : v.items()) {
    out.push_back(item.to_int(what));
    if (out.back() < 0)
      throw Error(Code::kBadShape, cat(what, " of a ShardedTensor is negative")).found(out.back());
  }
  return out;
}

bool precedes(const std::vector<i64>* a, const std::vector<i64>* b) { return *a < *b; }

// The properties that all shards of the rank have in common.
TorchSharding read_layout(const TorchCall& call, TorchMeshes& meshes) {
  TorchSharding s;
  s.global = numbers(call.args.at(2), "the size");
  static_cast<void>(Shape(s.global).items());  // throws if there are too many
  const PickleObject& metadata = object_of(call.state.at(1), Known::kShardedTensorMetadata, "the metadata");
  // torch unpacks the properties: (dtype, layout, requires_grad, memory format, pin_memory), from 2.15 on
  // with strides.
  if (PickleValue properties = field(metadata, "tensor_properties"); properties.is(Kind::kObject))
    if (PickleValue state = properties.as_object().state;
        state.is(Kind::kTuple) && (state.size() < 5 || state.size() > 6))
      throw Error(Code::kBadPickle, "torch cannot load the TensorProperties of a ShardedTensor")
          .expected("a state of 5 or 6 values")
          .found(counted(state.size(), "value"));
  if (std::vector<i64> size = numbers(field(metadata, "size"), "the size"); size != s.global)
    throw Error(Code::kBadShards, "a ShardedTensor and its metadata have different sizes")
        .expected(dims_to_string(s.global))
        .found(dims_to_string(size));
  s.boxes = meshes.read_boxes(field(metadata, "shards_metadata"));
  if (!s.boxes->all.empty() && s.boxes->all.front()->size() != 2 * s.global.size())
    throw Error(Code::kBadShards,
                "the shards of a ShardedTensor have another number of dimensions than it has")
        .expected(s.global.size())
        .found(s.boxes->all.front()->size() / 2);
  const PickleObject& ranks = object_of(call.state.at(2), Known::kProcessGroupState, "the process group");
  auto number = [&](std::string_view name) { return field(ranks, name).to_int("a rank of a ShardedTensor"); };
  s.rank = number("global_rank");
  s.ranks = number("global_world_size");
  s.group_ranks = number("local_world_size");
  return s;
}

DType read_dtype(const TorchCall& call) {
  PickleValue v = call.args.at(1);
  if (!v.is(Kind::kClass) || v.as_class().known != Known::kDType)
    throw Error(Code::kBadPickle, "the dtype of a ShardedTensor is not a dtype of torch")
        .found(pickle_line(v, 60));
  return v.as_class().dtype;
}

// One shard of the rank. Its sizes, and its entry in the list of all boxes, must fit its tensor.
TorchTensor read_shard(PickleValue shard, const TorchSharding& layout, DType dtype, TorchMeshes& meshes) {
  const PickleObject& o = object_of(shard, Known::kTensorShard, "a shard");
  TorchTensor t = read_torch_tensor(field(o, "tensor"), meshes);
  if (t.sharding) throw Error(Code::kBadPickle, "a shard of a ShardedTensor is distributed itself");
  const std::vector<i64>& box = meshes.read_box(field(o, "metadata"));
  const std::size_t dimensions = box.size() / 2;
  std::span<const i64> sizes = std::span(box).subspan(dimensions);
  if (!std::ranges::equal(sizes, t.shape.dims()))
    throw Error(Code::kBadShards, "a shard and its description have different sizes")
        .expected(dims_to_string(sizes))
        .found(to_string(t.shape));
  if (!std::ranges::binary_search(layout.boxes->all, &box, precedes))
    throw Error(Code::kBadShards, "a shard is not in its tensor's list of all shards")
        .found(cat("offsets ", dims_to_string(std::span(box).first(dimensions)), ", sizes ",
                   dims_to_string(sizes)));
  if (t.dtype != dtype)
    throw Error(Code::kBadShards, "a shard has another data type than its ShardedTensor")
        .expected(dtype_name(dtype))
        .found(dtype_name(t.dtype));
  t.sharding = layout;
  t.sharding->offsets.assign(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(dimensions));
  return t;
}

// A rank without a shard: a tensor of zero rows.
TorchTensor no_shard(TorchSharding layout, DType dtype) {
  if (layout.global.empty())
    throw Error(Code::kBadShards, "a rank has no shard of a ShardedTensor that is a single item");
  TorchTensor t;
  t.nothing = true;
  t.dtype = dtype;
  std::vector<i64> dims = layout.global;
  dims[0] = 0;
  t.shape = Shape(dims);
  t.strides.resize(dims.size());
  for (i64 d = std::ssize(dims) - 1, stride = 1; d >= 0; stride *= std::max<i64>(1, dims[d]), d--)
    t.strides[d] = stride;
  layout.offsets.assign(dims.size(), 0);
  t.sharding = std::move(layout);
  return t;
}

}  // namespace

bool is_sharded_tensor(const TorchCall& call) {
  return call.function == Known::kRebuildWrapperSubclass && call.type.is(Kind::kClass) &&
         call.type.as_class().known == Known::kShardedTensor;
}

const std::vector<i64>& TorchMeshes::read_box(PickleValue metadata) const {
  const std::vector<i64>* box = rows_ ? rows_->box(metadata) : nullptr;
  if (box == nullptr)
    throw Error(
        Code::kBadPickle,
        "the box of a shard of a ShardedTensor is not a ShardMetadata with as many offsets as sizes, which are integers and not negative")
        .found(kind_name(metadata.kind()));
  return *box;
}

std::shared_ptr<const TorchBoxes> TorchMeshes::read_boxes(PickleValue list) {
  if (!list.is(Kind::kList) && !list.is(Kind::kTuple))
    throw Error(Code::kBadPickle, "a ShardedTensor has no list of its shards").found(kind_name(list.kind()));
  std::shared_ptr<const TorchBoxes>& boxes = boxes_by_node_[list.node()];
  if (boxes) return boxes;
  auto made = std::make_shared<TorchBoxes>();
  made->rows = rows_;
  for (PickleValue metadata : list.items()) {
    made->all.push_back(&read_box(metadata));
    if (made->all.back()->size() != made->all.front()->size())
      throw Error(Code::kBadShards, "the shards of a ShardedTensor have different numbers of dimensions");
  }
  std::ranges::sort(made->all, precedes);
  return boxes = std::move(made);
}

std::vector<TorchTensor> read_sharded_tensor(const TorchCall& call, TorchMeshes& meshes) {
  PickleValue shards = call.state.at(0);
  if (!shards.is(Kind::kList) && !shards.is(Kind::kTuple))
    throw Error(Code::kBadPickle, "the shards of a ShardedTensor are not a list")
        .found(kind_name(shards.kind()));
  TorchSharding layout = read_layout(call, meshes);
  const DType dtype = read_dtype(call);
  std::vector<TorchTensor> out;
  for (PickleValue shard : shards.items()) out.push_back(read_shard(shard, layout, dtype, meshes));
  if (out.empty()) out.push_back(no_shard(std::move(layout), dtype));
  return out;
}

}  // namespace mckpt::impl
