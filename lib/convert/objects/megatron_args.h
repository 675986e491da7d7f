// The objects beside the tensors of an fsdp_dtensor checkpoint, as pickles that Megatron loads:
//
//   args                 argparse.Namespace(num_layers=28, hidden_size=2048, tensor_model_parallel_size=2, ...)
//   checkpoint_version   3.0
//   iteration            10
//
// The args contain what Megatron reads back of a model and its run, and no more: every other argument keeps
// the value that the new run gives it.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/int.h"

namespace mckpt::impl {

class DcpLayout;
struct FsdpRun;
struct Grid;
struct ModelConfig;

// What the args are made of. Model and run outlive the struct.
struct MegatronArgs {
  const ModelConfig& model;
  const FsdpRun& run;
  i64 iteration = 0;
  i64 max_positions = 0;    // 0: config.json does not give it
  bool has_states = false;  // the checkpoint has the states of the optimizer as well
};

// The integer fields of the args that describe a grid, with their values.
std::array<std::pair<std::string_view, i64>, 8> grid_args(const Grid& grid);
// Whether a field of the args describes a grid, or follows from a grid and its sharding strategy.
bool is_grid_arg(std::string_view name);

// The pickles of the three objects, each a whole pickle of its own.
std::string pickle_args(const MegatronArgs& args);
std::string pickle_integer(i64 value);
std::string pickle_real(double value);

// Adds the three objects to the layout, in the file of rank 0. pre: all chunks of rank 0 are in the layout.
void add_run_objects(DcpLayout& layout, const MegatronArgs& args);

}  // namespace mckpt::impl
