// The objects beside the tensors of an fsdp_dtensor checkpoint, as pickles: `args`, an argparse.Namespace
// with what Megatron reads back of a model and its run, `checkpoint_version` and `iteration`.
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

struct MegatronArgs {
  const ModelConfig& model;
  const FsdpRun& run;
  i64 iteration = 0;
  i64 max_positions = 0;  // 0: config.json does not say
};

// What the args say of a grid in numbers.
std::array<std::pair<std::string_view, i64>, 8> grid_args(const Grid& grid);
// Whether a field of the args is one of these, or follows from a grid and its strategy.
bool is_grid_arg(std::string_view name);

std::string pickle_args(const MegatronArgs& args);
std::string pickle_integer(i64 value);
std::string pickle_real(double value);

// What a run saves beside its tensors, in the file of rank 0. pre: the rank's chunks are all there.
void add_run_objects(DcpLayout& layout, const MegatronArgs& args);

}  // namespace mckpt::impl
