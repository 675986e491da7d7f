// Values are put into the pickle of the args one by one. The args of a hybrid run whose layers get other
// names, in groups or as a GPT model, get the pattern of the result.
#include "convert/facts/kept_args.h"

#include <algorithm>
#include <span>

#include "convert/facts/megatron_args.h"
#include "convert/facts/pattern_args.h"
#include "convert/facts/source_args.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/pickle.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kNoRandomStates = "no_save_rng", kModules = "transformer_impl",
                           kSplitContext = "hierarchical_context_parallel_sizes",
                           kStagesOfLayers = "transformer_pipeline_model_parallel_size",
                           kDistributedFormat = "use_dist_ckpt";
// Other ways to divide a pipeline, which older and newer versions have.
constexpr std::string_view kNoLonger[] = {"num_virtual_stages_per_pipeline_rank",
                                          "pipeline_model_parallel_split_rank"};
constexpr std::string_view kFalse[] = {"account_for_embedding_in_pipeline_split",
                                       "account_for_loss_in_pipeline_split", "use_torch_fsdp2",
                                       "use_custom_fsdp"};
constexpr std::string_view kTypes[] = {"bf16", "fp16", "params_dtype"};
constexpr std::string_view kCounts[] = {"consumed_train_samples", "skipped_train_samples",
                                        "consumed_valid_samples"};

// The numbers of layers, MTP layers and experts, where the args of the source say others than the model has.
std::vector<ArgChange> changes_of_sizes(const PickleValue& args, const ModelConfig& model) {
  const RunSizes said = run_sizes(args);
  std::vector<ArgChange> changes;
  auto want = [&](const char* name, std::optional<i64> now, i64 own) {
    if (own > 0 && now && *now != own) changes.push_back({name, own});
  };
  // With a pattern of groups the facts count other layers than the field.
  const PickleValue* layers = arg_of(args, "num_layers");
  want("num_layers", layers && layers->is_int() ? layers->as_int() : said.layers,
       std::ssize(model.text.layers));
  want("num_experts", said.experts, model.moe.experts);
  want("mtp_num_layers", said.mtp_layers, model.mtp.depths);
  return changes;
}

// The modules of a run whose norms have other names than the result's; nothing if they are the same.
std::optional<ArgChange> change_of_modules(const PickleValue& args, NormNames norms) {
  const PickleValue* now = arg_of(args, kModules);
  const bool text = now && now->is(PickleValue::Kind::kText);
  if (norms == NormNames::kOfTransformerEngine && text && now->text() == "local")
    return ArgChange{std::string(kModules), std::string("transformer_engine")};
  if (norms == NormNames::kOfMegatron && text && now->text() == "transformer_engine")
    return ArgChange{std::string(kModules), std::string("local")};
  return std::nullopt;
}

// The fields that follow from the grid, the pipeline, the format and the names of the result, as far as the
// args have them.
std::vector<ArgChange> changes_of_result(const PickleValue& args, const ArgsOfResult& result) {
  std::vector<ArgChange> changes;
  auto put = [&](std::string_view name, const ArgValue& value) {
    if (arg_of(args, name)) changes.push_back({std::string(name), value});
  };
  for (std::string_view name : kNoLonger) put(name, std::monostate());
  for (std::string_view name : kFalse) put(name, false);
  put(kStagesOfLayers, result.grid.pp);
  if (run_sizes(args).context_ranks != result.grid.cp) put(kSplitContext, std::monostate());
  put(kDistributedFormat, result.format != ArgsFormat::kTorch);
  if (std::optional<ArgChange> modules = change_of_modules(args, result.norms))
    changes.push_back(*std::move(modules));
  if (result.iteration) put(kIterationArg, *result.iteration);
  if (result.from_the_start)
    for (std::string_view name : kCounts) put(name, i64{0});
  return changes;
}

