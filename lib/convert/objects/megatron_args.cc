// Makes the args of Megatron from a model's numbers and a grid. Fields are in groups: the model, its special
// blocks (experts, latent attention, Mamba), the run, and the training that goes on from here. A size that
// the model does not have is left out, because Megatron has defaults for it.
#include "convert/objects/megatron_args.h"

#include "convert/keys/fsdp_run.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/hybrid/pattern.h"
#include "core/items/dtype.h"
#include "io/dcp/layout.h"
#include "io/pickle/writer.h"
#include "mappings/config.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOuterStrategy = "outer_dp_sharding_strategy",
                           kStrategy = "data_parallel_sharding_strategy",
                           kPerTokenLoss = "calculate_per_token_loss";

// Writes the fields of the Namespace's dictionary one after the other. Belongs to one pickle; the writer
// outlives it.
class Fields {
 public:
  explicit Fields(PickleWriter& pickle) : p_(pickle) {}
  void add(std::string_view name, i64 value) { p_.text(name), p_.integer(value); }
  void add(std::string_view name, bool value) { p_.text(name), p_.boolean(value); }
  void add(std::string_view name, std::string_view value) { p_.text(name), p_.text(value); }
  void add(std::string_view name, const char* value) { add(name, std::string_view(value)); }
  void add_type(std::string_view name, DType value) {
    p_.text(name), p_.class_name("torch", dtype_info(value).name);
  }
  // Sizes that the model does not have are left out: Megatron then uses its defaults.
  void add_size(std::string_view name, i64 value) {
    if (value > 0) add(name, value);
  }

 private:
  PickleWriter& p_;
};

const char* strategy_text(Strategy s) {
  switch (s) {
    case Strategy::kNoShard:
      return "no_shard";
    case Strategy::kOptim:
      return "optim";
    case Strategy::kOptimGrads:
      return "optim_grads";
    case Strategy::kOptimGradsParams:
      break;
  }
  return "optim_grads_params";
}

// The layer pattern of the run that has such a model; "" if the model is not a hybrid.
std::string run_pattern(const MegatronArgs& args) {
  const LayerPattern* groups = args.run.run.groups;
  return groups ? groups->text : hybrid_pattern(args.model);
}

void add_model(Fields& f, const MegatronArgs& args) {
  const ModelConfig& m = args.model;
  const TowerConfig& text = m.text;
  f.add("num_layers", static_cast<i64>(std::ssize(text.layers)));
  f.add("hidden_size", text.hidden);
  f.add_size("ffn_hidden_size", text.ffn);
  f.add_size("num_attention_heads", text.heads);
  f.add_size("num_query_groups", text.kv_groups);
  f.add("group_query_attention", text.kv_groups > 0 && text.kv_groups != text.heads);
  f.add_size("kv_channels", text.head_dim);
  f.add_size("max_position_embeddings", args.max_positions);
  f.add_size("seq_length", args.max_positions);
  f.add("add_position_embedding", false);
  f.add("position_embedding_type", m.mamba.heads > 0 ? "none" : "rope");
  f.add("add_bias_linear", text.proj_bias);
  f.add("add_qkv_bias", text.qkv_bias);
  f.add("qk_layernorm", text.qk_norm);
  f.add("swiglu", text.swiglu);
  f.add("normalization", "RMSNorm");
  f.add("untie_embeddings_and_output_weights", !m.tied);
  f.add("vocab_size", m.vocab);
  f.add("padded_vocab_size", args.run.run.vocab_rows > 0 ? args.run.run.vocab_rows : m.vocab);
  f.add_size("mtp_num_layers", m.mtp.depths);
  if (std::string pattern = run_pattern(args); !pattern.empty()) {
    f.add("hybrid_layer_pattern", pattern);
    f.add("is_hybrid_model", true);
  }
}

