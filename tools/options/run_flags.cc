// The flags that describe a training run of Megatron. Long names are those of Megatron's own arguments, so a
// launch script can be copied:
//
//   --tp 2            --tensor-model-parallel-size 2
//   --strategy optim  --data-parallel-sharding-strategy optim
//   --hsdp 2          --num-distributed-optimizer-instances 2
//
// Without --dp the smallest data-parallel size is taken with which the grid is valid; note() tells the user.
#include "tools/options/run_flags.h"

#include <algorithm>

#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "core/base/error.h"
#include "core/fsdp/complete_grid.h"
#include "core/fsdp/param_groups.h"
#include "core/fsdp/strategy.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/spellings.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"
#include "mappings/model/vocab_words.h"
#include "tools/options/command_line.h"
#include "tools/options/parse_number.h"

namespace mckpt::impl {
namespace {

// The parts of "a,b" and of repeated options, in one list.
std::vector<std::string> words(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values)
    for (std::size_t at = 0; at <= value.size();) {
      std::size_t end = std::min(value.find(',', at), value.size());
      out.push_back(value.substr(at, end - at));
      at = end + 1;
    }
  return out;
}

// "GLOB=TYPE"; the glob may contain '=' itself, so the last one counts.
void add_rule(std::string_view rule, DtypeRules& to) {
  std::size_t equals = rule.rfind('=');
  if (equals == rule.npos)
    throw Error(Code::kUsage, "a --dtype-rule is a glob, '=' and a type")
        .found(cat("--dtype-rule ", escaped(rule)));
  to.add(std::string(rule.substr(0, equals)), parameter_type(rule.substr(equals + 1), "--dtype-rule"));
}

}  // namespace

DType parameter_type(std::string_view name, std::string_view option, std::string_view also) {
  constexpr DType kTypes[] = {DType::kBF16, DType::kF16, DType::kF32};
  std::optional<DType> type;
  try {
    type = dtype_from_name(name);
  } catch (const Error&) {  // it would list the types that files may have
  }
  if (!type || std::ranges::count(kTypes, *type) == 0)
    throw Error(Code::kUsage, cat(option, ": not a data type that weights can be given"))
        .expected(cat(also, also.empty() ? "" : ", ", "bf16, fp16 or fp32"))
        .found(cat("'", escaped(name), "'"));
  return *type;
}

void GridFlags::declare_ranks(CommandLine& line, const std::string& dp) {
  line.heading("Grid");
  line.option("--tp|--tensor-model-parallel-size", sizes_.tp, "tensor-parallel size").common();
  line.option("--cp|--context-parallel-size", sizes_.cp, "context-parallel size");
  line.option("--ep|--expert-model-parallel-size", sizes_.ep, "expert-parallel size").common();
  line.option("--etp|--expert-tensor-parallel-size", sizes_.etp,
              "expert-tensor-parallel size, 1 by default (not tp)");
  DeclaredOption stages = line.option("--pp|--pipeline-model-parallel-size", sizes_.pp, "pipeline stages");
  if (stages_) stages.common();
  line.option("--dp|--data-parallel-size", dp_,
              cat("data-parallel size, without cp and including hsdp; by default ", dp))
      .common();
}

void GridFlags::declare(CommandLine& line, const std::string& dp) {
  declare_ranks(line, dp);
  line.option("--hsdp|--num-distributed-optimizer-instances", sizes_.hsdp, "number of HSDP instances");
  line.option("--hsdp-outer HOW", outer_, "how HSDP instances are related: replicate or shard")
      .choices({"replicate", "shard"});
}

Grid GridFlags::sizes() const {
  Grid g = sizes_;
  g.outer = outer();
  return g;
}

Grid GridFlags::grid() const { return complete_grid(sizes(), dp_); }

Grid GridFlags::grid_of(i64 ranks) const { return grid_of_ranks(sizes(), dp_, ranks); }

// One rank alone needs no note.
std::string GridFlags::note_of(i64 ranks) const {
  if (dp_ || ranks == 1) return "";
  return cat("dp=", grid_of(ranks).dp, " chosen, from the ", counted(ranks, "rank"), " of the job");
}

// Only if the size was chosen here; the world is the number of ranks of the training run, not of this
// process.
std::string GridFlags::note() const {
  if (dp_) return "";
  Grid g = grid();
  return cat("dp=", g.dp, " chosen, the smallest that works: ", counted(g.world(), "rank"), " in all");
}

void PipelineFlags::declare(CommandLine& line) {
  line.option("--vpp|--virtual-pipeline-model-parallel-size", chunks_,
              "chunks of layers on each pipeline stage, which take turns");
  line.option("--first-stage-layers|--decoder-first-pipeline-num-layers", first_,
              "layers on the first pipeline stage; by default as many as on the others");
  line.option("--last-stage-layers|--decoder-last-pipeline-num-layers", last_,
              "layers on the last pipeline stage; by default as many as on the others");
}

PipelineOptions PipelineFlags::options() const { return {chunks_, first_, last_}; }

void PatternFlag::declare(CommandLine& line) {
  line.option(
      "--hybrid-pattern PATTERN", text_,
      "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units "
      "follow it");
}

std::optional<LayerPattern> PatternFlag::pattern() const {
  if (!text_) return std::nullopt;
  return parse_pattern(*text_, Dialect::kGrouped);
}

