// Shapes are judged before boxes, and boxes before values: a tensor of another shape has no items to compare.
#include "convert/compare/diff/rank_tensor.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/items/item_cast.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

using Kind = RankDifference::Kind;

std::string box_text(const std::vector<i64>& sizes, const std::vector<i64>& offsets) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return "nothing";
  return cat(dims_to_string(sizes), " at ", dims_to_string(offsets));
}

// Where one side has a parameter whole that the other has in parts; "" where the sizes say nothing of it.
std::string split_hint(const std::vector<i64>& live, const std::vector<i64>& model, const ModelParameter& p) {
  if (live.size() != model.size()) return "";
  std::size_t unlike = 0, dim = 0;
  for (std::size_t d = 0; d < live.size(); d++)
    if (live[d] != model[d]) unlike++, dim = d;
  if (unlike != 1) return "";
  const i64 small = std::min(live[dim], model[dim]), large = std::max(live[dim], model[dim]);
  if (small == 0 || large % small != 0) return "";
  const bool live_is_part = live[dim] < model[dim];
  if (!live_is_part && p.holding->partition_dim != static_cast<int>(dim)) return "";
  return live_is_part ? cat("the live rank has one of ", large / small, " parts of dimension ", dim,
                            p.holding->partition_dim < 0 ? ", and the mapping gives every rank all of it"
                                                         : ", and the mapping gives it more")
                      : cat("the live rank has all of dimension ", dim,
                            ", of which the mapping gives it one of ", large / small, " parts");
}

void add_shape(RankPair& pair) {
  const std::vector<i64> model = shape_in(*pair.model, BoxSpace::kCell);
  pair.differences.push_back({Kind::kShape, "", pair.dump_text(), pair.model_text(),
                              split_hint(pair.dump->sizes, model, *pair.model->parameter)});
}

// The type of the dump, in which the digest of the model is made.
std::optional<DType> common_type(RankPair& pair) {
  const HeldTensor& h = *pair.model;
  std::optional<DType> live;
  for (const DTypeInfo& row : all_dtypes())
    if (row.name == pair.dump->dtype) live = row.dtype;
  if (live == h.dtype) return live;
  const std::string model(dtype_name(h.dtype));
  if (live && is_castable(*live) && is_castable(h.parameter->source_dtype)) {
    pair.differences.push_back({Kind::kCast, "", pair.dump->dtype, model, ""});
    return live;
  }
  pair.differences.push_back({Kind::kDtype, "", pair.dump_text(), pair.model_text(), ""});
  return std::nullopt;
}

// The space in which the dump counts, or nothing if its shape is not the tensor's.
std::optional<BoxSpace> space_of(const DumpedTensor& d, const HeldTensor& h) {
  for (BoxSpace space : {BoxSpace::kCell, BoxSpace::kAllCells})
    if (d.shape == shape_in(h, space) && (space == BoxSpace::kCell || !d.placements.empty())) return space;
  return std::nullopt;
}

std::vector<ItemRange> all_of(const HeldTensor& h) {
  if (h.items.empty()) return {};
  return {h.items};
}

// The items that the dump's tensor should have. `space`: of its shape.
void find_items(RankPair& pair, BoxSpace space, DType type, bool fsdp) {
  const DumpedTensor& d = *pair.dump;
  const HeldTensor& h = *pair.model;
  const bool empty = std::ranges::find(d.sizes, 0) != d.sizes.end();
  if (empty && (!fsdp || h.items.empty())) {
    pair.items = HeldItems{h.parameter, {}, type};
    return;
  }
  if (!d.offset && !empty) {  // then the only box that is known is the model's
    if (!std::ranges::equal(d.sizes, h.sizes)) {
      pair.reason = "the dump does not say where the rank's part begins";
      return;
    }
    pair.items = HeldItems{h.parameter, all_of(h), type};
    return;
  }
  const std::vector<i64> offsets = d.offset.value_or(std::vector<i64>(d.sizes.size(), 0));
  std::optional<std::vector<ItemRange>> ranges = items_of_box(h, offsets, d.sizes, space);
  if (fsdp) {
    const std::optional<std::vector<ItemRange>> own =
        items_of_box(h, h.offsets, h.sizes, BoxSpace::kAllCells);
    const bool same = ranges && own && std::ranges::equal(*ranges, *own, [](ItemRange x, ItemRange y) {
                        return x.begin == y.begin && x.end == y.end;
                      });
    if (!same)
      pair.differences.push_back(
          {Kind::kAttribute, "place", box_text(d.sizes, offsets), box_text(h.sizes, h.offsets), ""});
  }
  if (ranges)
    pair.items = HeldItems{h.parameter, std::move(*ranges), type};
  else
    pair.reason = "its place is on another tensor-parallel rank";
}

