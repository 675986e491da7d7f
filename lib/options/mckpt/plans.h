// Conversions from and to Megatron's checkpoints, each kind a struct of plain values. A field that is left
// out keeps its default. Most fields have the names of the program's options. mckpt/plain_plans.h has others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/options.h"
#include "mckpt/run.h"

namespace mckpt {

// Any checkpoint -> the fsdp_dtensor checkpoint that a run of this grid would have saved: of a Hugging Face
// folder, of the model's own names (FSDP2, accelerate, verl, torchtitan, DeepSpeed), or of Megatron, with the
// states of its optimizer, with its names and types: torch_dist, files of ranks, Megatron-FSDP alone.
struct ToFsdp {
  std::string source{}, target{};
  // For a checkpoint: folder of config.json, if there is none beside it; damage that is accepted.
  std::optional<std::string> assets{};
  std::vector<std::string> accept{};
  ModelOptions model{};
  Grid grid{};
  Fsdp fsdp{};
  Values values{};
  // "submodule-conv", "unfused-norms", or "usual" alone; none: usual of a model, a checkpoint's own
  std::vector<std::string> spelling{};
  std::string hybrid_pattern{};             // of a hybrid run with its layers in groups, "[*-]M"
  std::optional<std::int64_t> iteration{};  // none: the source's, or target/release
  std::optional<std::string> model_dict{};  // as of ToSafetensors (mckpt/plain_plans.h)
  // For a checkpoint of Megatron, as in SourceOptions and Reshard.
  std::optional<std::int64_t> source_tp{}, source_etp{};
  bool weights_only = false, any_model = false;
  std::vector<std::string> fsdp_module{};
  std::optional<std::string> rank_states{};
  std::optional<std::int64_t> source_ep{}, source_hsdp{};
};

// A Hugging Face model or a sharded checkpoint -> the torch_dist checkpoint of a run of this grid.
struct ToMcore {
  std::string source{}, target{}, layers = "auto";  // auto (as Megatron stores them), stacked, indexed
  SourceOptions opening{};
  Grid grid{};
  // As of ToRanks: decide which file a layer is in, and what the args say.
  std::int64_t vpp = 1;
  std::optional<std::int64_t> first_stage_layers{}, last_stage_layers{};
  Values values{};
  bool weights_only = false;
  std::vector<std::string> spelling{};      // as in ToFsdp: "unfused-norms", of a model with experts
  std::string hybrid_pattern{};             // as in ToFsdp; of a checkpoint, with other pipes
  std::optional<std::int64_t> iteration{};  // none: the source's, or target/release
  std::optional<std::string> model_dict{};  // as of ToSafetensors (mckpt/plain_plans.h)
};

// A sharded checkpoint -> a Hugging Face folder.
struct ToHf {
  std::string source{}, target{};
  SourceOptions opening{};
  std::string dtype = "auto";  // auto (the original model's types), keep (as stored), bf16, fp16, fp32
  std::vector<std::pair<std::string, std::string>> dtype_rule{};
  // Bytes of tensors in one file; none: as in the model's own folder if known, else kUsualShardSize
  std::optional<std::int64_t> max_shard_size{};
  // fp8-block, mxfp4, like-source (the format of opening.assets); none: plain numbers
  std::optional<std::string> quantize{};
  std::optional<std::string> model_dict{};  // as of ToSafetensors (mckpt/plain_plans.h)
};

// A sharded checkpoint, with its optimizer states -> another grid or strategy, in its own format:
// fsdp_dtensor, torch_dist, files of ranks (weights only), other DCP with its own names.
struct Reshard {
  std::string source{}, target{};
  SourceOptions opening{};
  Grid grid{};
  Fsdp fsdp{};  // of DCP folders other than torch_dist
  // As of ToRanks; of torch_dist and of files of ranks.
  std::int64_t vpp = 1;
  std::optional<std::int64_t> first_stage_layers{}, last_stage_layers{};
  std::string hybrid_pattern{};              // of the source, with other pipes; "": they follow the stages
  std::string vocab_size = "auto";           // rows: auto (where needed), keep, a number, divisible-by-128
  bool weights_only = false;                 // leave the states of the optimizer out
  bool any_model = false;                    // accept a model that no table knows
  std::vector<std::string> fsdp_module{};    // with any_model and engine v2: globs of modules that are units
  bool keep_names = false;                   // with any_model: every tensor keeps its name
  std::vector<std::string> spelling{};       // as in ToRanks; none: the source's
  std::optional<std::string> rank_states{};  // folder with the optimizer states of the ranks, a file each
  std::optional<std::int64_t> source_ep{}, source_hsdp{}, iteration{};  // of rank_states; none: the source's
};

// A Hugging Face model, or a sharded checkpoint -> the files that the ranks of a Megatron run save
// (--ckpt-format torch), weights only: target/release/mp_rank_*/model_optim_rng.pt.
struct ToRanks {
  std::string source{}, target{};
  SourceOptions opening{};  // of a sharded checkpoint; its model also of a Hugging Face folder
  Grid grid{};
  std::int64_t vpp = 1;                                                   // chunks of layers on each stage
  std::optional<std::int64_t> first_stage_layers{}, last_stage_layers{};  // none: as many as on the others
  std::string hybrid_pattern{};                                           // as in Reshard
  Values values{};
  std::vector<std::string> spelling{};      // as in ToFsdp, and "mtp-transformer-layer"
  std::optional<std::int64_t> iteration{};  // none: target/release
  std::optional<std::string> model_dict{};  // as of ToSafetensors (mckpt/plain_plans.h)
};

// The layers of a hybrid model under the names that another form of the model has for them.
struct Relayer {
  std::string way{};  // ungroup, group, hybrid-to-gpt, gpt-to-hybrid
  std::string source{}, target{};
  std::optional<std::string> pattern{};  // of the source (ungroup, hybrid-to-gpt) or of the result
  std::string keys = "auto";             // group, gpt-to-hybrid: auto, logical, member
  std::string layers = "auto";           // hybrid-to-gpt: auto, stacked, indexed
  std::string norms = "keep";            // to and from GPT: keep, fused, apart
  bool without_mixers = false, weights_only = false;  // to and from GPT: without the M layers
  std::vector<std::string> spelling{};                // as in ToFsdp, of fsdp_dtensor; none: the source's
  std::vector<std::string> accept{};                  // damage that is accepted: "MC1311"
  OpenOptions files{};
};

}  // namespace mckpt
