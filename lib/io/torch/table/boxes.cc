// Lists of boxes are read with all bounds that shapes have, and each box is checked against both tensors.
#include "io/torch/table/boxes.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/pickle/value.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

bool is_inside(const TorchBox& box, const Shape& local, std::span<const i64> global) {
  const i64 rank = local.rank();
  if (std::ssize(box.sizes) != rank || std::ssize(box.local) != rank || std::ssize(box.global) != rank ||
      std::ssize(global) != rank)
    return false;
  for (int d = 0; d < rank; d++)
    if (box.local[d] < 0 || box.local[d] > local[d] - box.sizes[d] || box.global[d] < 0 ||
        box.global[d] > global[d] - box.sizes[d])
      return false;
  return true;
}

}  // namespace

std::vector<i64> torch_integers(PickleValue v, std::string_view what) {
  if (!v.is(Kind::kTuple) && !v.is(Kind::kList))
    throw Error(Code::kBadPickle, cat(what, " is not a tuple of integers")).found(kind_name(v.kind()));
  std::vector<i64> out;
  out.reserve(static_cast<std::size_t>(std::min<i64>(v.size(), Shape::kMaxRank + 1)));
  for (PickleValue item : v.items()) {
    out.push_back(item.to_int(what));
    if (out.size() > Shape::kMaxRank)
      throw Error(Code::kBadShape, cat(what, " has too many dimensions"))
          .expected(cat("at most ", Shape::kMaxRank));
  }
  return out;
}

std::vector<TorchBox> read_torch_boxes(PickleValue global_offsets, PickleValue local_offsets,
                                       PickleValue local_sizes) {
  for (const PickleValue& list : {local_offsets, local_sizes})
    if (list.size() != global_offsets.size())
      throw Error(Code::kBadPickle, "the lists of a tensor's boxes have different lengths")
          .expected(global_offsets.size())
          .found(list.size());
  std::vector<TorchBox> out;
  for (PickleValue item : global_offsets.items())
    out.push_back({torch_integers(item, "the offsets of a box"), {}, {}});
  std::size_t at = 0;
  for (PickleValue item : local_offsets.items())
    out[at++].local = torch_integers(item, "the offsets of a box");
  at = 0;
  for (PickleValue item : local_sizes.items()) out[at++].sizes = torch_integers(item, "the sizes of a box");
  return out;
}

TorchSharding sharding_by_boxes(std::vector<i64> global_shape) {
  TorchSharding out;
  out.global = std::move(global_shape);
  out.boxes = std::make_shared<const TorchBoxes>();
  out.group_ranks = 0, out.ranks = 1;
  return out;
}

TorchTensor tensor_of_box(const TorchTensor& local, const TorchSharding& sharding, const TorchBox& box) {
  TorchTensor out = local;
  out.shape = Shape(box.sizes);
  if (!is_inside(box, local.shape, sharding.global))
    throw Error(Code::kBadShape, "a box of a tensor is not in its local or its global tensor")
        .expected(cat("inside of ", to_string(local.shape), " and ", dims_to_string(sharding.global)))
        .found(cat("sizes ", dims_to_string(box.sizes), " at ", dims_to_string(box.local), " and ",
                   dims_to_string(box.global)));
  out.sharding = sharding;
  out.sharding->offsets = box.global;
  for (int d = 0; d < local.shape.rank(); d++)
    out.offset_items =
        checked_add(out.offset_items, checked_mul(box.local[d], local.strides[d], "a tensor's stride"),
                    "the place of a box");
  return out;
}

}  // namespace mckpt::impl
