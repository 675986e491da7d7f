// What is wrong with a DCP folder although its boxes and bytes are in order: tensors that should come in
// pairs, layers and experts that should count without gaps, pipeline stages that overwrote each other, file
// hashes. None of it is checked by torch or Megatron on loading.
#pragma once

#include <optional>
#include <vector>

#include "io/dcp_dialect.h"
#include "io/store.h"

namespace mckpt {

// What the run that wrote a checkpoint says of itself, as far as it does.
struct RunFacts {
  std::optional<i64> layers = std::nullopt, experts = std::nullopt, pipeline_stages = std::nullopt;
  std::optional<i64> tensor_ranks = std::nullopt, expert_tensor_ranks = std::nullopt;
};

// The facts in an argparse.Namespace or dict of Megatron's arguments.
RunFacts run_facts(const PickleValue& args);
// The facts in Megatron-Bridge's run_config.yaml.
RunFacts run_facts_of_yaml(std::string_view text);

// Looks at names and shapes alone.
std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunFacts& facts);

}  // namespace mckpt
