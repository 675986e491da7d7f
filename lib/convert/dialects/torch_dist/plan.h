// TorchDistPlan: what the ranks of a Megatron run write into a torch_dist checkpoint, computed without a run.
// A rank writes its tensor-parallel part of each of its parameters as one box, or as one box for each part of
// a fused parameter; of ranks that hold the same box the first one writes it:
//
//   decoder.layers.mlp.linear_fc1.weight [3, 352, 96]       layer 1 of 3, tp 2, rank 1 of the run
//       rows  88 to 175 of gate    offsets [1,  88, 0]   sizes [1, 88, 96]
//       rows  88 to 175 of up      offsets [1, 264, 0]   sizes [1, 88, 96]
//
// States of the optimizer are cut as their parameters are, under optimizer.state.<kind>.<key>. Neither
// context nor data parallelism changes a box: their ranks hold copies.
//
// The cost grows with (cells x keys). No tensor data are read.
#pragma once

#include <string>
#include <vector>

#include "convert/jobs/stored_types.h"
#include "convert/keys/stored_chunks.h"
#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/items/dtype.h"
#include "io/dcp/write/layout.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

class KeyTable;
struct ModelConfig;

// How the layers of the language model are stored.
enum class LayerStacks : u8 {
  kAuto,     // as Megatron stores them for this model
  kStacked,  // all layers are one tensor
  kIndexed   // each layer has tensors of its own
};

// Whether Megatron stores the layers of the language model as one tensor: if they are alike, and no
// layer-wise frequency (of experts, of linear attention) or pattern describes them. Where two kinds of
// attention are stacked apart, the rest of the layers is alike. Layers of a vision tower that Megatron builds
// always are one tensor, layers of a tower of Hugging Face never. Throws kUsage for kStacked if the layers
// differ.
bool stacks_layers(const ModelConfig& model, LayerStacks choice);

// A training run that saves torch_dist.
struct TorchDistRun : StoredTypes {
  Grid grid;
  RunSetup run;
  PipelineOptions pipeline{};  // decides which rank's file a layer is in, and nothing else
  bool stacked = false;        // stacks_layers()
  // Norms in front of experts have the name of Megatron's own modules: own_norm_of_experts()
  bool own_norms = false;
  Adjust adjust{};  // of the parameters of each rank, such as their types; may be empty
  int threads = 1;  // that plan
};

// A state of the optimizer that is stored for a key.
struct TorchDistState {
  std::string kind;  // "exp_avg"
  DType dtype = DType::kF32;
};
using TorchDistStates = std::vector<std::vector<TorchDistState>>;  // by key of the table

// The plan, a value. It refers to no argument after construction.
struct TorchDistPlan {
  // `keys`: a table made with torch_dist_split. pre: `states` is empty or has an entry for each key of the
  // table. Throws kGridMisfit.
  TorchDistPlan(const KeyTable& keys, const TorchDistRun& run, const TorchDistStates& states = {});

  DcpLayout layout;
  std::vector<i32>
      leading;  // by key of the layout: dimensions for layers and experts in front of the table's
  std::vector<i32>
      state;  // by key of the layout: the number of its state among the states of its table key; -1: a weight
  std::vector<i32> table_key;    // by chunk of the layout: the key in the table of which it is a box
  std::vector<i32> first_chunk;  // by key of the layout
};

// The chunks of a TorchDistPlan under the keys of its table: a chunk of a tensor of all layers is a box of
// the key of its own layer. The plan outlives this.
class TorchDistChunks final : public PlannedChunks {
 public:
  explicit TorchDistChunks(const TorchDistPlan& plan) : PlannedChunks(plan.layout, {}), plan_(plan) {}

  i32 key(i64 c) const override { return plan_.table_key[c]; }
  Box box(i64 c) const override;
  std::span<const i64> dims(i64 c) const override { return PlannedChunks::dims(c).subspan(leading(c)); }

 private:
  std::size_t leading(i64 c) const { return static_cast<std::size_t>(plan_.leading[tensor(c)]); }

  const TorchDistPlan& plan_;
};

}  // namespace mckpt::impl