// The fields of the layers, where the run that wrote the args named or divided them otherwise: with other
// groups or pipes, without any, or as another kind of model. Args that say no pattern get one where the
// stages need its pipes.
std::vector<ArgChange> changes_of_layers(const PickleValue& args, const ModelConfig& model,
                                         const LayerPattern* of_result) {
  const std::optional<std::string> said = pattern_of_args(args);
  const bool has_pipes = of_result && std::ssize(of_result->segments) > 1;
  if (!said && !has_pipes) return {};
  if (of_result) return args_for_layers(args, *of_result, false, of_result->physical_layers());
  const LayerPattern pattern = parse_pattern(*said, Dialect::kGrouped);
  const std::string own = hybrid_pattern(model);
  if (!own.empty() && !pattern.has_groups()) return {};
  return args_for_layers(args, own.empty() ? pattern : parse_pattern(own, Dialect::kGrouped), own.empty(),
                         std::ssize(model.text.layers));
}

}  // namespace

bool is_reset_arg(std::string_view name) {
  auto is_in = [&](std::span<const std::string_view> names) {
    return std::ranges::find(names, name) != names.end();
  };
  return is_in(kNoLonger) || is_in(kFalse) || is_in(kCounts) || is_in(kTypes) || name == kStagesOfLayers ||
         name == kSplitContext || name == kDistributedFormat || name == kModules || name == kNoRandomStates;
}

void put_arg(std::string& args, std::string_view name, const ArgValue& value, Notes& notes) {
  const i64* number = std::get_if<i64>(&value);
  if (number && replace_integer(args, name, *number)) return;
  if (!put_value(args, name, value, kAlwaysThere)) notes.warn(cat("args: ", name, " keeps its old value"));
}

void put_layers(std::string& args, const ModelMap& map, const LayerPattern* pattern, Notes& notes) {
  const std::string before = args;
  const Pickle source({reinterpret_cast<const u8*>(before.data()), before.size()}, {});
  for (const auto& changes :
       {changes_of_layers(source.root(), map.model(), pattern), changes_of_sizes(source.root(), map.model())})
    for (const ArgChange& change : changes) put_arg(args, change.name, change.value, notes);
}

void put_modules(std::string& args, NormNames norms, Notes& notes) {
  const std::string before = args;
  const Pickle source({reinterpret_cast<const u8*>(before.data()), before.size()}, {});
  if (std::optional<ArgChange> change = change_of_modules(source.root(), norms))
    put_arg(args, change->name, change->value, notes);
}

std::string kept_args(std::string args, const ArgsOfResult& result, Notes& notes) {
  const std::optional<i64> divisor = other_vocab_divisor(args, result.map, result.vocab_rows, result.grid.tp);
  auto put = [&](std::string_view name, const ArgValue& value) { put_arg(args, name, value, notes); };
  const ModelConfig& model = result.map.model();
  const std::string before = args;
  const Pickle source({reinterpret_cast<const u8*>(before.data()), before.size()}, {});
  const PickleValue& own = source.root();
  for (const auto& changes : {changes_of_layers(own, model, result.pattern), changes_of_sizes(own, model),
                              changes_of_result(own, result)})
    for (const ArgChange& change : changes) put(change.name, change.value);
  for (auto [name, value] : grid_args(result.grid)) put(name, value);
  const auto stages = pipeline_values(result.map, result.grid.pp, result.pipeline, result.pattern);
  for (std::string_view name : pipeline_args()) {
    auto field = std::ranges::find(stages, name, [](const auto& f) { return f.first; });
    if (field != stages.end())
      put(name, field->second);
    else if (args.find(name) != args.npos)
      put(name, std::monostate());
  }
  const bool torch = result.format == ArgsFormat::kTorch;
  put(kFormatArg, std::string(torch ? "torch" : "torch_dist"));
  put(kFsdpArg, false);
  if (torch) put(kDistributed, false);
  put(kNoStates, !result.has_states);
  put(kNoRandomStates, true);
  if (result.vocab_rows != result.source_rows) put(kPaddedVocab, result.vocab_rows);
  if (divisor) put(kVocabDivisor, *divisor);
  if (result.params_dtype) {
    put(kTypes[0], *result.params_dtype == DType::kBF16);
    put(kTypes[1], *result.params_dtype == DType::kF16);
    put(kTypes[2], *result.params_dtype);
  }
  return args;
}

}  // namespace mckpt::impl
