// Each word is looked up in a table of the words that its setting can have.
#include "convert/asked/words.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "convert/dialects/torch_dist/plan.h"
#include "convert/open/damage.h"
#include "convert/own/memory_names.h"
#include "core/base/error.h"
#include "core/base/one_of.h"
#include "core/fsdp/complete_grid.h"
#include "core/fsdp/param_groups.h"
#include "core/fsdp/strategy.h"
#include "hf/adapter/adapted_store.h"
#include "hf/folder/expert_layout.h"
#include "io/file/model_files.h"
#include "io/file/source_stamps.h"
#include "mappings/model/vocab_words.h"
#include "options/field.h"

namespace mckpt::impl {
namespace {

// A word and the value that it stands for.
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
  std::vector<std::string_view> names;
  for (const auto& [name, value] : known) {
    if (name == word) return value;
    names.push_back(name);
  }
  refuse_word(setting, one_of(names), word);
}

template <typename T>
T word_in(Words<T> known, std::string_view word, std::string_view setting) {
  return word_in<T>(std::span<const Word<T>>(known.begin(), known.size()), word, setting);
}

// The word of `fp8_recipe` by which a checkpoint keeps its packing.
constexpr std::string_view kRecipeOfSource = "auto";

}  // namespace

VocabChoice vocab_choice(std::string_view word) {
  std::optional<VocabChoice> choice = vocab_choice_of(word);
  if (!choice) refuse_word("vocab_size", kVocabWords, word);
  return *choice;
}

