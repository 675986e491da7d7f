#include "live/live_group.h"

#include <cassert>

namespace mckpt {

LiveGroup::LiveGroup(FsdpGroup packed, const How& how, Comm& ranks, Memory& storage, Memory& gathered)
    : packed_(std::move(packed)), how_(how), ranks_(ranks), storage_(storage), gathered_(gathered) {
  assert(how_.strategy == Strategy::kNoShard || ranks_.size() == buffer().shards);
}

ItemRange LiveGroup::stored_items() const {
  if (how_.strategy == Strategy::kNoShard) return {0, buffer().bucket_items};
  return {how_.shard * buffer().shard_items, (how_.shard + 1) * buffer().shard_items};
}

ItemRange LiveGroup::stored_items_of(i64 member) const {
  const PackedParameter& p = buffer().parameters[static_cast<std::size_t>(member)];
  ItemRange in_bucket = intersection(stored_items(), {p.offset, p.end()});
  if (in_bucket.empty()) return {};
  return {in_bucket.begin - p.offset, in_bucket.end - p.offset};
}

void LiveGroup::allocate() {
  if (loaded()) return;
  i64 items = shards_compute() ? stored_items().items() : buffer().bucket_items;
  Block compute(storage_, dtype_bytes(how_.compute, items));
  if (how_.main) main_ = Block(storage_, dtype_bytes(*how_.main, stored_items().items()));
  compute_ = std::move(compute);
}

void LiveGroup::drop() {
  assert(!unsharded());
  compute_ = Block();
  main_ = Block();
}

std::span<u8> LiveGroup::own_compute() const {
  if (!loaded()) return {};
  i64 first = shards_compute() ? 0 : stored_items().begin;
  return {compute_.data() + dtype_bytes(how_.compute, first),
          static_cast<std::size_t>(dtype_bytes(how_.compute, stored_items().items()))};
}

std::span<u8> LiveGroup::stored() const {
  if (!how_.main) return own_compute();
  return {main_.data(), static_cast<std::size_t>(main_.bytes())};
}

void LiveGroup::refresh() {
  assert(loaded() && !unsharded());
  writes_.wait();
  Shape flat{stored_items().items()};
  if (how_.main)
    Tensor::over(how_.compute, flat, own_compute().data())
        .copy_from(Tensor::over(*how_.main, flat, main_.data()));
  stale_ = how_.strategy == Strategy::kOptim || how_.strategy == Strategy::kOptimGrads;
}

i64 LiveGroup::gather_bytes() const {
  bool gathers = shards_compute() && buffer().shards > 1;
  return gathers ? dtype_bytes(how_.compute, buffer().bucket_items) : 0;
}

void LiveGroup::unshard() {
  if (unsharded()) return;
  assert(loaded());
  writes_.wait();
  u8* whole = compute_.data();
  if (gather_bytes() > 0) {
    gather_ = Block(gathered_, gather_bytes());
    whole = gather_.data();
  }
  if (gather_bytes() > 0 || stale_) {
    std::span<u8> all(whole, static_cast<std::size_t>(dtype_bytes(how_.compute, buffer().bucket_items)));
    ranks_.all_gather(std::as_bytes(own_compute()), std::as_writable_bytes(all));
  }
  stale_ = false;
  whole_ = whole;
}

void LiveGroup::reshard() {
  whole_ = nullptr;
  gather_ = Block();
}

}  // namespace mckpt
