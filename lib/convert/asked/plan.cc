// One plan_of() for each struct of `AnyConversion`. Words that may be wrong are read before options are put
// together: where one throws inside of nested braces, gcc 13 destroys members twice.
#include "convert/asked/plan.h"

#include "convert/asked/words.h"
#include "convert/output/fsdp_folder.h"
#include "convert/plan/conversion.h"
#include "convert/plan/quantized/dequantize.h"
#include "convert/plan/quantized/quantize.h"
#include "convert/plan/reshard/reshard.h"
#include "convert/plan/reshard/to_fsdp.h"
#include "convert/plan/targets/dcp.h"
#include "convert/plan/targets/file.h"
#include "convert/plan/targets/hdf5.h"
#include "convert/plan/targets/hf.h"
#include "convert/plan/targets/own.h"
#include "convert/plan/targets/ranks.h"
#include "convert/plan/targets/relayer.h"
#include "convert/plan/targets/torch_dist.h"
#include "convert/run/run.h"
#include "core/base/error.h"

namespace mckpt::impl {
namespace {

// Options that most planners have under the same names.
template <typename Options, typename What>
Options common_options(const What& what, const Planning& how) {
  Options out;
  out.source = what.source, out.target = what.target;
  if constexpr (requires { out.threads; }) out.threads = how.threads;
  if constexpr (requires { out.rank; }) out.rank = how.rank;
  if constexpr (requires { what.model_dict; }) out.model_dict = model_dict_of(what.model_dict);
  if constexpr (requires { out.iteration; }) {
    check_iteration(what.iteration);
    out.iteration = what.iteration;
  }
  if constexpr (requires {
                  out.accept;
                  what.accept;
                })
    out.accept = accepted_codes(what.accept);
  if constexpr (requires {
                  out.assets;
                  what.assets;
                })
    out.assets = what.assets;
  if constexpr (requires { out.files; })
    out.files = opening_of(what.files, {{what.source}, how.helper_folders});
  return out;
}

CheckpointOptions checkpoint_of(const SourceOptions& opening, const std::string& source,
                                const Planning& how) {
  return checkpoint_options(opening, {{source}, how.helper_folders});
}

// Which checkpoint a ToFsdp or a Reshard reads, and which of its states.
template <typename What>
ReshardSourceOptions reshard_source(const What& what, const SourceOptions& opening, const Planning& how) {
  ReshardSourceOptions from;
  from.checkpoint = checkpoint_of(opening, what.source, how);
  from.checkpoint.any_model = what.any_model;
  from.weights_only = what.weights_only;
  from.rank_states = what.rank_states;
  from.source_ep = what.source_ep, from.source_hsdp = what.source_hsdp;
  return from;
}

template <typename What>
PipelineOptions pipeline_of(const What& what) {
  return {what.vpp, what.first_stage_layers, what.last_stage_layers};
}

Conversion plan_of(const ToFsdp& what, const Planning& how) {
  ToFsdpOptions out;
  HfToFsdpOptions& model = out.model;
  check_iteration(what.iteration);
  model.source = what.source, model.target = what.target, model.iteration = what.iteration;
  model.model_dict = model_dict_of(what.model_dict);
  model.grid = grid_of(what.grid);
  model.fsdp = setup_of(what.fsdp, model.grid), model.frozen = frozen_of(what.fsdp);
  model.spelling = spelling_in(what.spelling);
  model.values = value_options(what.values);
  model.hybrid_pattern = what.hybrid_pattern;
  model.threads = how.threads, model.rank = how.rank;
  SourceOptions opening;
  opening.assets = what.assets, opening.accept = what.accept, opening.model = what.model;
  opening.source_tp = what.source_tp, opening.source_etp = what.source_etp;
  out.from = reshard_source(what, opening, how);
  out.keep_fp8 = keeps_recipe(what.fsdp);
  out.modules = UnitModules(what.fsdp_module);
  if (!what.spelling.empty()) out.from.checkpoint.spelling = model.spelling;
  out.model_alone = how.model_alone;
  return plan_to_fsdp(std::move(out));
}

Conversion plan_of(const ToMcore& what, const Planning& how) {
  auto out = common_options<ToMcoreOptions>(what, how);
  out.checkpoint = checkpoint_of(what.opening, what.source, how);
  out.weights_only = what.weights_only;
  out.grid = grid_of(what.grid), out.pipeline = pipeline_of(what);
  out.layers = layer_stacks(what.layers), out.spelling = given_spelling(what.spelling);
  out.hybrid_pattern = what.hybrid_pattern;
  out.values = value_options(what.values);
  return plan_to_mcore(out);
}

// Without a size the files are the original model's, if they are known.
Conversion plan_of(const ToHf& what, const Planning& how) {
  auto out = common_options<ExportOptions>(what, how);
  out.checkpoint = checkpoint_of(what.opening, what.source, how);
  out.types.rules = dtype_rules(what.dtype_rule);
  if (what.dtype == "keep") out.types.kind = ExportTypes::kStored;
  if (what.dtype != "keep" && what.dtype != "auto") {
    out.types.kind = ExportTypes::kGiven;
    out.types.given = value_type(what.dtype, "dtype", "auto, keep, ");
  }
  out.max_shard_bytes = what.max_shard_size.value_or(kUsualShardBytes);
  out.original_files = !what.max_shard_size;
  if (!what.quantize) return plan_export(out);
  return plan_quantized_export(out, quantize_scheme(*what.quantize, "`quantize`"));
}

Conversion plan_of(const Reshard& what, const Planning& how) {
  auto out = common_options<ReshardOptions>(what, how);
  out.from = reshard_source(what, what.opening, how);
  out.from.keep_names = what.keep_names;
  out.grid = grid_of(what.grid), out.pipeline = pipeline_of(what);
  out.hybrid_pattern = what.hybrid_pattern;
  out.fsdp = setup_of(what.fsdp, out.grid), out.frozen = frozen_of(what.fsdp);
  out.keep_fp8 = keeps_recipe(what.fsdp);
  out.modules = UnitModules(what.fsdp_module);
  out.vocab = vocab_choice(what.vocab_size);
  out.from.checkpoint.spelling = given_spelling(what.spelling, true);
  return plan_reshard(out);
}

Conversion plan_of(const ToRanks& what, const Planning& how) {
  auto out = common_options<ToRanksOptions>(what, how);
  out.checkpoint = checkpoint_of(what.opening, what.source, how);
  out.grid = grid_of(what.grid), out.pipeline = pipeline_of(what);
  out.hybrid_pattern = what.hybrid_pattern;
  out.spelling = spelling_in(what.spelling, true);
  out.values = value_options(what.values);
  return plan_to_ranks(out);
}

Conversion plan_of(const Relayer& what, const Planning& how) {
  auto out = common_options<RelayerOptions>(what, how);
  out.way = layer_way(what.way);
  out.pattern = what.pattern;
  out.keys = group_names(what.keys), out.layers = gpt_layers(what.layers);
  out.how.norms = norm_place(what.norms);
  out.how.without_mixers = what.without_mixers;
  out.how.weights_only = what.weights_only;
  out.how.spelling = given_spelling(what.spelling);
  if (out.how.spelling && out.how.spelling->old_mtp)
    throw Error(Code::kUsage, "only files of ranks are written with the old names of MTP's layers")
        .found("`spelling` mtp-transformer-layer");
  return plan_relayer(out);
}

Conversion plan_of(const ToSafetensors& what, const Planning& how) {
  auto out = common_options<OneFileOptions>(what, how);
  out.types = stored_types(what.dtype, what.dtype_rule);
  return plan_to_safetensors(out);
}

Conversion plan_of(const ToDcp& what, const Planning& how) {
  auto out = common_options<ToDcpOptions>(what, how);
  out.ranks = what.dp, out.section = what.section;
  out.weights_only = what.weights_only;
  out.dtype = value_type_or_kept(what.dtype);
  return plan_to_dcp(out);
}

Conversion plan_of(const Dequantize& what, const Planning& how) {
  auto out = common_options<DequantizeOptions>(what, how);
  if (what.dtype != "auto") out.dtype = value_type(what.dtype, "dtype", "auto, ");
  out.max_shard_bytes = what.max_shard_size;
  return plan_dequantize(out);
}

Conversion plan_of(const Quantize& what, const Planning& how) {
  auto out = common_options<QuantizeOptions>(what, how);
  out.to = quantize_scheme(what.scheme, "`scheme`", what.like.has_value());
  out.like = what.like.value_or("");
  out.max_shard_bytes = what.max_shard_size.value_or(kUsualShardBytes);
  out.original_files = !what.max_shard_size;
  return plan_quantize(out);
}

Conversion plan_of(const ToHdf5& what, const Planning& how) {
  auto out = common_options<ToHdf5Options>(what, how);
  out.single_file = what.single_file;
  return plan_to_hdf5(out);
}

Conversion plan_of(const FromHdf5& what, const Planning& how) {
  return plan_from_hdf5(common_options<FromHdf5Options>(what, how));
}

// The assets of a PtToSafetensors or a ToPt.
template <typename What>
FileOptions file_options(const What& what, const Planning& how) {
  auto out = common_options<FileOptions>(what, how);
  out.include = what.include, out.exclude = what.exclude;
  return out;
}

Conversion plan_of(const PtToSafetensors& what, const Planning& how) {
  return plan_pt_to_safetensors(file_options(what, how), what.tensors_only);
}

Conversion plan_of(const ToPt& what, const Planning& how) {
  return plan_safetensors_to_pt(file_options(what, how));
}

}  // namespace

Conversion plan_asked(const AnyConversion& what, const Planning& how) {
  return std::visit([&](const auto& one) { return plan_of(one, how); }, what);
}

RunOptions run_options(const mckpt::RunOptions& options) {
  return {.threads = options.threads,
          .memory_bytes = options.max_memory,
          .durable = options.sync,
          .overwrite = options.overwrite,
          .resume = options.resume,
          .allow_overflow = options.allow_overflow};
}

const mckpt::Grid* asked_grid(const AnyConversion& what) {
  return std::visit(
      [](const auto& one) -> const mckpt::Grid* {
        if constexpr (requires { one.grid; })
          return &one.grid;
        else
          return nullptr;
      },
      what);
}

}  // namespace mckpt::impl
