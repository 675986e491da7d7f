// Each word is looked up in a table of the words that its setting can have.
#include "api/words.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "convert/keys/torch_dist_plan.h"
#include "convert/source/damage.h"
#include "convert/views/memory_names.h"
#include "core/base/error.h"
#include "core/fsdp/complete_grid.h"
#include "core/fsdp/param_groups.h"
#include "core/fsdp/strategy.h"
#include "hf/adapter/adapted_store.h"
#include "hf/expert_layout.h"
#include "io/file/model_files.h"
#include "io/file/source_stamps.h"
#include "mappings/model/vocab_words.h"

namespace mckpt::impl {
namespace {

// What each word stands for.
template <typename T>
using Word = std::pair<std::string_view, T>;
template <typename T>
using Words = std::initializer_list<Word<T>>;

[[noreturn]] void refuse_word(std::string_view setting, std::string_view expected, std::string_view word) {
  throw Error(Code::kUsage, cat("the value of `", setting, "` is not allowed"))
      .expected(expected)
      .found(escaped(word));
}

template <typename T>
T word_in(std::span<const Word<T>> known, std::string_view word, std::string_view setting) {
  std::string expected;
  for (const auto& [name, value] : known) {
    if (name == word) return value;
    expected += cat(expected.empty() ? "" : ", ", name);
  }
  refuse_word(setting, expected, word);
}

template <typename T>
T word_in(Words<T> known, std::string_view word, std::string_view setting) {
  return word_in<T>(std::span<const Word<T>>(known.begin(), known.size()), word, setting);
}

}  // namespace

VocabChoice vocab_choice(std::string_view word) {
  std::optional<VocabChoice> choice = vocab_choice_of(word);
  if (!choice) refuse_word("vocab_size", kVocabWords, word);
  return *choice;
}

mckpt::Note to_public(const Note& note) {
  std::string_view text = note.text;
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return {note.kind == Note::Kind::kWarning, std::string(text)};
}

std::vector<mckpt::Note> to_public(const Notes& notes) {
  std::vector<mckpt::Note> out;
  for (const Note& n : notes) out.push_back(to_public(n));
  return out;
}

mckpt::Finding to_public(const Finding& f) {
  return {code_name(f.code), f.warning, f.tensor, f.file, f.offset, f.rank, f.message, f.help};
}

DType value_type(std::string_view word, std::string_view setting, std::string_view others) {
  if (word == "bf16" || word == "bfloat16") return DType::kBF16;
  if (word == "fp16" || word == "float16") return DType::kF16;
  if (word == "fp32" || word == "float32") return DType::kF32;
  refuse_word(setting, cat(others, "bf16, fp16, fp32"), word);
}

std::optional<DType> value_type_or_kept(std::string_view word) {
  if (word == "keep") return std::nullopt;
  return value_type(word, "dtype", "keep, ");
}

DtypeRules dtype_rules(const std::vector<std::pair<std::string, std::string>>& rules) {
  DtypeRules out;
  for (const auto& [glob, type] : rules) out.add(glob, value_type(type, "dtype_rule"));
  return out;
}

ExportTypes stored_types(std::string_view dtype,
                         const std::vector<std::pair<std::string, std::string>>& rules) {
  const std::optional<DType> given = value_type_or_kept(dtype);
  return {given ? ExportTypes::kGiven : ExportTypes::kStored, given.value_or(DType::kF32),
          dtype_rules(rules)};
}

ParamsDtype params_dtype_of(std::string_view word) {
  if (word == "none") return {};
  if (word == "auto") return {ParamsDtype::kConfig};
  return {ParamsDtype::kGiven, value_type(word, "params_dtype", "none, auto, ")};
}

TypeClaim type_claim(std::string_view dtype, const std::vector<std::pair<std::string, std::string>>& rules) {
  TypeClaim claim{.rules = dtype_rules(rules)};
  if (dtype == "any") return claim;
  claim.kind = dtype == "keep" ? TypeClaim::kKept : TypeClaim::kGiven;
  if (claim.kind == TypeClaim::kGiven) claim.given = value_type(dtype, "dtype", "any, keep, ");
  return claim;
}

ValueOptions value_options(const mckpt::Values& values) {
  ValueOptions options;
  options.vocab = vocab_choice(values.vocab_size);
  options.params_dtype = params_dtype_of(values.params_dtype);
  options.dtype = value_type_or_kept(values.dtype);
  options.rules = dtype_rules(values.dtype_rule);
  return options;
}

Grid grid_of(const mckpt::Grid& g) {
  HsdpOuter outer = word_in<HsdpOuter>({{"replicate", HsdpOuter::kReplicate}, {"shard", HsdpOuter::kShard}},
                                       g.hsdp_outer, "hsdp_outer");
  return complete_grid(
      {.tp = g.tp, .cp = g.cp, .ep = g.ep, .etp = g.etp, .pp = g.pp, .hsdp = g.hsdp, .outer = outer}, g.dp);
}

LayerStacks layer_stacks(std::string_view word) {
  return word_in<LayerStacks>(
      {{"auto", LayerStacks::kAuto}, {"stacked", LayerStacks::kStacked}, {"indexed", LayerStacks::kIndexed}},
      word, "layers");
}

FsdpSetup setup_of(const mckpt::Fsdp& fsdp, const Grid& grid) {
  FsdpSetup s;
  s.use(engine_from_name(fsdp.engine));
  s.strategy = strategy_from_name(fsdp.strategy);
  s.unit_scope =
      word_in<UnitScope>({{"full", UnitScope::kFullShardOnly}, {"sharded", UnitScope::kAllSharded}},
                         fsdp.units_for, "units_for");
  s.transformer_units = fsdp.transformer_units, s.mamba_units = fsdp.mamba_units;
  s.hybrid_stack_units = fsdp.hybrid_stack_units;
  i64 default_size = default_bucket_items(s.engine, grid.dp * grid.cp);
  s.bucket_items = fsdp.bucket_size.value_or(default_size);
  return s;
}

ModelFiles model_files_in(const std::string& word) {
  return word_in<ModelFiles>(kModelFilesWords, word, "model_files");
}

OpenOptions opening_of(const mckpt::OpenOptions& options, const NamedPaths& paths) {
  OpenOptions out{.follow_links = options.follow_links,
                  .model_files = model_files_in(options.model_files),
                  .stamps = std::make_shared<SourceStamps>()};
  if (options.base) out.base = adapter_base_for(*options.base, paths, out, memory_names());
  return out;
}

HfModelOptions model_options(const ModelOptions& options, const NamedPaths& paths) {
  ExpertLayout layout = word_in<ExpertLayout>({{"auto", ExpertLayout::kAuto},
                                               {"apart", ExpertLayout::kApart},
                                               {"fused", ExpertLayout::kFused},
                                               {"hub", ExpertLayout::kHub}},
                                              options.expert_layout, "expert_layout");
  return {.expert_layout = layout, .map_file = options.map_file, .files = opening_of(options.files, paths)};
}

std::vector<Code> accepted_codes(const std::vector<std::string>& names) {
  std::vector<Code> codes;
  for (const std::string& name : names) {
    std::span<const Code> known = acceptable_damage();
    auto code = std::ranges::find(known, name, code_name);
    if (code == known.end()) {
      std::string expected;
      for (Code c : known) expected += cat(expected.empty() ? "" : ", ", code_name(c));
      throw Error(Code::kUsage, "`accept` takes only codes of damage after which the rest can be converted")
          .expected(expected)
          .found(escaped(name));
    }
    codes.push_back(*code);
  }
  return codes;
}

CheckpointOptions checkpoint_options(const SourceOptions& from, const NamedPaths& paths) {
  CheckpointOptions options;
  options.assets = from.assets;
  options.source_tp = from.source_tp, options.source_etp = from.source_etp;
  options.accept = accepted_codes(from.accept);
  options.model = model_options(from.model, paths);
  return options;
}

RelayerOptions relayer_options(const Relayer& what) {
  using Names = RelayerOptions::GroupNames;
  using Layers = RelayerOptions::GptLayers;
  RelayerOptions options;
  options.way = word_in<LayerWay>({{"ungroup", LayerWay::kUngroup},
                                   {"group", LayerWay::kGroup},
                                   {"hybrid-to-gpt", LayerWay::kToGpt},
                                   {"gpt-to-hybrid", LayerWay::kToHybrid}},
                                  what.way, "way");
  options.source = what.source, options.target = what.target;
  options.pattern = what.pattern;
  options.keys = word_in<Names>(
      {{"auto", Names::kAuto}, {"logical", Names::kLogical}, {"member", Names::kMember}}, what.keys, "keys");
  options.layers =
      word_in<Layers>({{"auto", Layers::kAuto}, {"stacked", Layers::kStacked}, {"indexed", Layers::kIndexed}},
                      what.layers, "layers");
  options.how.norms = word_in<NormPlace>(
      {{"keep", NormPlace::kKeep}, {"fused", NormPlace::kFused}, {"apart", NormPlace::kApart}}, what.norms,
      "norms");
  options.how.without_mixers = what.without_mixers;
  options.how.weights_only = what.weights_only;
  options.accept = accepted_codes(what.accept);
  options.files = opening_of(what.files, {what.source});
  return options;
}

}  // namespace mckpt::impl