DType value_type(std::string_view word, std::string_view setting, std::string_view others) {
  constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
  std::optional<DType> type;
  try {
    type = dtype_from_name(word);
  } catch (const Error&) {  // it would list the types that files may have
  }
  if (!type || std::ranges::count(kTypes, *type) == 0)
    throw Error(Code::kUsage,
                cat("the value of `", setting, "` is not a data type that weights can be given"))
        .expected(cat(others, "bf16, fp16 or fp32"))
        .found(escaped(word));
  return *type;
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

TensorChoice choice_of(const std::string& names, bool regex) {
  if (regex && names.empty())
    throw Error(Code::kUsage, "`regex` says how `names` is read, and there is no `names`")
        .help("give the regular expression as `names`, or leave `regex` out");
  return {names, regex};
}

Grid sizes_of(const mckpt::Grid& g) {
  HsdpOuter outer = word_in<HsdpOuter>({{"replicate", HsdpOuter::kReplicate}, {"shard", HsdpOuter::kShard}},
                                       g.hsdp_outer, "hsdp_outer");
  return {.tp = g.tp, .cp = g.cp, .ep = g.ep, .etp = g.etp, .pp = g.pp, .hsdp = g.hsdp, .outer = outer};
}

Grid grid_of(const mckpt::Grid& g) { return complete_grid(sizes_of(g), g.dp); }

// Only if the size was chosen here; the world is the number of ranks of the training run, not of this
// process.
std::string chosen_dp_note(const mckpt::Grid& grid) {
  if (grid.dp) return "";
  const Grid g = grid_of(grid);
  return cat("dp=", g.dp, " chosen, the smallest that works: ", counted(g.world(), "rank"), " in all");
}

FrozenNames frozen_of(const mckpt::Fsdp& fsdp) { return FrozenNames(parts_of(fsdp.freeze)); }

Spelling spelling_in(const std::vector<std::string>& words, bool rank_files) {
  return spelling_of(parts_of(words), rank_files);
}

std::optional<Spelling> given_spelling(const std::vector<std::string>& words, bool rank_files) {
  if (words.empty()) return std::nullopt;
  return spelling_in(words, rank_files);
}

std::string model_dict_of(const std::optional<std::string>& dict) {
  if (dict && dict->empty())
    throw Error(Code::kUsage, "`model_dict` is the name of a dict, and not empty")
        .expected("a name such as actor or state.policy");
  return dict.value_or("");
}

LayerStacks layer_stacks(std::string_view word) {
  return word_in<LayerStacks>(
      {{"auto", LayerStacks::kAuto}, {"stacked", LayerStacks::kStacked}, {"indexed", LayerStacks::kIndexed}},
      word, "layers");
}

bool keeps_recipe(const mckpt::Fsdp& fsdp) { return fsdp.fp8_recipe == kRecipeOfSource; }

FsdpSetup setup_of(const mckpt::Fsdp& fsdp, const Grid& grid) {
  FsdpSetup s;
  s.use(engine_from_name(fsdp.engine));
  s.strategy = strategy_from_name(fsdp.strategy);
  s.unit_scope =
      word_in<UnitScope>({{"full", UnitScope::kFullShardOnly}, {"sharded", UnitScope::kAllSharded}},
                         fsdp.units_for, "units_for");
  s.transformer_units = fsdp.transformer_units, s.mamba_units = fsdp.mamba_units;
  s.hybrid_stack_units = fsdp.hybrid_stack_units;
  s.fp8 = word_in<Fp8Recipe>({{kRecipeOfSource, Fp8Recipe::kNone},
                              {"none", Fp8Recipe::kNone},
                              {"tensorwise", Fp8Recipe::kTensorwise},
                              {"delayed", Fp8Recipe::kDelayed},
                              {"blockwise", Fp8Recipe::kBlockwise},
                              {"mxfp8", Fp8Recipe::kMxfp8}},
                             fsdp.fp8_recipe, "fp8_recipe");
  i64 default_size = default_bucket_items(s.engine, grid.dp * grid.cp);
  s.bucket_items = fsdp.bucket_size.value_or(default_size);
  return s;
}

ModelFiles model_files_in(const std::string& word) {
  return word_in<ModelFiles>(kModelFilesWords, word, "model_files");
}

OpenOptions opening_of(const mckpt::OpenOptions& options, const Opening& what) {
  OpenOptions out{.follow_links = options.follow_links,
                  .model_files = model_files_in(options.model_files),
                  .stamps = std::make_shared<SourceStamps>(),
                  .helper_folders = what.helper_folders};
  if (options.base) out.base = adapter_base_for(*options.base, what.paths, out, memory_names());
  return out;
}

HfModelOptions model_options(const ModelOptions& options, const Opening& what) {
  const ExpertLayout layout = word_in<ExpertLayout>({{"auto", ExpertLayout::kAuto},
                                                     {"apart", ExpertLayout::kApart},
                                                     {"fused", ExpertLayout::kFused},
                                                     {"hub", ExpertLayout::kHub}},
                                                    options.expert_layout, "expert_layout");
  HfModelOptions out;
  out.expert_layout = layout, out.map_file = options.map_file;
  out.files = opening_of(options.files, what);
  return out;
}

std::vector<Code> accepted_codes(const std::vector<std::string>& names) {
  std::vector<Code> codes;
  for (const std::string& name : names) {
    std::span<const Code> known = acceptable_codes();
    auto code = std::ranges::find(known, name, code_name);
    if (code == known.end()) {
      std::vector<std::string> names_of_codes;
      for (Code c : known) names_of_codes.emplace_back(code_name(c));
      throw Error(Code::kUsage, "`accept` takes only codes of problems after which the rest can be converted")
          .expected(one_of(names_of_codes))
          .found(escaped(name));
    }
    codes.push_back(*code);
  }
  return codes;
}

CheckpointOptions checkpoint_options(const SourceOptions& from, const Opening& what) {
  CheckpointOptions options;
  options.assets = from.assets;
  options.source_tp = from.source_tp, options.source_etp = from.source_etp;
  options.accept = accepted_codes(from.accept);
  options.model = model_options(from.model, what);
  return options;
}

LayerWay layer_way(std::string_view word) {
  return word_in<LayerWay>({{"ungroup", LayerWay::kUngroup},
                            {"group", LayerWay::kGroup},
                            {"hybrid-to-gpt", LayerWay::kToGpt},
                            {"gpt-to-hybrid", LayerWay::kToHybrid}},
                           word, "way");
}

RelayerOptions::GroupNames group_names(std::string_view word) {
  using Names = RelayerOptions::GroupNames;
  return word_in<Names>({{"auto", Names::kAuto}, {"logical", Names::kLogical}, {"member", Names::kMember}},
                        word, "keys");
}

RelayerOptions::GptLayers gpt_layers(std::string_view word) {
  using Layers = RelayerOptions::GptLayers;
  return word_in<Layers>(
      {{"auto", Layers::kAuto}, {"stacked", Layers::kStacked}, {"indexed", Layers::kIndexed}}, word,
      "layers");
}

NormPlace norm_place(std::string_view word) {
  return word_in<NormPlace>(
      {{"keep", NormPlace::kKeep}, {"fused", NormPlace::kFused}, {"apart", NormPlace::kApart}}, word,
      "norms");
}

}  // namespace mckpt::impl
