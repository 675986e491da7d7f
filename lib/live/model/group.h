// LiveGroup: one rank's weights of one parameter group, in the flat buffers of Megatron-FSDP.
//
//   strategy             compute weights    main weights (fp32, if any)   to unshard
//   no_shard             whole              whole                         nothing
//   optim, optim_grads   whole              the rank's shard              the other ranks' shards, in place
//   optim_grads_params   the rank's shard   the rank's shard              a whole buffer, freed by reshard
//
// Loading fills, and saving reads, the stored weights: the main ones, or the compute ones where there are no
// main ones. Collectives are called by all ranks that share the group, in the same order.
#pragma once

#include <optional>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "live/device/memory.h"
#include "live/model/pending_writes.h"
#include "mappings/fsdp/groups.h"

namespace mckpt::impl {

class Device;
class DeviceRanks;
class Lane;

class LiveGroup {
 public:
  struct How {
    Strategy strategy = Strategy::kOptimGradsParams;
    i64 shard = 0;
    DType compute = DType::kBF16;
    std::optional<DType> main;
  };
  // Where it lives.
  struct Home {
    Device& device;      // holds what stays
    Memory& gathered;    // of the device too: what unsharding needs
    DeviceRanks& ranks;  // those that share the buffer, in the order of their shards
    // One gather begins when the one before has ended, whatever group of the model it is of: ranks that run
    // two of NCCL's kernels in different orders may wait for each other for ever.
    Lane& gathers;
  };
  // What the home names outlives this.
  LiveGroup(FsdpGroup packed, const How& how, const Home& home);

  const Bucket& bucket() const { return packed_.bucket; }
  const FlatBuffer& buffer() const { return packed_.buffer; }
  const How& how() const { return how_; }

  void allocate();  // what is there stays
  void drop();      // waits for writes. pre: not unsharded
  i64 held_bytes() const { return compute_.bytes() + main_.bytes(); }
  i64 weight_bytes() const;  // the same, once allocated
  bool loaded() const { return compute_.data() != nullptr; }

  // The items of the bucket whose stored weights this rank has, and the memory that holds them.
  ItemRange stored_items() const;
  DType stored_type() const { return how_.main.value_or(how_.compute); }
  std::span<u8> stored() const;  // device memory; empty unless loaded
  // What of a member's items that is.
  ItemRange stored_items_of(i64 member) const;

  // Makes the compute weights those of the stored ones, in two halves, so that those of other groups are made
  // meanwhile. The first waits for writes. pre: loaded, not unsharded.
  void begin_refresh();
  void finish_refresh();
  // Unsharding in two halves. The first waits for writes and sets what has to come from other ranks on its
  // way; when it throws, nothing has happened. When the second throws, nothing has come. pre: loaded.
  void begin_unshard();
  void finish_unshard();
  void reshard();                                       // done also when it throws
  bool unsharded() const { return whole_ != nullptr; }  // or going to be
  u8* whole() const { return whole_; }  // device memory: the bucket's compute weights; null unless unsharded
  i64 received_bytes() const { return received_; }  // from other ranks so far

  PendingWrites& writes() { return writes_; }

 private:
  bool shards_compute() const { return how_.strategy == Strategy::kOptimGradsParams; }
  i64 compute_items() const { return shards_compute() ? stored_items().items() : buffer().bucket_items; }
  std::span<u8> own_compute() const;  // the stored items of the compute weights
  i64 gather_bytes() const;           // what unsharding takes of `gathered`
  Lane& lane();

  FsdpGroup packed_;
  How how_;
  Home home_;
  Block compute_, main_, gather_;
  std::unique_ptr<Lane> lane_;  // made when it is first needed
  bool under_way_ = false;      // what unsharding needs of other ranks
  i64 received_ = 0;
  u8* whole_ = nullptr;
  bool stale_ = false;  // compute weights of other ranks' shards are not theirs
  PendingWrites writes_;
};

}  // namespace mckpt::impl
