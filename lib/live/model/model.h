// LiveModel: one rank's part of a model that is sharded as Megatron-FSDP shards it, with libtorch's tensors.
// It is built from a configuration on the meta device, without memory; loading gives it memory and values.
//
//   modules --own--> parameters --fully_shard--> groups (flat buffers)     unshard: parameters get their
//   "decoder.layers.0"           marks, tensor            |  tensors       values, gathered from the ranks
//                                                         '- stored weights: this rank's shard
//
// The life of a model:
//
//   LiveModel(...)      parameters and modules; tensors on the meta device
//   wrap()              groups: which rank has which shard
//   load_from_...()     allocate(), fill the stored weights, refresh()
//   unshard(m) ... reshard(m)    as often as needed: the values of one module are whole in between
//   save_job(), export_model()   read the stored weights
//
// Collective functions (construction, unshard, prefetch, allocate, loading, exporting) are called by all
// ranks of the job in the same order.
#pragma once

#include <exception>
#include <functional>

#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "live/device/device_links.h"
#include "live/device/memory.h"
#include "live/device/tensor.h"
#include "live/model/direct_reads.h"
#include "live/model/module_tree.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter_marks.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

class Comm;
class Device;
class DeviceRanks;
class Lane;
class LiveGroup;
class ModelMap;
struct ModelParameter;

// How a training run sets the model up; equal on all ranks.
struct LiveSetup {
  Grid grid;
  RunSetup run;
  FsdpSetup fsdp;
  // The type of the main weights of trained parameters, under v2 of frozen ones as well; empty: there are
  // none.
  std::optional<DType> main_dtype = DType::kF32;
  std::function<void(std::vector<ModelParameter>&)> adjust = [](auto&) {};  // marks the frozen parameters
};

// The model of one rank, used by one thread. It owns its groups and buffers; map, ranks, device and memory
// outlive it.
class LiveModel {
 public:
  // Collective. All arguments outlive the model. `gathered` is memory of the device, for unsharded buffers.
  // Throws what ModelMap::parameters() throws, kBadGrid if the number of ranks is not the grid's,
  // kModuleMissing.
  LiveModel(const ModelMap& map, LiveSetup setup, Comm& world, Device& device, Memory& gathered);
  ~LiveModel();

  const ModelMap& map() const { return map_; }
  const LiveSetup& setup() const { return setup_; }
  const Cell& cell() const { return cell_; }
  Comm& world() const { return world_; }
  Device& device() const { return device_; }
  DeviceRanks& world_ranks() const { return *world_ranks_; }
  // The ranks of this rank's host, which read the same files.
  Comm& host() const { return *host_; }
  DeviceRanks& host_ranks() const { return *host_ranks_; }
  const ModuleTree& modules() const { return tree_; }
  const std::vector<ModelParameter>& parameters() const { return parameters_; }
  const ParameterMarks& marks(i32 parameter) const { return marks_[parameter]; }
  // On the meta device unless its module is unsharded; buffers, unless loaded.
  const Tensor& tensor(i32 parameter) const { return tensors_[parameter]; }

  // Packs the parameters of a module, and of the modules inside it that are not sharded on their own, into
  // groups. A second call packs them anew and frees weights that were loaded. Throws kBadLayout if one of
  // these modules is unsharded, or if a module around this one was sharded before it.
  void fully_shard(i32 module);
  // Shards every module that is an FSDP unit under the setup, then the model, as Megatron-FSDP does.
  void wrap();
  const std::vector<i32>& sharded_modules() const { return sharded_; }  // in the order of their numbers
  i32 sharded_with(i32 module) const;  // the innermost sharded module around it, or itself; -1: none
  const std::vector<std::unique_ptr<LiveGroup>>& groups_of(i32 sharded_module) const;
  std::vector<LiveGroup*> groups() const;

  // The place of a parameter: its group, its number in the group, and the module that it was sharded with.
  struct Seat {
    LiveGroup* group = nullptr;  // null: not sharded, or a buffer
    i64 member = 0;
    i32 module = -1;
  };
  const Seat& seat(i32 parameter) const { return seats_[parameter]; }
  // A buffer's own bytes, on the device; empty unless loaded.
  std::span<u8> buffer_bytes(i32 parameter) const;
  // The stored weights of a parameter that this rank has, as rows of the parameter; nothing if it has none.
  std::optional<Tensor> stored_shard(i32 parameter) const;

  // Collective. Allocates all weights and buffers. Throws kBadLayout if a parameter is in no group,
  // kOutOfMemory.
  void allocate();
  void drop();  // frees all weights and buffers. Throws kBadLayout while a module is unsharded.
  bool loaded() const;
  i64 weight_bytes() const;    // the memory of this rank's weights and buffers
  i64 received_bytes() const;  // received from other ranks so far, by unsharding
  // Throws kBadLayout, "a module cannot be <what>", while the module or one inside it is unsharded.
  void refuse_unsharded(i32 module, const char* what) const;
  // Waits until no load writes into the weights. Called before stored weights are read. Throws kReadFailed if
  // a load has failed.
  void wait_for_writes() const;

  // Collective. Gives the parameters of the module their values. Parameters of modules that are sharded on
  // their own get values only if a module reads them directly (live/model/direct_reads.h). Groups that two
  // modules share stay unsharded until both are resharded. Throws kBadLayout unless loaded. If unshard() or
  // prefetch() throws, the module is sharded.
  void unshard(i32 module);
  // The parameters of modules elsewhere that unsharding this one gathers too.
  std::vector<i32> extra_parameters(i32 module) const;
  // Collective. Starts what unshard() does and does not wait for other ranks; unshard() waits.
  void prefetch(i32 module);
  void reshard(i32 module);  // the module is sharded afterwards, also if it throws
  void refresh();            // makes the compute weights of all groups from the stored ones

  // The rows of an unsharded parameter with which this rank computes, by its place among the context-parallel
  // ranks. Throws kBadLayout while the parameter is sharded.
  Tensor cp_slice(i32 parameter) const;

 private:
  std::vector<i32> members_for(i32 module) const;
  std::vector<LiveGroup*> groups_for(i32 module) const;
  void check_memory_room() const;
  void set_tensors(LiveGroup& group);
  std::exception_ptr let_go(i32 module);  // reshards it; returns the first error
  // The ranks that share a kind of buffers of this rank, ordered by shard.
  struct Sharers {
    std::unique_ptr<Comm> comm;
    DeviceRanks* ranks = nullptr;
  };

  const ModelMap& map_;
  LiveSetup setup_;
  Comm& world_;
  Device& device_;
  Memory& gathered_;
  Cell cell_;
  std::unique_ptr<Comm> host_;
  Sharers dense_, expert_;
  DeviceLinks links_;
  DeviceRanks *world_ranks_, *host_ranks_;
  std::unique_ptr<Lane> gathers_;
  std::vector<ModelParameter> parameters_;
  std::vector<ParameterMarks> marks_;
  std::vector<Tensor> tensors_;
  std::vector<Seat> seats_;
  std::vector<Block> buffers_;  // by parameter; empty for those that are not buffers
  ModuleTree tree_;
  DirectReads reads_;
  std::vector<i32> sharded_;
  std::vector<std::vector<std::unique_ptr<LiveGroup>>> groups_;  // by module
  std::vector<std::vector<LiveGroup*>> held_;  // by module: the groups that it keeps unsharded
  std::unordered_map<LiveGroup*, int> users_;  // the number of modules that keep a group unsharded
};

}  // namespace mckpt::impl
