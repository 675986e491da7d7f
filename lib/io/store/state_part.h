// The purpose of a tensor of a checkpoint, as far as its name and its type show it, and how many parameters
// of the model it contains. `inspect` counts the parameters of a checkpoint by it.
//
//   optimizer.state.0.exp_avg     optimizer         rng_state.torch    other
//   experts.down_proj_blocks      model, two parameters in each uint8
//   experts.down_proj_scales      other: the numbers by which packed values are multiplied
//
// No format says what a tensor is for, so this is a guess by the words that known programs use (torch,
// Megatron, DeepSpeed, Lightning; GPTQ, AWQ, bitsandbytes, compressed-tensors). A tensor that no word fits is
// of the model.
#pragma once

#include <string_view>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"

namespace mckpt::impl {

class Store;

// Parameters, the state of an optimizer, or neither (random states, schedules, numbers of steps, scales of
// quantized weights, buffers that a layer keeps as bytes).
enum class StatePart : u8 { kModel, kOptimizer, kOther };
std::string_view part_name(StatePart part);  // "model"

// The part by the name alone: "optimizer.bin:state.0.exp_avg", "rank_3:rng", "model.layers.0.mlp.weight".
StatePart part_of(std::string_view name);

// Whether the last part of a name names a state of a parameter: "exp_avg", "momentum_buffer".
bool is_state_field(std::string_view last);
// Whether it counts what was done: "step".
bool is_counter(std::string_view last);

// The part by the name of a file or folder alone: "optimizer_0", "rng_state_0.pth", "training_args.bin" are
// none of the model.
StatePart part_of_path(std::string_view path);

// Whether a file of this name has the schedule of an optimizer: "scheduler.bin", "lr_scheduler.pt".
bool is_schedule(std::string_view path);

// The parts of the tensors of one store: whether a tensor is a scale of a quantized weight depends on the
// names of the other tensors. The store outlives it. Immutable, so thread-safe.
class StateParts {
 public:
  explicit StateParts(const Store& store);

  StatePart part(i64 tensor) const;
  // Whether a tensor that is not of the model is of its quantised weights: scales, zero points, shapes,
  // tables.
  bool is_scale(i64 tensor) const;
  // Whether the items of a tensor of the model are words or bytes of packed values.
  bool is_packed(i64 tensor) const;
  // The number of parameters in a tensor of the model: its items, or as many packed values as its bits hold.
  // Rows that do not fill their last word have fewer; only who decodes them knows how many. Throws
  // kSizeOverflow.
  i64 parameters(i64 tensor) const;

 private:
  bool has(std::string_view stem, std::string_view suffix) const {
    return names_.contains(cat(stem, suffix));
  }
  bool is_of_quantization(std::string_view name) const;
  i64 packed_bits(i64 tensor) const;  // of a packed value; 0: items are values

  const Store& store_;
  StatePart of_file_ = StatePart::kModel;  // of the store's only file
  NameSet<std::string_view> names_;        // of all tensors, if any tensor looks quantized
  i64 bits_ = 4;                           // of a packed value
};

}  // namespace mckpt::impl
