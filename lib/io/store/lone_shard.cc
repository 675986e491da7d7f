// A view with the shapes of the boxes that are there.
#include "io/store/lone_shard.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/store/store_view.h"

namespace mckpt::impl {
namespace {

// The boxes of one tensor, and where each is in the local tensor.
struct Local {
  bool known = false;  // false: the tensor stays as it is
  std::vector<i64> dims{};
  std::vector<std::vector<i64>> offsets{};  // by chunk
};

// The dimension along which the boxes lie one after the other; -1: they differ in more than that.
int stacked_along(std::span<const Chunk> chunks) {
  int along = -1;
  for (const Chunk& c : chunks)
    for (std::size_t d = 0; d < c.sizes.size(); d++) {
      if (c.offsets[d] == chunks[0].offsets[d] && c.sizes[d] == chunks[0].sizes[d]) continue;
      if (along >= 0 && along != static_cast<int>(d)) return -1;
      along = static_cast<int>(d);
    }
  return std::max(along, 0);
}

Local local_of(const Store& store, i64 tensor) {
  std::vector<Chunk> chunks;
  for (i64 i = 0; i < store.chunk_count(tensor); i++) chunks.push_back(store.chunk(tensor, i));
  Local out;
  if (chunks.empty()) return out;
  out.dims.assign(chunks[0].sizes.begin(), chunks[0].sizes.end());
  out.offsets.assign(chunks.size(), std::vector<i64>(out.dims.size()));
  out.known = chunks.size() == 1;
  if (out.known || out.dims.empty()) return out;
  const int along = stacked_along(chunks);
  if (along < 0) return out;
  i64 end = 0;
  for (std::size_t i = 0; i < chunks.size(); i++) {
    if (chunks[i].replica) return out;
    out.offsets[i][along] = end;
    end += chunks[i].sizes[along];
  }
  out.dims[along] = end;
  out.known = true;
  return out;
}

class LocalValues final : public StoreView {
 public:
  explicit LocalValues(std::shared_ptr<const Store> shard) : StoreView(std::move(shard)) {
    take_objects();
    take_findings();
    tensors_.resize(static_cast<std::size_t>(source().tensor_count()));
    if (!is_lone_shard(source())) return;
    for (i64 t = 0; t < source().tensor_count(); t++) tensors_[t] = local_of(source(), t);
  }

  std::span<const i64> dims(i64 t) const override {
    return tensors_[t].known ? std::span<const i64>(tensors_[t].dims) : source().dims(t);
  }
  Chunk chunk(i64 t, i64 index) const override {
    Chunk c = source().chunk(t, index);
    if (tensors_[t].known) c.offsets = tensors_[t].offsets[index];
    return c;
  }

 private:
  std::vector<Local> tensors_;
};

}  // namespace

bool is_lone_shard(const Store& store) {
  return std::ranges::find(store.findings(), Code::kShardAlone, &Finding::code) != store.findings().end();
}

std::optional<std::vector<i64>> local_shape(const Store& store, i64 tensor) {
  Local local = local_of(store, tensor);
  return local.known ? std::optional(std::move(local.dims)) : std::nullopt;
}

std::unique_ptr<Store> local_values(std::unique_ptr<Store> store) {
  if (!is_lone_shard(*store)) return store;
  return std::make_unique<LocalValues>(std::move(store));
}

std::unique_ptr<Store> local_view(std::shared_ptr<const Store> store) {
  return std::make_unique<LocalValues>(std::move(store));
}

std::unique_ptr<Store> local_view(const Store& store) {
  return local_view(std::shared_ptr<const Store>(std::shared_ptr<void>(), &store));
}

}  // namespace mckpt::impl