void FsdpFlags::declare(CommandLine& line) {
  line.heading("Megatron-FSDP");
  line.option("--engine VERSION", engine_,
              "v1 (default) or v2 of Megatron-FSDP; v2 saves whole parameters in fp32 under model.<param>")
      .choices({"v1", "v2"});
  line.option("--strategy|--data-parallel-sharding-strategy NAME", strategy_,
              "what is sharded: no_shard, optim, optim_grads or optim_grads_params")
      .words({"no_shard", "optim", "optim_grads", "optim_grads_params"})
      .common();
  line.option(
          "--fsdp-unit CLASS", units_,
          "module classes that are FSDP units: TransformerLayer, MambaLayer (these two by default), "
          "HybridStack (the groups of a pattern, or the whole stack of a pattern without groups), or none")
      .words({"TransformerLayer", "MambaLayer", "HybridStack", "none"});
  line.option("--fsdp-units-for WHICH", units_for_,
              "strategies that have FSDP units: full (only optim_grads_params) or sharded (later versions)")
      .choices({"full", "sharded"});
  line.option("--freeze GLOB", frozen_,
              "parameters that are not trained; none: all are trained, also those that the family freezes");
  line.option("--bucket-size", bucket_,
              "number of items after which parameters outside FSDP units begin a new bucket; 0: never");
}

// The default bucket size depends on the grid, as in Megatron.
FsdpSetup FsdpFlags::setup(const Grid& grid) const {
  FsdpSetup s;
  s.use(engine_from_name(engine_));
  s.strategy = strategy_from_name(strategy_);
  s.unit_scope = units_for_ == "full" ? UnitScope::kFullShardOnly : UnitScope::kAllSharded;
  i64 default_size = default_bucket_items(s.engine, grid.dp * grid.cp);
  s.bucket_items = bucket_.value_or(default_size);
  if (units_.empty()) return s;
  s.transformer_units = s.mamba_units = false;
  for (const std::string& name : words(units_)) {
    if (name == "TransformerLayer")
      s.transformer_units = true;
    else if (name == "MambaLayer")
      s.mamba_units = true;
    else if (name == "HybridStack")
      s.hybrid_stack_units = true;
    else if (name != "none")
      throw Error(Code::kUsage, "there is no such class of modules")
          .expected("TransformerLayer, MambaLayer, HybridStack or none")
          .found(cat("--fsdp-unit ", escaped(name)));
  }
  return s;
}

FrozenNames FsdpFlags::frozen() const { return FrozenNames(words(frozen_)); }

void SpellingFlags::declare(CommandLine& line, bool rank_files) {
  std::vector<std::string> words{"submodule-conv", "unfused-norms"};
  if (rank_files) words.emplace_back(kOldMtpWord);
  line.option("--spelling WORDS", words_,
              cat("names as other versions and specs of Megatron have them: submodule-conv "
                  "(mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for "
                  "linear_qkv.layer_norm_weight, and the like)",
                  rank_files ? cat(", ", kOldMtpWord, " (", kOldMtpModule, " for MTP's ", kMtpModule,
                                   ", as in Megatron-Core up to 0.16)")
                             : ""))
      .words(std::move(words));
}

Spelling SpellingFlags::spelling() const { return spelling_of(words(words_)); }

void ValueFlags::declare(CommandLine& line) {
  line.heading("Values");
  declare_vocab(line);
  declare_params(line);
  line.option(
          "--dtype TYPE", dtype_,
          "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type")
      .words({"keep", "bf16", "fp16", "fp32"})
      .common();
  declare_rules(line);
}

void ValueFlags::declare_vocab(CommandLine& line) {
  line.option("--vocab-size ROWS", vocab_,
              "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep "
              "(refused there), a number, or divisible-by-N as below")
      .words({"auto", "keep"});
  line.option("--make-vocab-size-divisible-by N", divisor_,
              "pads the vocabulary as Megatron-LM does, which always pads: to a multiple of tp times N, 128 by "
              "default there");
}

void ValueFlags::declare_params(CommandLine& line) {
  line.option("--params-dtype TYPE", params_dtype_,
              "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32")
      .words({"auto", "none", "bf16", "fp16", "fp32"});
}

void ValueFlags::declare_rules(CommandLine& line) {
  line.option("--dtype-rule GLOB=TYPE", rules_,
              "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable)");
}

// Options that were not declared keep their defaults.
ValueOptions ValueFlags::options() const {
  ValueOptions options;
  if (divisor_ && vocab_ != "auto")
    throw Error(Code::kUsage, "--vocab-size gives the rows, and --make-vocab-size-divisible-by a padding of them")
        .help("leave out one of the two");
  const std::string word = divisor_ ? vocab_word({VocabChoice::kDivisor, *divisor_}) : vocab_;
  const std::optional<VocabChoice> vocab = vocab_choice_of(word);
  if (!vocab && divisor_)
    throw Error(Code::kUsage, "--make-vocab-size-divisible-by is a number of 1 or more");
  if (!vocab)
    throw Error(Code::kUsage, "the value of --vocab-size is not allowed")
        .expected(kVocabWords)
        .found(escaped(vocab_));
  options.vocab = *vocab;
  if (params_dtype_ == "auto")
    options.params_dtype = {ParamsDtype::kConfig};
  else if (params_dtype_ != "none")
    options.params_dtype = {ParamsDtype::kGiven, parameter_type(params_dtype_, "--params-dtype")};
  if (dtype_ != "keep") options.dtype = parameter_type(dtype_, "--dtype", "keep");
  for (const std::string& rule : rules_) add_rule(rule, options.rules);
  return options;
}

}  // namespace mckpt::impl
