// The training run that a conversion is for, types of values, and how a conversion is carried out. Long flags
// have the names of Megatron's own arguments, so that a launch script can be copied.
#include "core/base/error.h"
#include "options/fields.h"

namespace mckpt::impl {
namespace {

// "TransformerLayer,HybridStack": the three members for the classes of layers.
void take_units(const std::vector<std::string>& given, mckpt::Fsdp& to) {
  to.transformer_units = to.mamba_units = to.hybrid_stack_units = false;
  for (const std::string& name : parts_of(given)) {
    if (name == "TransformerLayer")
      to.transformer_units = true;
    else if (name == "MambaLayer")
      to.mamba_units = true;
    else if (name == "HybridStack")
      to.hybrid_stack_units = true;
    else if (name != "none")
      throw Error(Code::kUsage, "there is no such class of modules")
          .expected("TransformerLayer, MambaLayer, HybridStack or none")
          .found(cat("`fsdp_unit` ", escaped(name)));
  }
}

// The divisor of Megatron's own argument as a word of vocab_size.
void take_divisor(const std::vector<std::string>& given, std::string& rows) {
  if (rows != "auto")
    throw Error(Code::kUsage,
                "`vocab_size` gives the rows, and `make_vocab_size_divisible_by` a padding of them")
        .help("leave out one of the two");
  const std::string& number = given.front();
  if (number.empty() || number.find_first_not_of("0123456789") != number.npos || number[0] == '0')
    throw Error(Code::kUsage, "`make_vocab_size_divisible_by` is a number of 1 or more")
        .found(escaped(number));
  rows = cat("divisible-by-", number);
}

}  // namespace

void fields(mckpt::Grid& o, FieldVisitor& v, const GridFields& how) {
  v.heading("Grid");
  v({.name = "tp", .flags = "tp tensor-model-parallel-size", .common = true, .help = "tensor-parallel size"},
    o.tp);
  v({.name = "cp", .flags = "cp context-parallel-size", .help = "context-parallel size"}, o.cp);
  v({.name = "ep", .flags = "ep expert-model-parallel-size", .common = true, .help = "expert-parallel size"},
    o.ep);
  v({.name = "etp",
     .flags = "etp expert-tensor-parallel-size",
     .help = "expert-tensor-parallel size, 1 by default (not tp)"},
    o.etp);
  v({.name = "pp",
     .flags = "pp pipeline-model-parallel-size",
     .common = how.stages,
     .help = "pipeline stages"},
    o.pp);
  const std::string dp = cat("data-parallel size, without cp and including hsdp; by default ", how.dp);
  v({.name = "dp", .flags = "dp data-parallel-size", .common = true, .help = dp}, o.dp);
  if (!how.instances) return;
  v({.name = "hsdp", .flags = "hsdp num-distributed-optimizer-instances", .help = "number of HSDP instances"},
    o.hsdp);
  v({.name = "hsdp_outer",
     .value = "HOW",
     .words = "replicate shard",
     .only = true,
     .help = "how HSDP instances are related: replicate or shard"},
    o.hsdp_outer);
}

void pipeline_fields(std::int64_t& chunks, std::optional<std::int64_t>& first,
                     std::optional<std::int64_t>& last, FieldVisitor& v) {
  v({.name = "vpp",
     .flags = "vpp virtual-pipeline-model-parallel-size",
     .help = "chunks of layers on each pipeline stage, which take turns"},
    chunks);
  v({.name = "first_stage_layers",
     .flags = "first-stage-layers decoder-first-pipeline-num-layers",
     .help = "layers on the first pipeline stage; by default as many as on the others"},
    first);
  v({.name = "last_stage_layers",
     .flags = "last-stage-layers decoder-last-pipeline-num-layers",
     .help = "layers on the last pipeline stage; by default as many as on the others"},
    last);
}

void hybrid_pattern_field(std::string& pattern, FieldVisitor& v) {
  v({.name = "hybrid_pattern",
     .value = "PATTERN",
     .help =
         "the pattern of a hybrid training run with its layers in groups, as in '[*-]M'; names and units follow it"},
    pattern);
}

void fields(mckpt::Fsdp& o, FieldVisitor& v) {
  v.heading("Megatron-FSDP");
  v({.name = "engine",
     .value = "VERSION",
     .words = "v1 v2",
     .only = true,
     .help = "v1 (default) or v2 of Megatron-FSDP; v2 saves whole parameters in fp32 under model.<param>"},
    o.engine);
  v({.name = "strategy",
     .value = "NAME",
     .flags = "strategy data-parallel-sharding-strategy",
     .words = "no_shard optim optim_grads optim_grads_params",
     .common = true,
     .help = "what is sharded: no_shard, optim, optim_grads or optim_grads_params"},
    o.strategy);
  v.field(
      {.name = "fsdp_unit",
       .value = "CLASS",
       .words = "TransformerLayer MambaLayer HybridStack none",
       .doors = FieldDoors::kProgram,
       .help =
           "module classes that are FSDP units: TransformerLayer, MambaLayer (these two by default), HybridStack (the groups of a pattern, or the whole stack of a pattern without groups), or none"},
      TakeTexts([&o](const std::vector<std::string>& given) { take_units(given, o); }));
  constexpr FieldDoors kSettings = FieldDoors::kSettings;
  v({.name = "transformer_units", .doors = kSettings, .help = "whether transformer layers are FSDP units"},
    o.transformer_units);
  v({.name = "mamba_units", .doors = kSettings, .help = "whether Mamba layers are FSDP units"},
    o.mamba_units);
  v({.name = "hybrid_stack_units",
     .doors = kSettings,
     .help =
         "whether the stacks of a hybrid model are FSDP units: its groups, or without groups the whole stack"},
    o.hybrid_stack_units);
  v({.name = "fp8_recipe",
     .value = "NAME",
     .words = "auto none tensorwise delayed blockwise mxfp8",
     .only = true,
     .help =
         "recipe of weights that the run has in 8 bits (fp8_param_gather in Megatron): none, tensorwise, delayed, blockwise or mxfp8; they have buffers of their own, and checkpoints their fp32 main weights; auto (default): none, but a checkpoint whose boxes are those of such weights stays packed so"},
    o.fp8_recipe);
  v({.name = "units_for",
     .value = "WHICH",
     .flags = "fsdp-units-for",
     .words = "full sharded",
     .only = true,
     .help = "strategies that have FSDP units: full (only optim_grads_params) or sharded (later versions)"},
    o.units_for);
  v({.name = "freeze",
     .value = "GLOB",
     .help = "parameters that are not trained; none: all are trained, also those that the family freezes"},
    o.freeze);
  v({.name = "bucket_size",
     .help = "number of items after which parameters outside FSDP units begin a new bucket; 0: never"},
    o.bucket_size);
}

void spelling_field(std::vector<std::string>& words, FieldVisitor& v, bool rank_files) {
  const std::string help = cat(
      "names as other versions and specs of Megatron have them: submodule-conv (mixer.conv1d.weight for mixer.conv1d_weight), unfused-norms (input_layernorm.weight for linear_qkv.layer_norm_weight, and the like)",
      rank_files
          ? ", mtp-transformer-layer (transformer_layer for MTP's mtp_model_layer, as in Megatron-Core up to 0.16)"
          : "",
      ", or usual alone; by default a model gets the usual names and a checkpoint of Megatron keeps its own");
  v({.name = "spelling",
     .value = "WORDS",
     .words = rank_files ? "submodule-conv unfused-norms mtp-transformer-layer usual"
                         : "submodule-conv unfused-norms usual",
     .help = help},
    words);
}

void vocab_fields(std::string& rows, FieldVisitor& v) {
  v({.name = "vocab_size",
     .value = "ROWS",
     .words = "auto keep",
     .help =
         "rows of the vocabulary: auto (padded only where it does not divide by tp; the default), keep (refused there), a number, or divisible-by-N (padded to a multiple of tp times N)"},
    rows);
  v.field(
      {.name = "make_vocab_size_divisible_by",
       .value = "N",
       .doors = FieldDoors::kProgram,
       .help =
           "pads the vocabulary as Megatron-LM does, which always pads: to a multiple of tp times N, 128 by default there"},
      TakeTexts([&rows](const std::vector<std::string>& given) { take_divisor(given, rows); }));
}

void params_dtype_field(std::string& type, FieldVisitor& v) {
  v({.name = "params_dtype",
     .value = "TYPE",
     .words = "auto none bf16 fp16 fp32",
     .help = "data type of parameters at run time: auto (from the config), none, bf16, fp16 or fp32"},
    type);
}

void dtype_rule_field(TextPairs& rules, FieldVisitor& v) {
  v({.name = "dtype_rule",
     .value = "GLOB=TYPE",
     .help =
         "data type of the tensors whose whole name matches: bf16, fp16 or fp32 (repeatable; the last that matches decides)"},
    rules);
}

void fields(mckpt::Values& o, FieldVisitor& v) {
  v.heading("Values");
  vocab_fields(o.vocab_size, v);
  params_dtype_field(o.params_dtype, v);
  v({.name = "dtype",
     .value = "TYPE",
     .words = "keep bf16 fp16 fp32",
     .common = true,
     .help =
         "data type of the tensors: keep, bf16, fp16 or fp32; frozen parameters and buffers keep their type"},
    o.dtype);
  dtype_rule_field(o.dtype_rule, v);
}

void fields(mckpt::RunOptions& o, FieldVisitor& v) {
  v({.name = "overwrite", .common = true, .help = "replace `target` when the new result is complete"},
    o.overwrite);
  v({.name = "card",
     .value = "FILE",
     .help =
         "also write a card of the result: its files and tensors with their SHA-256, for `mckpt verify`, sha256sum and signing; .json, .md or .sha256 (repeatable). It takes one more read of the result"},
    o.card);
  v({.name = "command", .doors = FieldDoors::kSettings, .help = "for the card: what was asked for"},
    o.command);
  v({.name = "sync", .doors = FieldDoors::kSettings, .help = "wait until the result is on the disk"}, o.sync);
  v.field({.name = "no_sync",
           .doors = FieldDoors::kProgram,
           .help = "do not wait until the result is on the disk (for scratch copies)"},
          ClearedBy{&o.sync});
  v({.name = "threads", .common = true, .help = "number of threads; by default one for each processor"},
    o.threads);
  v({.name = "max_memory",
     .bytes = true,
     .help = "memory for the buffers of all threads together; by default 256MiB"},
    o.max_memory);
  v({.name = "resume", .common = true, .help = "continue an interrupted run of the same command"}, o.resume);
  v({.name = "allow_overflow",
     .help =
         "publish the result although a cast made finite values infinite; without this option that is an error"},
    o.allow_overflow);
}

}  // namespace mckpt::impl
