// Reads sizes of the grid and the layer pattern from args or from run_config.yaml.
#include "io/dcp/run/sizes.h"

#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/run_config.h"

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

// The entry as a number; nothing if it is missing or is something else.
std::optional<i64> entry_number(std::string_view text, std::string_view key) {
  const std::optional<std::string_view> entry = model_entry(text, key);
  if (!entry) return std::nullopt;
  i64 number = 0;
  auto [end, error] = std::from_chars(entry->data(), entry->data() + entry->size(), number);
  return error == std::errc() && end == entry->data() + entry->size() ? std::optional(number) : std::nullopt;
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

RunSizes run_sizes_of_yaml(std::string_view text) {
  RunSizes facts;
  facts.layers = entry_number(text, "num_layers");
  facts.experts = entry_number(text, "num_moe_experts");
  facts.pipeline_stages = entry_number(text, "pipeline_model_parallel_size");
  facts.tensor_ranks = entry_number(text, "tensor_model_parallel_size");
  facts.context_ranks = entry_number(text, "context_parallel_size");
  facts.expert_tensor_ranks = entry_number(text, "expert_tensor_parallel_size");
  facts.expert_ranks = entry_number(text, "expert_model_parallel_size");
  return facts;
}

}  // namespace mckpt::impl
