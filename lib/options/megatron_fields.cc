// Conversions from and to Megatron's checkpoints.
#include "core/base/text.h"
#include "options/fields.h"

namespace mckpt::impl {
namespace {

// hf-to-fsdp reads models alone: so fields about checkpoints are not flags of it.
FieldDoors of_checkpoints(const FieldVisitor& v) {
  return v.kind() == "hf-to-fsdp" ? FieldDoors::kSettings : FieldDoors::kBoth;
}

void source_field(std::string& source, FieldVisitor& v, std::string_view help) {
  v({.name = "source", .value = "SRC", .argument = true, .help = help}, source);
}

void target_field(std::string& target, FieldVisitor& v, std::string_view help) {
  v({.name = "target", .value = "DST", .argument = true, .help = help}, target);
}

void iteration_field(std::optional<std::int64_t>& iteration, FieldVisitor& v, std::string_view otherwise) {
  const std::string help = cat("write `target`/iter_000000N, N above 0; by default ", otherwise);
  v({.name = "iteration", .value = "N", .help = help}, iteration);
}

void weights_only_field(bool& alone, FieldVisitor& v, FieldDoors doors = FieldDoors::kBoth) {
  v({.name = "weights_only",
     .common = true,
     .doors = doors,
     .help = "do not copy the states of the optimizer"},
    alone);
}

// Where the states of the optimizer come from, and models without a table: of ToFsdp and Reshard.
template <typename What>
void state_fields(What& o, FieldVisitor& v, FieldDoors doors) {
  weights_only_field(o.weights_only, v, doors);
  v({.name = "rank_states",
     .value = "DIR",
     .doors = doors,
     .help =
         "read the optimizer states from files ..._rank_R.pt, in which each rank of `source`'s training run saved its own pieces"},
    o.rank_states);
  v({.name = "source_ep",
     .value = "N",
     .doors = doors,
     .help = "number of expert-parallel ranks that wrote `source`, if `source` does not say so itself"},
    o.source_ep);
  v({.name = "source_hsdp",
     .value = "N",
     .doors = doors,
     .help = "number of HSDP instances that wrote `source`, if `source` does not say so itself"},
    o.source_hsdp);
  v({.name = "any_model",
     .common = true,
     .doors = doors,
     .help = "accept a model without a table: all parameters are in one buffer, of one tensor-parallel rank"},
    o.any_model);
}

// The pattern of a source whose layers and groups stay.
void pipes_field(std::string& pattern, FieldVisitor& v) {
  v({.name = "hybrid_pattern",
     .value = "PATTERN",
     .help =
         "the pattern of a hybrid `source` with | at the ends of the new stages; by default they are placed by `pp` and `vpp`"},
    pattern);
}

void fsdp_module_field(std::vector<std::string>& globs, FieldVisitor& v,
                       FieldDoors doors = FieldDoors::kBoth) {
  v({.name = "fsdp_module",
     .value = "GLOB",
     .doors = doors,
     .help =
         "with `any_model` and `engine` v2: modules that are FSDP units, by their names, as in 'blocks.*'"},
    globs);
}

}  // namespace

void fields(ToFsdp& o, FieldVisitor& v) {
  const bool models = v.kind() == "hf-to-fsdp";
  const FieldDoors doors = of_checkpoints(v);
  source_field(
      o.source, v,
      models
          ? "the folder of a Hugging Face model, or a checkpoint with the model's own names: torch DCP of FSDP2, accelerate or torchtitan, files of ranks (verl, DeepSpeed ZeRO), .pt"
          : "a Hugging Face folder; a checkpoint with the model's own names (FSDP2, accelerate, torchtitan, verl, DeepSpeed, .pt); or one of Megatron (torch_dist, mp_rank_*, fsdp_dtensor, Megatron-FSDP alone)");
  target_field(o.target, v,
               models ? "the folder for the checkpoints of a training run; the result is `target`/release"
                      : "the folder for the checkpoints of a training run");
  iteration_field(o.iteration, v,
                  models ? "`target`/release" : "the name of Megatron's `source`, or release");
  assets_field(
      o.assets, v,
      models
          ? "folder with the config.json of a checkpoint with the model's own names, where the training framework put none beside it"
          : "of a checkpoint: folder of the original model, or of its config.json, where there is none beside it");
  state_fields(o, v, doors);
  source_rank_fields(o.source_tp, o.source_etp, v, doors);
  accept_field(o.accept, v);
  expert_layout_and_map(o.model, v);
  fields(o.grid, v);
  fields(o.fsdp, v);
  fsdp_module_field(o.fsdp_module, v, doors);
  spelling_field(o.spelling, v);
  hybrid_pattern_field(o.hybrid_pattern, v);
  fields(o.values, v);
  fields(o.model.files, v);
  model_dict_field(o.model_dict, v);
  v.casts();
}

void fields(ToMcore& o, FieldVisitor& v) {
  source_field(
      o.source, v,
      "a Hugging Face model, a checkpoint with its names, or one of Megatron: fsdp_dtensor, torch_dist, FSDP2 or Megatron-FSDP alone");
  target_field(o.target, v, "the folder for the checkpoints of a training run");
  iteration_field(o.iteration, v, "the name of `source`'s folder, or release");
  fields(o.opening, v);
  model_dict_field(o.model_dict, v);
  weights_only_field(o.weights_only, v);
  fields(o.grid, v, {.stages = true, .instances = false});
  pipeline_fields(o.vpp, o.first_stage_layers, o.last_stage_layers, v);
  v({.name = "layers",
     .value = "HOW",
     .words = "auto stacked indexed",
     .only = true,
     .help =
         "whether all layers are one tensor: auto (as Megatron stores them for this model), stacked or indexed"},
    o.layers);
  spelling_field(o.spelling, v);
  hybrid_pattern_field(o.hybrid_pattern, v);
  fields(o.values, v);
  v.casts();
}

void fields(ToHf& o, FieldVisitor& v) {
  source_field(o.source, v, "a checkpoint: the folder of a training run, or one iteration of it");
  target_field(o.target, v, "the Hugging Face folder to make");
  fields(o.opening, v);
  model_dict_field(o.model_dict, v);
  v({.name = "dtype",
     .value = "TYPE",
     .words = "auto keep bf16 fp16 fp32",
     .common = true,
     .help =
         "data type of the tensors: auto (as in the original model; as stored, where `source` has the model's own names), keep (as stored), bf16, fp16 or fp32"},
    o.dtype);
  dtype_rule_field(o.dtype_rule, v);
  v.casts();
  v({.name = "max_shard_size",
     .common = true,
     .bytes = true,
     .help =
         "most bytes of tensors in one file; by default the files of the original model, where its headers are known and the tensors have the same types, else 5GB"},
    o.max_shard_size);
  v({.name = "quantize",
     .value = "SCHEME",
     .flags = "scheme quantize to",
     .words = "like-source fp8-block mxfp4",
     .common = true,
     .help =
         "of a Megatron checkpoint: write codes and scales; fp8-block, mxfp4, or like-source (those of `assets`, with its weights)"},
    o.quantize);
}

void fields(Reshard& o, FieldVisitor& v) {
  source_field(
      o.source, v,
      "a sharded checkpoint: fsdp_dtensor, torch_dist, files of Megatron's ranks, or another DCP folder; the folder of a training run, or one iteration of it");
  target_field(o.target, v, "the folder for the checkpoints of the new training run");
  iteration_field(o.iteration, v, "the name of `source`'s folder, or release");
  state_fields(o, v, FieldDoors::kBoth);
  v({.name = "keep_names",
     .help =
         "with `any_model`: keep every tensor's own name, also where the names follow a convention that would be translated to that of fsdp_dtensor"},
    o.keep_names);
  SourceOptions& opening = o.opening;
  assets_field(opening.assets, v);
  source_rank_fields(opening.source_tp, opening.source_etp, v);
  accept_field(opening.accept, v);
  expert_layout_and_map(opening.model, v);
  file_fields(opening.model.files, v);
  fields(o.grid, v, {.stages = true});
  pipeline_fields(o.vpp, o.first_stage_layers, o.last_stage_layers, v);
  pipes_field(o.hybrid_pattern, v);
  fields(o.fsdp, v);
  fsdp_module_field(o.fsdp_module, v);
  spelling_field(o.spelling, v, true);
  v.heading("Values");
  vocab_fields(o.vocab_size, v);
}

void fields(ToRanks& o, FieldVisitor& v) {
  source_field(o.source, v, "the folder of a Hugging Face model, or a sharded checkpoint");
  target_field(o.target, v,
               "the folder for the checkpoints of a training run; the result is `target`/release");
  iteration_field(o.iteration, v, "`target`/release");
  fields(o.opening, v);
  model_dict_field(o.model_dict, v);
  fields(o.grid, v, {.stages = true});
  pipeline_fields(o.vpp, o.first_stage_layers, o.last_stage_layers, v);
  pipes_field(o.hybrid_pattern, v);
  spelling_field(o.spelling, v, true);
  fields(o.values, v);
  v.casts();
}

// The four ways share one struct; each shows the fields that it reads.
void fields(Relayer& o, FieldVisitor& v) {
  const std::string_view way = v.kind();
  const bool to_gpt = way == "hybrid-to-gpt", to_hybrid = way == "gpt-to-hybrid", group = way == "group";
  source_field(
      o.source, v,
      "a torch_dist or fsdp_dtensor checkpoint: the folder of a training run, or one iteration of it");
  target_field(o.target, v, "the folder for the checkpoints of the new training run");
  v({.name = "pattern",
     .value = "PATTERN",
     .flags = "pattern hybrid-pattern",
     .common = true,
     .help =
         to_gpt      ? "the pattern of `source`; by default the pattern in the args of `source`"
         : to_hybrid ? "the pattern that the result has: one * and one - or E for each layer of `source`"
         : group
             ? "the pattern that the result has, with groups"
             : "the pattern of `source`, with its groups; by default the pattern in the args of `source`"},
    o.pattern);
  if (group || to_hybrid)
    v({.name = "keys",
       .value = "NAMES",
       .words = "auto logical member",
       .only = true,
       .common = true,
       .help = "how groups are named: auto (as the format of `source` stores them), logical or member"},
      o.keys);
  if (to_gpt)
    v({.name = "layers",
       .value = "FORM",
       .words = "auto stacked indexed",
       .only = true,
       .common = true,
       .help =
           "stacked: one tensor for all layers; indexed: one for each layer; auto: as GPT models store them"},
      o.layers);
  if (to_gpt || to_hybrid)
    v({.name = "without_mixers",
       .common = true,
       .help = to_gpt ? "drop the M layers, which a GPT model does not have"
                      : "write a result without the M layers, which the training run has to initialise"},
      o.without_mixers);
  if (to_gpt || to_hybrid)
    v({.name = "norms",
       .value = "PLACE",
       .words = "keep fused apart",
       .only = true,
       .common = true,
       .help =
           "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart (in the layer) or keep"},
      o.norms);
  weights_only_field(o.weights_only, v);
  spelling_field(o.spelling, v);
  accept_field(o.accept, v);
  file_fields(o.files, v);
}

}  // namespace mckpt::impl