template <typename T>
std::string value_text(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? "True" : "False";
  else
    return cat(value);
}

}  // namespace

std::string RankPair::dump_text() const {
  const bool part = dump->shape != dump->sizes;
  return cat(dump->dtype, " ", dims_to_string(dump->sizes),
             part ? cat(" of ", dims_to_string(dump->shape)) : "");
}

std::string RankPair::model_text() const {
  const bool part = !std::ranges::equal(model->shape.dims(), model->sizes);
  return cat(dtype_name(model->dtype), " ", dims_to_string(model->sizes),
             part ? cat(" of ", to_string(model->shape)) : "");
}

RankPair paired(const DumpedTensor& dump, const HeldTensor& model, bool fsdp) {
  RankPair pair{.dump = &dump, .model = &model};
  std::optional<BoxSpace> space = space_of(dump, model);
  // A plain tensor of a run under FSDP is the rank's own part of the buffer, if it is not the whole.
  const bool plain_part =
      fsdp && dump.placements.empty() && !space && std::ranges::equal(dump.sizes, model.sizes);
  // A plain tensor is all that there is of it.
  const bool odd = !fsdp && dump.placements.empty() && dump.sizes != dump.shape;
  if (odd || (!space && !plain_part)) {
    add_shape(pair);
    return pair;
  }
  const std::optional<DType> type = common_type(pair);
  if (!type) return pair;
  if (plain_part)
    pair.items = HeldItems{model.parameter, all_of(model), *type};
  else
    find_items(pair, *space, *type, fsdp);
  return pair;
}

void compare_attributes(RankPair& pair, const ParameterMarks& marks, const RankAttributes& of_dump,
                        bool compares_allreduce, i64& unset) {
  if (!of_dump.any || pair.model->parameter->buffer()) return;
  const DumpedAttributes& has = pair.dump->attributes;
  auto compare = [&](const char* name, auto live, auto model) {
    if (live != model)
      pair.differences.push_back({Kind::kAttribute, name, value_text(live), value_text(model), ""});
  };
  // Megatron asks for an attribute that is not set with these defaults.
  compare("tensor_model_parallel", has.tensor_model_parallel.value_or(false), marks.tensor_model_parallel);
  if (has.partition_dim)
    compare("partition_dim", *has.partition_dim, i64{marks.partition_dim});
  else if (marks.tensor_model_parallel)
    unset++;
  if (of_dump.sequence_parallel)
    compare("sequence_parallel", has.sequence_parallel.value_or(false), marks.sequence_parallel);
  if (compares_allreduce) compare("allreduce", has.allreduce.value_or(true), marks.allreduce);
}

std::string bare_name(std::string_view name) {
  std::string out(name);
  for (std::string_view wrapper : {"_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod."})
    for (std::size_t at; (at = out.find(wrapper)) != out.npos;) out.erase(at, wrapper.size());
  while (out.starts_with("module.") || out.starts_with("model.")) out.erase(0, out.find('.') + 1);
  constexpr std::string_view kLocal = "local_experts.", kOldMtp = ".transformer_layer.";
  if (std::size_t at = out.find(kLocal); at != out.npos) {
    const std::size_t number = at + kLocal.size(), end = out.find('.', number);
    if (end != out.npos) out = cat(out.substr(0, at), out.substr(end + 1), out.substr(number, end - number));
  }
  if (std::size_t at = out.find(kOldMtp); at != out.npos && out.find("mtp.layers.") != out.npos)
    out.replace(at, kOldMtp.size(), ".mtp_model_layer.");
  return out;
}

}  // namespace mckpt::impl
