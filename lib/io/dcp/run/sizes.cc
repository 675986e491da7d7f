// Reads sizes of the grid and the layer pattern from args or from run_config.yaml. The YAML is read line by
// line for seven numbers, which needs no parser: Bridge writes them as "  key: 12" below "model:".
#include "io/dcp/run/sizes.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "io/dcp/run/args.h"

namespace mckpt::impl {
namespace {

// The field of a Namespace or of a dict as a number; nothing if it is missing or has another type.
std::optional<i64> number_field(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  if (value == nullptr || !value->is_int()) return std::nullopt;
  return value->as_int();
}

// The names of the layer pattern's argument, which changed between releases.
constexpr const char* kPatternArgs[] = {"hybrid_layer_pattern", "hybrid_override_pattern"};

// The field as a number; None is 0, the number of what a model does not have.
std::optional<i64> count_field(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value && value->is_none() ? 0 : number_field(args, name);
}

// The layer pattern of a hybrid model, read in the grouped dialect, where a group counts as one layer as it
// does in the keys.
std::optional<LayerPattern> pattern_of(const PickleValue& args) {
  for (const char* name : kPatternArgs) {
    const PickleValue* value = arg_of(args, name);
    if (value == nullptr || !value->is(PickleValue::Kind::kText)) continue;
    Checked<LayerPattern> pattern = check_pattern(value->text(), Dialect::kGrouped);
    if (auto* found = std::get_if<LayerPattern>(&pattern)) return std::move(*found);
  }
  return std::nullopt;
}

bool is_true(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value && value->is(PickleValue::Kind::kBool) && value->as_bool();
}

// The field as text; "" if it is missing or has another type.
std::string_view text_field(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value && value->is(PickleValue::Kind::kText) ? value->text() : std::string_view();
}

// The fields of Megatron-FSDP. The argument that chooses it had another name in older releases. A strategy
// that is not known says nothing.
void add_fsdp(const PickleValue& args, RunSizes& facts) {
  if (!is_true(args, "use_megatron_fsdp") && !is_true(args, "use_custom_fsdp")) return;
  std::string_view name = text_field(args, "data_parallel_sharding_strategy");
  for (Strategy s :
       {Strategy::kNoShard, Strategy::kOptim, Strategy::kOptimGrads, Strategy::kOptimGradsParams})
    if (strategy_name(s) == name) facts.strategy = s;
  if (facts.fsdp_instances.value_or(1) > 1)
    facts.outer =
        text_field(args, "outer_dp_sharding_strategy") == "optim" ? HsdpOuter::kShard : HsdpOuter::kReplicate;
}

// The MTP layers that are stored: as the pattern says, or else as the number says. Args without the number
// are of a run without MTP. A layer that is repeated is stored once, whatever the number.
std::optional<i64> mtp_layers(const PickleValue& args, const std::optional<LayerPattern>& pattern) {
  if (arg_of(args, "num_layers") == nullptr || is_true(args, "mtp_use_repeated_layer")) return std::nullopt;
  if (pattern && pattern->mtp_depths > 0) return pattern->mtp_depths;
  return number_field(args, "mtp_num_layers").value_or(0);
}

// One line "  key: 12" of the section below "model:".
std::optional<i64> yaml_number(std::string_view line, std::string_view key) {
  if (!line.starts_with("  ")) return std::nullopt;
  line.remove_prefix(2);
  if (!line.starts_with(key) || !line.substr(key.size()).starts_with(": ")) return std::nullopt;
  line.remove_prefix(key.size() + 2);
  i64 number = 0;
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() && end == line.data() + line.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

bool has_pattern(const PickleValue& args) {
  return std::ranges::any_of(kPatternArgs, [&](const char* name) { return !text_field(args, name).empty(); });
}

std::string said_size(i64 size) { return size > 0 ? cat(size) : "None"; }

// With groups the keys count fewer layers than num_layers; a pattern that fits neither count says nothing.
RunSizes run_sizes(const PickleValue& args) {
  RunSizes facts;
  facts.layers = has_pattern(args) ? number_field(args, "num_layers") : count_field(args, "num_layers");
  const std::optional<LayerPattern> pattern = pattern_of(args);
  if (pattern) {
    if (pattern->has_groups()) facts.layers = pattern->logical_layers();
    for (const PatternItem& item : pattern->items)
      if (pattern->symbols(item).find_first_not_of('M') == std::string_view::npos)
        facts.mixers.push_back(item.logical_index);
    if (facts.layers != pattern->logical_layers()) facts.mixers.clear();
  }
  facts.experts = count_field(args, "num_experts");
  facts.mtp_layers = mtp_layers(args, pattern);
  facts.pipeline_stages = number_field(args, "pipeline_model_parallel_size");
  facts.pipeline_chunks = number_field(args, "virtual_pipeline_model_parallel_size");
  facts.tensor_ranks = number_field(args, "tensor_model_parallel_size");
  facts.expert_tensor_ranks = number_field(args, "expert_tensor_parallel_size");
  facts.context_ranks = number_field(args, "context_parallel_size");
  facts.expert_ranks = number_field(args, "expert_model_parallel_size");
  facts.data_ranks = number_field(args, "data_parallel_size");
  facts.fsdp_instances = number_field(args, "num_distributed_optimizer_instances");
  add_fsdp(args, facts);
  return facts;
}

// A line without indentation begins another section.
RunSizes run_sizes_of_yaml(std::string_view text) {
  RunSizes facts;
  bool in_model = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    if (line[0] != ' ' && line[0] != '#' && line[0] != '-') in_model = line == "model:";
    if (!in_model) continue;
    if (auto n = yaml_number(line, "num_layers")) facts.layers = n;
    if (auto n = yaml_number(line, "num_moe_experts")) facts.experts = n;
    if (auto n = yaml_number(line, "pipeline_model_parallel_size")) facts.pipeline_stages = n;
    if (auto n = yaml_number(line, "tensor_model_parallel_size")) facts.tensor_ranks = n;
    if (auto n = yaml_number(line, "context_parallel_size")) facts.context_ranks = n;
    if (auto n = yaml_number(line, "expert_tensor_parallel_size")) facts.expert_tensor_ranks = n;
    if (auto n = yaml_number(line, "expert_model_parallel_size")) facts.expert_ranks = n;
  }
  return facts;
}

}  // namespace mckpt::impl
