// Allocates the buffers of a group and starts its gathers and casts. Work is given to the group's lane and
// waited for later, so that the gathers of the next group overlap with the computation of this one.
//
//   begin_unshard    lane follows the model's gathers, all_gather into `gathered`, gathers follow the lane
//   finish_unshard   wait for the lane
#include "live/model/group.h"

#include <cassert>
#include <utility>

namespace mckpt::impl {

LiveGroup::LiveGroup(FsdpGroup packed, const How& how, const Home& home)
    : packed_(std::move(packed)), how_(how), home_(home) {
  assert(how_.strategy == Strategy::kNoShard || home_.ranks.size() == buffer().shards);
}

Lane& LiveGroup::lane() {
  if (!lane_) lane_ = home_.device.lane();
  return *lane_;
}

// All items of the bucket if nothing is sharded, else the rank's shard.
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
  Block compute(home_.device.weights(), dtype_bytes(how_.compute, compute_items()));
  if (how_.main) main_ = Block(home_.device.weights(), dtype_bytes(*how_.main, stored_items().items()));
  compute_ = std::move(compute);
}

i64 LiveGroup::weight_bytes() const {
  return dtype_bytes(how_.compute, compute_items()) +
         (how_.main ? dtype_bytes(*how_.main, stored_items().items()) : 0);
}

// Waits for writes without throwing their failures: the weights are freed either way.
void LiveGroup::drop() {
  assert(!unsharded());
  writes_.settle();
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

// Casts the main weights to the rank's own part of the compute weights. If the compute weights are whole
// (optim, optim_grads), the parts of other ranks are old until the next gather.
void LiveGroup::begin_refresh() {
  assert(loaded() && !unsharded());
  writes_.wait();
  if (how_.main) {
    const ItemCopy all[] = {{main_.data(),
                             own_compute().data(),
                             stored_items().items(),
                             {},
                             {},
                             {*how_.main, how_.compute, how_.compute, 0, 0}}};
    lane().scatter(all);
  }
  stale_ = how_.strategy == Strategy::kOptim || how_.strategy == Strategy::kOptimGrads;
}

void LiveGroup::finish_refresh() {
  if (how_.main) lane().wait();
}

i64 LiveGroup::gather_bytes() const {
  bool gathers = shards_compute() && buffer().shards > 1;
  return gathers ? dtype_bytes(how_.compute, buffer().bucket_items) : 0;
}

// The whole buffer is `gathered` memory if the compute weights are sharded over several ranks, else the
// compute weights themselves. A gather is needed in the first case, and in the second only if the other
// ranks' parts are old.
void LiveGroup::begin_unshard() {
  if (unsharded()) return;
  assert(loaded());
  writes_.wait();
  Block gathered;
  if (gather_bytes() > 0) gathered = Block(home_.gathered, gather_bytes());
  u8* whole = gathered.data() ? gathered.data() : compute_.data();
  if (gather_bytes() > 0 || stale_) {
    std::span<u8> all(whole, static_cast<std::size_t>(dtype_bytes(how_.compute, buffer().bucket_items)));
    lane().follow(home_.gathers);
    home_.ranks.all_gather(lane(), own_compute(), all);
    home_.gathers.follow(lane());
    under_way_ = true;
    received_ += std::ssize(all) - std::ssize(own_compute());
  }
  gather_ = std::move(gathered);
  whole_ = whole;
}

void LiveGroup::finish_unshard() {
  if (!under_way_) return;
  home_.ranks.wait(lane());
  under_way_ = stale_ = false;
}

void LiveGroup::reshard() {
  // The buffer is freed when the gather into it has ended, and also if waiting for that fails.
  Block gathered = std::move(gather_);
  whole_ = nullptr;
  if (!std::exchange(under_way_, false)) return;
  home_.ranks.wait(lane());
  stale_ = false;
}

}  // namespace mckpt::impl
