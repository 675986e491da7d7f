// Values are put into the pickle of the args one by one. Those of a hybrid run whose layers get other names,
// in groups or as a GPT model, get the pattern of the result.
#include "convert/objects/kept_args.h"

#include <algorithm>

#include "convert/objects/megatron_args.h"
#include "convert/objects/pattern_args.h"
#include "convert/objects/source_args.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "io/dcp/run/args.h"
#include "io/pickle/pickle.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"

namespace mckpt::impl {
namespace {

// The numbers of layers and experts, where the args of the source say others than the model has.
std::vector<ArgChange> changes_of_sizes(const std::string& args, const ModelConfig& model) {
  const Pickle pickle({reinterpret_cast<const u8*>(args.data()), args.size()}, {});
  std::vector<ArgChange> changes;
  auto want = [&](const char* name, i64 own) {
    const PickleValue* said = arg_of(pickle.root(), name);
    if (own > 0 && said && said->is_int() && said->as_int() != own) changes.push_back({name, own});
  };
  want("num_layers", std::ssize(model.text.layers));
  want("num_experts", model.moe.experts);
  return changes;
}

// The fields of the layers of a model without groups, where the run that wrote the args named them otherwise.
std::vector<ArgChange> changes_of_layers(const std::string& args, const ModelConfig& model) {
  const Pickle pickle({reinterpret_cast<const u8*>(args.data()), args.size()}, {});
  const std::optional<std::string> said = pattern_of_args(pickle.root());
  if (!said) return {};
  const LayerPattern pattern = parse_pattern(*said, Dialect::kGrouped);
  const std::string own = hybrid_pattern(model);
  if (!own.empty() && !pattern.has_groups()) return {};
  return args_for_layers(pickle.root(), own.empty() ? pattern : parse_pattern(own, Dialect::kGrouped),
                         own.empty(), std::ssize(model.text.layers));
}

}  // namespace

void put_arg(std::string& args, std::string_view name, const ArgValue& value, Notes& notes) {
  const i64* number = std::get_if<i64>(&value);
  if (number && replace_integer(args, name, *number)) return;
  if (!put_value(args, name, value, kAlwaysThere)) notes.warn(cat("args: ", name, " keeps its old value"));
}

std::string kept_args(std::string args, const ArgsOfResult& result, Notes& notes) {
  const std::optional<i64> divisor =
      other_vocab_divisor(args, result.map, result.vocab_rows, result.grid.tp);
  auto put = [&](std::string_view name, const ArgValue& value) { put_arg(args, name, value, notes); };
  const ModelConfig& model = result.map.model();
  for (const auto& changes : {changes_of_layers(args, model), changes_of_sizes(args, model)})
    for (const ArgChange& change : changes) put(change.name, change.value);
  for (auto [name, value] : grid_args(result.grid)) put(name, value);
  const auto stages = pipeline_values(result.map, result.grid.pp, result.pipeline);
  for (std::string_view name : pipeline_args()) {
    auto field = std::ranges::find(stages, name, [](const auto& f) { return f.first; });
    if (field != stages.end()) put(name, field->second);
    else if (args.find(name) != args.npos) put(name, std::monostate());
  }
  const bool torch = result.format == ArgsFormat::kTorch;
  put(kFormatArg, std::string(torch ? "torch" : "torch_dist"));
  put(kFsdpArg, false);
  if (torch) put(kDistributed, false);
  put(kNoStates, !result.has_states);
  if (result.vocab_rows != result.source_rows) put(kPaddedVocab, result.vocab_rows);
  if (divisor) put(kVocabDivisor, *divisor);
  if (result.params_dtype) {
    put("bf16", *result.params_dtype == DType::kBF16);
    put("fp16", *result.params_dtype == DType::kF16);
    put("params_dtype", *result.params_dtype);
  }
  return args;
}

}  // namespace mckpt::impl