void add_blocks(Fields& f, const ModelConfig& m) {
  if (m.moe.experts > 0) {
    f.add("num_experts", m.moe.experts);
    f.add_size("moe_ffn_hidden_size", m.moe.ffn);
    f.add_size("moe_shared_expert_intermediate_size", m.moe.shared_ffn);
    f.add("moe_grouped_gemm", true);
    f.add("moe_router_enable_expert_bias", m.moe.expert_bias);
  }
  if (m.mla.kv_lora > 0) {
    f.add("multi_latent_attention", true);
    f.add_size("q_lora_rank", m.mla.q_lora);
    f.add("kv_lora_rank", m.mla.kv_lora);
    f.add("qk_head_dim", m.mla.nope);
    f.add("qk_pos_emb_head_dim", m.mla.rope);
    f.add("v_head_dim", m.mla.v_dim);
  }
  if (m.mamba.heads > 0) {
    f.add("mamba_num_heads", m.mamba.heads);
    f.add("mamba_head_dim", m.mamba.head_dim);
    f.add("mamba_state_dim", m.mamba.state);
    f.add("mamba_num_groups", m.mamba.groups);
  }
}

void add_run(Fields& f, const MegatronArgs& args) {
  const Grid& g = args.run.grid;
  for (auto [name, value] : grid_args(g)) f.add(name, value);
  if (g.hsdp > 1) f.add(kOuterStrategy, g.outer == HsdpOuter::kShard ? "optim" : "no_shard");
  f.add("use_megatron_fsdp", true);
  f.add(kStrategy, strategy_text(args.run.fsdp.strategy));
  f.add("use_distributed_optimizer", true);
  f.add("ckpt_format", "fsdp_dtensor");
  f.add("data_parallel_random_init", false);
  // Megatron-FSDP refuses context parallelism without it.
  if (g.cp > 1) f.add(kPerTokenLoss, true);
}

void add_training(Fields& f, const MegatronArgs& args) {
  DType type = args.run.run.params_dtype.value_or(args.model.dtype.value_or(DType::kBF16));
  f.add("bf16", type == DType::kBF16);
  f.add("fp16", type == DType::kF16);
  f.add_type("params_dtype", type);
  f.add("iteration", args.iteration);
  for (const char* count : {"consumed_train_samples", "skipped_train_samples", "consumed_valid_samples"})
    f.add(count, i64{0});
  // A run that resumes from a checkpoint of weights must not look for states of the optimizer, and never for
  // random states.
  f.add("no_save_optim", !args.has_states);
  f.add("no_save_rng", true);
}

}  // namespace

std::array<std::pair<std::string_view, i64>, 8> grid_args(const Grid& g) {
  return {{{"tensor_model_parallel_size", g.tp},
           {"pipeline_model_parallel_size", g.pp},
           {"context_parallel_size", g.cp},
           {"expert_model_parallel_size", g.ep},
           {"expert_tensor_parallel_size", g.etp},
           {"data_parallel_size", g.dp},
           {"world_size", g.world()},
           {"num_distributed_optimizer_instances", g.hsdp}}};
}

bool is_grid_arg(std::string_view name) {
  for (auto [known, value] : grid_args({}))
    if (known == name) return true;
  return name == kOuterStrategy || name == kStrategy || name == kPerTokenLoss;
}

std::string pickle_args(const MegatronArgs& args) {
  PickleWriter p;
  p.class_name("argparse", "Namespace");
  p.op(Op::kEmptyTuple), p.op(Op::kNewobj);
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  Fields f(p);
  add_model(f, args);
  add_blocks(f, args.model);
  add_run(f, args);
  add_training(f, args);
  p.op(Op::kSetitems), p.op(Op::kBuild);
  return p.finish();
}

std::string pickle_integer(i64 value) {
  PickleWriter p;
  p.integer(value);
  return p.finish();
}

std::string pickle_real(double value) {
  PickleWriter p;
  p.real(value);
  return p.finish();
}

void add_run_objects(DcpLayout& layout, const MegatronArgs& args) {
  layout.add_object({"args", {}}, 0, pickle_args(args));
  layout.add_object({"checkpoint_version", {}}, 0, pickle_real(3.0));
  layout.add_object({"iteration", {}}, 0, pickle_integer(args.iteration));
}

}  // namespace mckpt::impl
