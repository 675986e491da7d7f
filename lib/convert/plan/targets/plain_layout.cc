// The layout keeps the nesting of the saved dicts, if the source's .metadata records it.
#include "convert/plan/targets/plain_layout.h"

#include <algorithm>
#include <memory>

#include "convert/facts/source_args.h"
#include "core/base/error.h"
#include "core/items/item_cast.h"
#include "io/dcp/keys/buckets.h"
#include "io/store/store.h"
#include "io/store/tensor_spec.h"
#include "io/torch/layout.h"

namespace mckpt::impl {
namespace {

// By the paths in the source's .metadata; nothing if there are none.
PlainLayout::Naming recorded_names(const Store& store) {
  std::optional<DcpPaths> paths = dcp_paths(store);
  if (!paths) return {};
  auto shared = std::make_shared<const DcpPaths>(*std::move(paths));
  return [shared](std::string_view name) {
    auto at = shared->find(std::string(name));
    return at != shared->end() ? at->second : DcpName{std::string(name), {}};
  };
}

// Throws kNotHeld with all tensors of the layout whose types no record can have.
void refuse_types_without_record(const Store& store, const DcpLayout& layout, std::span<const i32> tensors) {
  std::vector<std::string> faults;
  bool quantised = false;
  for (std::size_t k = 0; k < tensors.size(); k++) {
    const TensorSpec spec{store.name(tensors[k]), layout.key(static_cast<i32>(k)).dtype, {}};
    std::string why = torch_fault({"", spec.dtype, {}});
    if (why.empty()) continue;
    faults.push_back(not_held(spec, why));
    quantised |= dtype_info(spec.dtype).kind == DTypeKind::kQuantized;
  }
  try {
    throw_not_held(faults, "a DCP folder");
  } catch (Error& e) {
    throw e.file(store.root())
        .help(cat("save these tensors in another type",
                  quantised ? " (a quantised one: tensor.dequantize())" : "", ", or leave them out"));
  }
}

}  // namespace

PlainLayout::PlainLayout(const Store& store, i64 ranks, bool weights_only, const Typing& typed)
    : PlainLayout(store, ranks, weights_only, recorded_names(store), typed) {}

PlainLayout::PlainLayout(const Store& store, i64 ranks, bool weights_only, const Naming& named,
                         const Typing& typed)
    : store_(store), ranks_(ranks), naming_(named), layout(ranks) {
  if (!naming_) layout.leave_out_paths();
  if (weights_only) states_.emplace(store);
  for (i32 t = 0; t < store.tensor_count(); t++) {
    if (states_ && states_->has(store.name(t))) {
      left_behind.push_back(t);
      continue;
    }
    layout.add_key({this->named(store.name(t)), typed ? typed(t) : store.dtype(t), store.shape(t)});
    tensors.push_back(t);
  }
  refuse_types_without_record(store, layout, tensors);
  for (i64 rank = 0; rank < ranks; rank++)
    for (i32 key = 0; key < layout.key_count(); key++) add_share(key, rank);
  stretches_.clear();
}

std::vector<CarriedRecord> PlainLayout::add_objects() {
  std::vector<CarriedRecord> records;
  for (const Object& o : store_.objects()) {
    if (is_file(store_, o)) continue;
    if (states_ && states_->has(o.name)) {
      left_behind_objects++;
      continue;
    }
    add_carried(store_, o, layout, named(o.name), 0, records);
  }
  return records;
}

DcpName PlainLayout::named(std::string_view name) const {
  return naming_ ? naming_(name) : DcpName{std::string(name), {}};
}

// Buffers that count or index, scalars and tensors without items are not divided: the last rank stores them.
bool PlainLayout::is_sharded(i32 tensor) const {
  return is_castable(store_.dtype(tensor)) && !store_.dims(tensor).empty() &&
         store_.shape(tensor).items() > 0;
}

void PlainLayout::add_share(i32 key, i64 rank) {
  i32 tensor = tensors[key];
  std::vector<i64> offsets(store_.dims(tensor).size());
  std::vector<i64> sizes(store_.dims(tensor).begin(), store_.dims(tensor).end());
  if (is_sharded(tensor)) {
    i64 rows = sizes[0], each = ceil_div(rows, ranks_);
    offsets[0] = std::min(rows, rank * each);
    sizes[0] = std::min(rows - offsets[0], each);
    if (sizes[0] == 0) return;
    if (sizes.size() == 1 && is_bucket(store_.name(tensor)))
      return add_stretches(key, rank, offsets[0], sizes[0]);
  } else if (rank != ranks_ - 1) {
    return;
  }
  layout.add_chunk(key, static_cast<i32>(rank), offsets, sizes);
}

// The stretches of a bucket that begin in the share of a rank, each a chunk: chunks alone show the padding,
// which may be NaN.
void PlainLayout::add_stretches(i32 key, i64 rank, i64 offset, i64 size) {
  using Stretch = std::pair<i64, i64>;
  auto known = stretches_.find(key);
  if (known == stretches_.end())
    known = stretches_.emplace(key, bucket_stretches(store_, tensors[key])).first;
  const std::vector<Stretch>& all = known->second;
  for (auto s = std::ranges::lower_bound(all, offset, {}, &Stretch::first); s != all.end(); ++s) {
    if (s->first >= offset + size) break;
    const i64 items = s->second - s->first;
    layout.add_chunk(key, static_cast<i32>(rank), {&s->first, 1}, {&items, 1});
  }
}

}  // namespace mckpt::impl
