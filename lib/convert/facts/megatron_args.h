// The objects beside the tensors of a checkpoint, as pickles that Megatron loads:
//
//   args                 argparse.Namespace(num_layers=28, hidden_size=2048, tensor_model_parallel_size=2, ...)
//   checkpoint_version   3.0
//   iteration            10
//
// The args contain what describes the model and the run that wrote it: what a run that takes its arguments
// from the checkpoint reads back, and the sizes of the blocks that its command line would otherwise repeat.
// Every other argument keeps the value that the new run gives it. docs/formats/megatron_args.md lists the
// fields, and those that are left out.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/strategy.h"
#include "core/items/dtype.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

struct Grid;
class ModelMap;
class PickleWriter;
struct RunEntries;
struct RunSetup;

// The format of the checkpoint that has the args, which Megatron calls ckpt_format.
enum class ArgsFormat : u8 { kFsdpDtensor, kTorchDist, kTorch };

// The values that the args are made of. All references outlive the struct.
struct MegatronArgs {
  const ModelMap& map;
  const RunEntries& entries;  // of config.json
  const Grid& grid;
  const RunSetup& run;
  i64 iteration = 0;
  bool has_states = false;  // the checkpoint has the states of the optimizer as well
  ArgsFormat format = ArgsFormat::kFsdpDtensor;
  Strategy strategy = Strategy::kOptimGradsParams;  // of a run under Megatron-FSDP
  PipelineOptions pipeline = {};
  i64 rank = -1;  // whose file has the args; -1: all ranks have them
};

// The integer fields of the args that describe a grid, with their values.
std::array<std::pair<std::string_view, i64>, 8> grid_args(const Grid& grid);
// The field of the args with the rows of the vocabulary, padding included.
inline constexpr std::string_view kPaddedVocab = "padded_vocab_size";
// The field of the number of which they are a multiple, for each tensor rank: a run computes them of it.
inline constexpr std::string_view kVocabDivisor = "make_vocab_size_divisible_by";
// The fields that say the format of a checkpoint and whether Megatron-FSDP wrote it.
inline constexpr std::string_view kFormatArg = "ckpt_format", kFsdpArg = "use_megatron_fsdp";
// The fields that say whether the ranks share the states of the optimizer, and whether the checkpoint has
// none.
inline constexpr std::string_view kDistributed = "use_distributed_optimizer", kNoStates = "no_save_optim";
// The fields that say which rank's file has the args, and of which iteration the checkpoint is.
inline constexpr std::string_view kRankArg = "rank", kIterationArg = "iteration";
// The field of the number of chunks of layers on each stage of a pipeline; None: one.
inline constexpr std::string_view kChunksArg = "virtual_pipeline_model_parallel_size";
// The fields that say how a pipeline's stages divide the layers; without stages they are None.
std::span<const std::string_view> pipeline_args();
// The pipeline fields that a run has, with their values. `pattern`: as in pipeline_split().
std::vector<std::pair<std::string_view, i64>> pipeline_values(const ModelMap& map, i64 stages,
                                                              const PipelineOptions& options,
                                                              const LayerPattern* pattern);
// Whether a field of the args describes a grid, or follows from a grid, its sharding strategy, the format and
// what a conversion keeps.
bool is_grid_arg(std::string_view name);

// The value that kVocabDivisor of a source's args, a pickle, gets so that a run computes `rows` on
// `tensor_ranks`: as in a conversion of the model itself. Nothing if they have none, or the grid is theirs
// and their value does so.
std::optional<i64> other_vocab_divisor(std::string_view args, const ModelMap& map, i64 rows,
                                       i64 tensor_ranks);

// One field of the args. The name is a constant of the program.
struct ArgField {
  using Value = std::variant<bool, i64, double, std::string, std::vector<i64>, DType>;
  std::string_view name;
  Value value;
};
// The fields that describe the model: what every run of it says, on whatever grid. A comparison with the args
// of a run expects these (convert/facts/unlike_args.h).
std::vector<ArgField> model_fields(const MegatronArgs& args);

// The args as a part of a larger pickle.
void write_args(PickleWriter& pickle, const MegatronArgs& args);

// The pickles of the three objects, each a whole pickle of its own.
std::string pickle_args(const MegatronArgs& args);
std::string pickle_integer(i64 value);
std::string pickle_real(double value);

}  // namespace mckpt::impl
