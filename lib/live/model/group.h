// LiveGroup: one rank's weights of one parameter group, in the flat buffers of Megatron-FSDP. A group is a
// list of parameters that are packed into one buffer, of which each rank has a shard:
//
//   bucket of 40 items over 2 ranks     [ w (18 items) | b (6) | v (12) | padding ]     rank 0: 0-19, rank 1: 20-39
//
//   strategy             compute weights    main weights (fp32, if any)   to unshard
//   no_shard             whole              whole                         nothing
//   optim, optim_grads   whole              the rank's shard              the other ranks' shards, in place
//   optim_grads_params   the rank's shard   the rank's shard              a whole buffer, freed by reshard
//
// Loading fills, and saving reads, the stored weights: the main weights, or the compute weights if there are
// no main weights. Unsharding and resharding are called by all ranks that share the group, in the same order.
#pragma once

#include <optional>

#include "live/device/device.h"
#include "live/model/pending_writes.h"
#include "mappings/fsdp/groups.h"

namespace mckpt::impl {

// One group of one rank. Used by one thread, except writes(), through which a loader in another thread is
// waited for.
class LiveGroup {
 public:
  // How the group is sharded: the strategy, this rank's shard, and the types of its weights (`main` empty: no
  // main weights).
  struct How {
    Strategy strategy = Strategy::kOptimGradsParams;
    i64 shard = 0;
    DType compute = DType::kBF16;
    std::optional<DType> main;
  };
  // The memory and the ranks of the group. Everything that a Home refers to outlives the group.
  struct Home {
    Device& device;      // its memory holds the weights
    Memory& gathered;    // also memory of the device: for the buffers of unsharded groups
    DeviceRanks& ranks;  // the ranks that share the buffer, in the order of their shards
    // One gather begins when the one before has ended, whatever group of the model it is of: ranks that run
    // two of NCCL's kernels in different orders may wait for each other for ever.
    Lane& gathers;
  };
  LiveGroup(FsdpGroup packed, const How& how, const Home& home);

  const Bucket& bucket() const { return packed_.bucket; }
  const FlatBuffer& buffer() const { return packed_.buffer; }
  const How& how() const { return how_; }

  void allocate();  // does nothing if the group is loaded
  void drop();      // frees the weights; waits for writes. pre: not unsharded
  i64 held_bytes() const { return compute_.bytes() + main_.bytes(); }
  i64 weight_bytes() const;  // held_bytes() of an allocated group
  bool loaded() const { return compute_.data() != nullptr; }

  // The items of the bucket whose stored weights this rank has, and the memory that holds them.
  ItemRange stored_items() const;
  DType stored_type() const { return how_.main.value_or(how_.compute); }
  std::span<u8> stored() const;  // device memory; empty unless loaded
  // The part of stored_items() that belongs to one member, in the member's own items; may be empty.
  ItemRange stored_items_of(i64 member) const;

  // Makes the compute weights from the stored ones, in two halves, so that several groups are made at once.
  // The first half waits for writes. pre: loaded, not unsharded.
  void begin_refresh();
  void finish_refresh();
  // Unsharding in two halves. The first waits for writes and starts the gather of the other ranks' shards; if
  // it throws, the group is unchanged. The second waits for the gather; if it throws, the buffer is not
  // complete. pre: loaded.
  void begin_unshard();
  void finish_unshard();
  void reshard();                                       // the group is sharded afterwards, also if it throws
  bool unsharded() const { return whole_ != nullptr; }  // true from begin_unshard() on
  u8* whole() const { return whole_; }  // device memory: the bucket's compute weights; null unless unsharded
  i64 received_bytes() const { return received_; }  // from other ranks so far

  PendingWrites& writes() { return writes_; }

 private:
  bool shards_compute() const { return how_.strategy == Strategy::kOptimGradsParams; }
  i64 compute_items() const { return shards_compute() ? stored_items().items() : buffer().bucket_items; }
  std::span<u8> own_compute() const;  // the stored items of the compute weights
  i64 gather_bytes() const;           // the bytes of `gathered` that unsharding takes
  Lane& lane();

  FsdpGroup packed_;
  How how_;
  Home home_;
  Block compute_, main_, gather_;
  std::unique_ptr<Lane> lane_;  // made when it is first needed
  bool under_way_ = false;      // a gather was started and not waited for
  i64 received_ = 0;
  u8* whole_ = nullptr;
  bool stale_ = false;  // the whole compute weights are old outside the rank's own shard
  PendingWrites writes_;
};

}  // namespace mckpt::impl
