// Sizes that the run which wrote a checkpoint states in its arguments or its configuration: layers,
// experts, and the parallel grid. They are compared with the names of the tensors (counts.h), and used
// where names alone do not tell how a tensor was cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"

namespace mckpt::impl {

class PickleValue;

// Each field is empty where the run does not state it.
struct RunSizes {
  // Args with None, which Megatron reads as "has none", say 0.
  std::optional<i64> layers = std::nullopt, experts = std::nullopt, mtp_layers = std::nullopt;
  std::optional<i64> pipeline_stages = std::nullopt;
  std::optional<i64> pipeline_chunks = std::nullopt;  // of layers, on each stage
  std::optional<i64> tensor_ranks = std::nullopt, expert_tensor_ranks = std::nullopt;
  std::optional<i64> context_ranks = std::nullopt, expert_ranks = std::nullopt;
  std::optional<i64> data_ranks = std::nullopt;  // without context_ranks, including instances
  std::optional<i64> fsdp_instances = std::nullopt;
  // The values that a run of Megatron-FSDP shards, and how its instances are related; nothing for other runs,
  // whose args have the fields too.
  std::optional<Strategy> strategy = std::nullopt;
  std::optional<HsdpOuter> outer = std::nullopt;
  // The layers that are Mamba mixers alone, by the layer pattern ("M"); ascending.
  std::vector<i64> mixers{};
};

// The facts in an argparse.Namespace or dict of Megatron's arguments.
RunSizes run_sizes(const PickleValue& args);
// Whether the layers of the run follow a pattern: its num_layers may then be another number, or None.
bool has_pattern(const PickleValue& args);
// A size as the args have it: "4", or "None" for 0.
std::string said_size(i64 size);
// The facts in Megatron-Bridge's run_config.yaml.
RunSizes run_sizes_of_yaml(std::string_view text);

}  // namespace mckpt::impl
