// The contents of the pickles in a checkpoint folder of DeepSpeed ZeRO: the file of the model names the
// parameters, the file of each rank has its parts of their float32 weights and of the optimizer's states.
//
//   mp_rank_00_model_states.pt      param_shapes [{"a": (4, 6), "b": (7,)}], buffer_names, shared_params, ...
//   zero_pp_rank_1_..optim_states   zero_stage 2, partition_count [2], single_partition_of_fp32_groups [T],
//                                   base_optimizer_state {"state": {0: {"step": T, "exp_avg": T, ..}}}
//
// Names point into the pickles.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class TorchTable;

// Before the name of a parameter that was not trained: its row in the model's file.
inline constexpr std::string_view kZeroFragments = "frozen_param_fragments.";

struct ZeroParameter {
  std::string_view name;
  Shape shape;
  friend bool operator==(const ZeroParameter&, const ZeroParameter&) = default;
};
using ZeroGroup = std::vector<ZeroParameter>;

// The file of the model.
struct ZeroModelStates {
  std::optional<std::vector<ZeroGroup>> groups{};  // trained parameters; nothing: the file is not a save of
                                                   // ZeRO
  ZeroGroup frozen{};
  bool leaves_out_frozen = false;  // there is no list: ZeRO 1 never has one
  std::vector<std::string_view> buffers{};
  std::vector<std::pair<std::string_view, std::string_view>> shared{};  // a second name, and the first
  i64 stage = 0, ranks = -1, steps = -1;                                // -1: not said
  bool takes_turns = false;                                             // ds_config has round_robin_gradients
  i64 model_ranks = -1, stages = -1;  // tensor-parallel and pipeline ranks as one number; pipeline ranks
  std::vector<i64> experts{};         // of each layer of DeepSpeed-MoE
  i64 expert_ranks = 0;  // that have states of experts in files of their own, without ZeRO; 0: not said
  std::string version{};
};

// The file of one rank.
struct ZeroOptimizerStates {
  // Where a parameter begins in a part, by DeepSpeed's own account.
  struct Address {
    i64 begin, items;
  };
  struct State {
    std::string_view name;
    i64 row;
  };
  // Group of the optimizer; in ZeRO 3 a sub-group, which does not matter for the order.
  struct Group {
    i64 part = -1;  // the row of the table with the float32 weights; -1: it could not be read
    i64 ranks = 0;  // that share one vector of weights: for experts fewer than in all
    i64 padding = 0;
    std::vector<i64> gaps{};  // after each parameter; empty: none
    std::vector<State> states{};
    std::optional<NameMap<std::string_view, Address>> addresses{};
  };
  i64 stage = 0, ranks = 0;
  std::vector<Group> groups{};
  i64 step_row = -1;             // a tensor of one item
  std::optional<double> step{};  // the number of the optimizer's steps
  std::string version{};
};

// The rows of a table by their names.
class ZeroRows {
 public:
  explicit ZeroRows(const TorchTable& table);
  i64 row(std::string_view name) const;  // -1: there is no tensor of the name

 private:
  NameMap<std::string_view, i64> rows_;
};

// Throw kBadTorchFile or kBadPickle for a file of another kind, kUnsupportedTorchFile for what cannot be
// joined.
ZeroModelStates read_zero_model(const TorchTable& table);
ZeroOptimizerStates read_zero_optimizer(const TorchTable& table);

}  // namespace mckpt::impl
