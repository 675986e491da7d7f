// LiveModel: one rank's part of a model that is sharded as Megatron-FSDP shards it, with libtorch's tensors.
// It is built from a configuration on the meta device; loading gives it memory.
//
//   modules --own--> parameters --fully_shard--> groups (flat buffers)     unshard: parameters get their
//   "decoder.layers.0"           marks, tensor            |  tensors       values, gathered from the ranks
//                                                         '- stored weights: this rank's shard
//
// Collectives (construction, unshard, whatever says so) are called by all ranks of the job in the same order.
#pragma once

#include <exception>
#include <functional>

#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "live/device/device_links.h"
#include "live/device/memory.h"
#include "live/model/module_tree.h"
#include "live/device/tensor.h"
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

struct LiveSetup {
  Grid grid;
  RunSetup run;
  FsdpSetup fsdp;
  std::optional<DType> main_dtype = DType::kF32;  // of trained parameters' main weights; none: they have none
  std::function<void(std::vector<ModelParameter>&)> adjust = [](auto&) {};  // which are frozen
};

class LiveModel {
 public:
  // Collective. All outlive this. `gathered` is memory of the device, for what unsharding needs. Throws what
  // ModelMap::parameters() does, kBadGrid when the world is not that of the grid, kModuleMissing.
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

  // Packs the parameters of a module, and of those inside it that are not sharded on their own, into groups.
  // Called again it does so anew, and weights that were loaded are gone. Throws kBadLayout while one of these
  // modules is unsharded, or when they belong to a module that was sharded before.
  void fully_shard(i32 module);
  // Every layer that is an FSDP unit under the setup, then the model: as Megatron-FSDP wraps it.
  void wrap();
  const std::vector<i32>& sharded_modules() const { return sharded_; }  // in the order of their numbers
  const std::vector<std::unique_ptr<LiveGroup>>& groups_of(i32 sharded_module) const;
  std::vector<LiveGroup*> groups() const;

  // The place of a parameter.
  struct Seat {
    LiveGroup* group = nullptr;  // null: not sharded, or a buffer
    i64 member = 0;
    i32 module = -1;  // that it was sharded with
  };
  const Seat& seat(i32 parameter) const { return seats_[parameter]; }
  // A buffer's own bytes, on the device; empty unless loaded.
  std::span<u8> buffer_bytes(i32 parameter) const;
  // The stored weights of a parameter that this rank has, as rows of it; none where it has none.
  std::optional<Tensor> stored_shard(i32 parameter) const;

  // Collective. Memory for everything. pre: every parameter is sharded; else throws kBadLayout.
  void allocate();
  void drop();  // gives it back. Throws kBadLayout while a module is unsharded.
  bool loaded() const;
  i64 weight_bytes() const;    // that this rank holds while nothing is unsharded
  i64 received_bytes() const;  // from other ranks so far, by unsharding
  // Throws kBadLayout, saying what cannot be done, while the module or one inside it is unsharded.
  void refuse_unsharded(i32 module, const char* what) const;
  // Whoever reads stored weights begins with it. Throws kReadFailed when a write has failed.
  void wait_for_writes() const;

  // Collective. Gives the parameters of the module their values, those of modules inside it that are sharded
  // on their own only where a fused path reads them directly. What two modules share stays until both are
  // resharded. Throws kBadLayout unless loaded. When it or prefetch() throws, the module is sharded.
  void unshard(i32 module);
  // The same, but what comes from other ranks may be on its way still: unshard() waits for it.
  void prefetch(i32 module);
  void reshard(i32 module);  // done also when it throws
  void refresh();            // of every group

  // The rows of an unsharded parameter that this rank's place among the context-parallel ranks computes with.
  // Throws kBadLayout while it is sharded.
  Tensor cp_slice(i32 parameter) const;

 private:
  std::vector<i32> members_for(i32 module) const;
  std::vector<LiveGroup*> groups_for(i32 module) const;
  void check_memory_room() const;
  void set_tensors(LiveGroup& group);
  std::exception_ptr let_go(i32 module);  // reshards it; returns what went wrong first
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
  std::vector<i32> sharded_;
  std::vector<std::vector<std::unique_ptr<LiveGroup>>> groups_;  // by module
  std::vector<std::vector<LiveGroup*>> held_;                    // by module: what it keeps unsharded
  std::unordered_map<LiveGroup*, int> users_;                    // modules that keep a group unsharded
};

}  // namespace mckpt::impl
