// A view with the shapes of the boxes that are there.
#include "io/store/lone_shard.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "io/store/store_view.h"

namespace mckpt::impl {
namespace {

// The boxes of one tensor, and where each is in the local tensor.
struct Local {
  bool known = false;    // false: the tensor stays as it is
  bool one_box = false;  // of the whole tensor: nothing is between the boxes
  std::vector<i64> dims{};
  std::vector<std::vector<i64>> offsets{};  // by chunk
};

// The stretches that the boxes have of one dimension, in the order in which they come.
struct Stretches {
  std::map<std::pair<i64, i64>, i64> numbers{};  // by offset and size
  std::vector<i64> begins{};                     // in the local tensor
  i64 end = 0;
  bool together = true;
};

// Nothing: the sizes are too big for one tensor.
std::optional<Stretches> stretches_of(std::span<const Chunk> chunks, std::size_t d) {
  Stretches out;
  i64 next = chunks[0].offsets[d];
  for (const Chunk& c : chunks) {
    const auto [at, added] =
        out.numbers.try_emplace({c.offsets[d], c.sizes[d]}, static_cast<i64>(out.begins.size()));
    if (!added) continue;
    out.together &= c.offsets[d] == next;
    out.begins.push_back(out.end);
    if (__builtin_add_overflow(out.end, c.sizes[d], &out.end)) return std::nullopt;
    if (__builtin_add_overflow(c.offsets[d], c.sizes[d], &next)) return std::nullopt;
  }
  return out;
}

// The boxes have to be a grid: one for each choice of a stretch in each dimension.
Local local_of(const Store& store, i64 tensor) {
  std::vector<Chunk> chunks;
  for (i64 i = 0; i < store.chunk_count(tensor); i++) chunks.push_back(store.chunk(tensor, i));
  Local out;
  if (chunks.empty() || (chunks.size() > 1 && std::ranges::any_of(chunks, &Chunk::replica))) return out;
  const std::size_t rank = chunks[0].sizes.size();
  const i64 count = std::ssize(chunks);
  out.one_box = true;
  out.offsets.assign(chunks.size(), std::vector<i64>(rank));
  std::vector<i64> place(chunks.size());  // of each box in the grid
  i64 places = 1;
  for (std::size_t d = 0; d < rank; d++) {
    const std::optional<Stretches> stretches = stretches_of(chunks, d);
    if (!stretches) return out;
    const i64 here = std::ssize(stretches->begins);
    if (here > count / places) return out;
    places *= here;
    for (i64 i = 0; i < count; i++) {
      const i64 number = stretches->numbers.at({chunks[i].offsets[d], chunks[i].sizes[d]});
      out.offsets[i][d] = stretches->begins[number];
      place[i] = place[i] * here + number;
    }
    out.dims.push_back(stretches->end);
    out.one_box &= stretches->together;
  }
  std::ranges::sort(place);
  out.known = places == count && std::ranges::adjacent_find(place) == place.end();
  return out;
}

class LocalValues final : public StoreView {
 public:
  explicit LocalValues(std::shared_ptr<const Store> shard) : StoreView(std::move(shard)) {
    take_objects();
    take_findings();
    if (!is_lone_shard(source())) return;
    for (i64 t = 0; t < source().tensor_count(); t++) tensors_.push_back(local_of(source(), t));
  }

  std::span<const i64> dims(i64 t) const override {
    return is_known(t) ? std::span<const i64>(tensors_[t].dims) : source().dims(t);
  }
  Chunk chunk(i64 t, i64 index) const override {
    Chunk c = source().chunk(t, index);
    if (is_known(t)) c.offsets = tensors_[t].offsets[index];
    return c;
  }

 private:
  bool is_known(i64 t) const { return !tensors_.empty() && tensors_[t].known; }

  std::vector<Local> tensors_;  // empty unless the store is a lone shard
};

}  // namespace

bool is_lone_shard(const Store& store) {
  return std::ranges::find(store.findings(), Code::kShardAlone, &Finding::code) != store.findings().end();
}

std::optional<std::vector<i64>> local_shape(const Store& store, i64 tensor) {
  Local local = local_of(store, tensor);
  return local.known ? std::optional(std::move(local.dims)) : std::nullopt;
}

std::optional<std::vector<i64>> local_offsets(const Store& store, i64 tensor) {
  const Local local = local_of(store, tensor);
  if (!local.known || !local.one_box) return std::nullopt;
  const Chunk first = store.chunk(tensor, 0);
  return std::vector<i64>(first.offsets.begin(), first.offsets.end());
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
