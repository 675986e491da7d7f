// Makes the args of Megatron from a model's numbers and a grid. Fields are in groups: the model, its
// attention, positions, experts, recurrent layers, the run, and the training that goes on from here. A field
// of a block that the model does not have is left out, because Megatron has a default for it.
#include "convert/facts/megatron_args.h"

#include <algorithm>
#include <span>
#include <vector>

#include "convert/facts/rope_args.h"
#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "core/items/dtype.h"
#include "hf/config/run_entries.h"
#include "io/dcp/run/args.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kOuterStrategy = "outer_dp_sharding_strategy",
                           kStrategy = "data_parallel_sharding_strategy",
                           kPerTokenLoss = "calculate_per_token_loss";
// How a pipeline's stages divide the layers.
constexpr std::string_view kChunkLayers = "num_layers_per_virtual_pipeline_stage",
                           kFirstLayers = "decoder_first_pipeline_num_layers",
                           kLastLayers = "decoder_last_pipeline_num_layers";

// Collects fields, one after the other.
class Fields {
 public:
  void add(std::string_view name, ArgField::Value value) { all_.push_back({name, std::move(value)}); }
  // Sizes that the model does not have are left out: Megatron then uses its defaults.
  void add_size(std::string_view name, i64 value) {
    if (value > 0) add(name, value);
  }
  // A number with a fraction; 0: the config does not say it, and it is left out.
  void add_known(std::string_view name, double value) {
    if (value != 0) add(name, value);
  }
  std::vector<ArgField> take() { return std::move(all_); }

 private:
  std::vector<ArgField> all_;
};

// Writes one entry of the Namespace's dictionary.
void write_field(PickleWriter& p, const ArgField& field) {
  p.text(field.name);
  if (const bool* flag = std::get_if<bool>(&field.value)) return p.boolean(*flag);
  if (const i64* number = std::get_if<i64>(&field.value)) return p.integer(*number);
  if (const double* real = std::get_if<double>(&field.value)) return p.real(*real);
  if (const auto* text = std::get_if<std::string>(&field.value)) return p.text(*text);
  if (const DType* type = std::get_if<DType>(&field.value))
    return p.class_name("torch", dtype_info(*type).name);
  p.op(Op::kEmptyList), p.op(Op::kMark);
  for (i64 item : std::get<std::vector<i64>>(field.value)) p.integer(item);
  p.op(Op::kAppends);
}

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
  const LayerPattern* pattern = args.pipeline.pattern ? args.pipeline.pattern : args.run.groups;
  return pattern ? pattern->text : hybrid_pattern(args.map.model());
}

bool has_layer(const ModelConfig& m, Mixer mixer) {
  return std::ranges::any_of(m.text.layers, [&](const LayerSpec& l) { return l.mixer == mixer; });
}

// The flags of the layers, one number for each: 1 where `yes` returns true.
template <typename Yes>
std::vector<i64> layer_flags(const ModelConfig& m, Yes yes) {
  std::vector<i64> flags;
  for (const LayerSpec& layer : m.text.layers) flags.push_back(yes(layer) ? 1 : 0);
  return flags;
}

void add_model(Fields& f, const MegatronArgs& args) {
  const ModelConfig& m = args.map.model();
  const TowerConfig& text = m.text;
  f.add("num_layers", static_cast<i64>(std::ssize(text.layers)));
  f.add("hidden_size", text.hidden);
  f.add_size("ffn_hidden_size", args.entries.ffn > 0 ? args.entries.ffn : text.ffn);
  f.add_size("max_position_embeddings", args.entries.positions);
  f.add_size("seq_length", args.entries.positions);
  f.add("add_bias_linear", text.proj_bias);
  f.add("swiglu", text.swiglu && text.gated_mlp);
  // A family whose MLPs have no gate has squared ReLU, unless the config names another activation.
  const std::string& activation = args.entries.activation;
  f.add("squared_relu", !text.gated_mlp && (activation.empty() || activation == "relu2"));
  f.add("normalization", m.layer_norms ? "LayerNorm" : "RMSNorm");
  if (args.entries.norm_epsilon) f.add("norm_epsilon", *args.entries.norm_epsilon);
  // The models with gated delta nets, and a few others, store their norms less one.
  f.add("apply_layernorm_1p", m.zero_centered_norms || has_layer(m, Mixer::kGdn));
  f.add("hidden_dropout", args.entries.hidden_dropout);
  f.add("untie_embeddings_and_output_weights", !m.tied);
  f.add("vocab_size", m.vocab);
  const i64 rows = args.run.vocab_rows > 0 ? args.run.vocab_rows : m.vocab;
  f.add(kPaddedVocab, rows);
  f.add(kVocabDivisor, vocab_divisor_of(m, args.map.family(), rows, args.grid.tp));
  f.add_size("mtp_num_layers", m.mtp.depths);
  if (std::string pattern = run_pattern(args); !pattern.empty()) {
    f.add("hybrid_layer_pattern", pattern);
    f.add("is_hybrid_model", true);
  }
}

void add_attention(Fields& f, const MegatronArgs& args) {
  const ModelConfig& m = args.map.model();
  const TowerConfig& text = m.text;
  const bool latent = m.mla.kv_lora > 0;
  f.add_size("num_attention_heads", text.heads);
  f.add_size("num_query_groups", text.kv_groups);
  f.add("group_query_attention", text.kv_groups > 0 && text.kv_groups != text.heads);
  // The heads of latent attention have sizes of their own; this one has then no meaning for tensors.
  f.add_size("kv_channels", latent ? args.entries.head_dim : text.head_dim);
  // Biases of all linear layers include the bias of queries, keys and values.
  f.add("add_qkv_bias", text.qkv_bias && !text.proj_bias);
  f.add("qk_layernorm", text.qk_norm || latent);
  f.add("attention_output_gate", text.output_gate || text.head_gates);
  f.add("attention_dropout", args.entries.attention_dropout);
  if (text.sinks) f.add("softmax_type", "learnable");
  if (latent) {
    f.add("multi_latent_attention", true);
    f.add_size("q_lora_rank", m.mla.q_lora);
    f.add("kv_lora_rank", m.mla.kv_lora);
    f.add("qk_head_dim", m.mla.nope);
    f.add("qk_pos_emb_head_dim", m.mla.rope);
    f.add("v_head_dim", m.mla.v_dim);
  }
}

// Whether the model rotates neighbours in a head together, and not its two halves, which its config.json does
// not say. Latent attention has a way of its own in Megatron.
bool rotates_neighbours(const ModelConfig& m) {
  return m.model_type.starts_with("ernie4_5") || m.model_type.starts_with("llama4");
}

void add_positions(Fields& f, const MegatronArgs& args) {
  const ModelConfig& m = args.map.model();
  const RopeEntries& rope = args.entries.rope;
  // False is what --no-position-embedding gives, which Megatron refuses beside another type than "rope".
  f.add("add_position_embedding", true);
  f.add("position_embedding_type", std::string(position_embedding_type(m, rope)));
  if (!is_rotary(m)) return;
  if (rotates_neighbours(m)) f.add("rotary_interleaved", true);
  if (rope.base > 0) f.add("rotary_base", number_value(rope.base));
  f.add("rotary_percent", rope.percent > 0 ? rope.percent : 1.0);
  if (!rope.sections.empty()) f.add("mrope_section", rope.sections);
  for (ArgField& field : stretching_fields(m, rope)) f.add(field.name, std::move(field.value));
}

// The way in which the router chooses, as far as the config says it.
void add_router(Fields& f, const MegatronArgs& args) {
  const RouterEntries& router = args.entries.router;
  const bool bias = args.map.model().moe.expert_bias;
  f.add("moe_router_enable_expert_bias", bias);
  f.add("moe_router_score_function", bias ? "sigmoid" : "softmax");
  f.add_size("moe_router_topk", router.top_experts);
  // The weights of the chosen experts sum to one if the softmax is taken of them alone.
  if (!bias && router.renormalised) f.add("moe_router_pre_softmax", !*router.renormalised);
  if (!bias) return;
  f.add_known("moe_router_topk_scaling_factor", router.scale);
  if (router.groups <= 1) return;
  f.add("moe_router_num_groups", router.groups);
  f.add_size("moe_router_group_topk", router.top_groups);
}

void add_experts(Fields& f, const MegatronArgs& args) {
  const ModelConfig& m = args.map.model();
  if (m.moe.experts == 0) return;
  f.add("num_experts", m.moe.experts);
  f.add_size("moe_ffn_hidden_size", m.moe.ffn);
  f.add_size("moe_shared_expert_intermediate_size", m.moe.shared_ffn);
  f.add("moe_shared_expert_gate", m.moe.shared_gate);
  f.add_size("moe_latent_size", m.moe.latent);
  f.add("moe_grouped_gemm", true);
  // The pattern of a hybrid model says which of its layers have experts.
  std::vector<i64> sparse = layer_flags(m, [](const LayerSpec& l) { return l.ffn == Ffn::kMoe; });
  bool all =
      run_pattern(args).size() > 0 || (!m.listed_layers && std::ranges::find(sparse, 0) == sparse.end());
  all ? f.add("moe_layer_freq", i64{1}) : f.add("moe_layer_freq", sparse);
  add_router(f, args);
  if (!m.text.sinks || m.text.swiglu) return;
  f.add("quick_geglu", true);
  f.add("glu_linear_offset", 1.0);
  f.add("activation_func_clamp_value", args.entries.glu_limit > 0 ? args.entries.glu_limit : 7.0);
}

void add_recurrent(Fields& f, const ModelConfig& m) {
  if (has_layer(m, Mixer::kGdn)) {
    f.add("experimental_attention_variant", "gated_delta_net");
    f.add("linear_attention_freq", layer_flags(m, [](const LayerSpec& l) { return l.mixer == Mixer::kGdn; }));
    f.add("linear_num_key_heads", m.gdn.key_heads);
    f.add("linear_num_value_heads", m.gdn.value_heads);
    f.add("linear_key_head_dim", m.gdn.key_dim);
    f.add("linear_value_head_dim", m.gdn.value_dim);
    f.add("linear_conv_kernel_dim", m.gdn.conv_kernel);
  }
  if (m.mamba.heads > 0) {
    f.add("mamba_num_heads", m.mamba.heads);
    f.add("mamba_head_dim", m.mamba.head_dim);
    f.add("mamba_state_dim", m.mamba.state);
    f.add("mamba_num_groups", m.mamba.groups);
  }
}

// Chunks and layers of a pipeline's stages; where the run leaves them to Megatron there is no field.
void add_pipeline(Fields& f, const MegatronArgs& args) {
  for (auto [name, value] : pipeline_values(args.map, args.grid.pp, args.pipeline, args.run.groups))
    f.add(name, value);
}

void add_run(Fields& f, const MegatronArgs& args) {
  const Grid& g = args.grid;
  for (auto [name, value] : grid_args(g)) f.add(name, value);
  if (args.rank >= 0) f.add(kRankArg, args.rank);
  add_pipeline(f, args);
  if (args.format != ArgsFormat::kFsdpDtensor) {
    f.add(kFsdpArg, false);
    f.add(kDistributed, args.format == ArgsFormat::kTorchDist);
    f.add(kFormatArg, args.format == ArgsFormat::kTorchDist ? "torch_dist" : "torch");
    f.add("data_parallel_random_init", false);
    return;
  }
  if (g.hsdp > 1) f.add(kOuterStrategy, g.outer == HsdpOuter::kShard ? "optim" : "no_shard");
  f.add(kFsdpArg, true);
  f.add(kStrategy, strategy_text(args.strategy));
  f.add(kDistributed, true);
  f.add(kFormatArg, "fsdp_dtensor");
  f.add("data_parallel_random_init", false);
  // Megatron-FSDP refuses context parallelism without it.
  if (g.cp > 1) f.add(kPerTokenLoss, true);
}

void add_training(Fields& f, const MegatronArgs& args) {
  DType type = args.run.params_dtype.value_or(args.map.model().dtype.value_or(DType::kBF16));
  f.add("bf16", type == DType::kBF16);
  f.add("fp16", type == DType::kF16);
  f.add("params_dtype", type);
  f.add(kIterationArg, args.iteration);
  for (const char* count : {"consumed_train_samples", "skipped_train_samples", "consumed_valid_samples"})
    f.add(count, i64{0});
  // A run that resumes from a checkpoint of weights must not look for states of the optimizer, and never for
  // random states.
  f.add(kNoStates, !args.has_states);
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

std::vector<std::pair<std::string_view, i64>> pipeline_values(const ModelMap& map, i64 stages,
                                                              const PipelineOptions& o,
                                                              const LayerPattern* pattern) {
  std::vector<std::pair<std::string_view, i64>> out;
  if (o.pattern != nullptr) pattern = o.pattern;
  if (o.chunks > 1 || pattern) {
    const PipelineSplit split = pipeline_split(std::ssize(map.model().text.layers), stages, o, pattern);
    if (split.chunks() > 1) out.emplace_back(kChunksArg, split.chunks());
    // The segments of a pattern need not have equally many layers.
    if (!o.first_layers && !o.last_layers && pattern == nullptr)
      out.emplace_back(kChunkLayers, split.part(0, 0).end_layer);
  }
  if (o.first_layers) out.emplace_back(kFirstLayers, *o.first_layers);
  if (o.last_layers) out.emplace_back(kLastLayers, *o.last_layers);
  return out;
}

std::span<const std::string_view> pipeline_args() {
  static constexpr std::string_view kNames[] = {kChunksArg, kChunkLayers, kFirstLayers, kLastLayers,
                                                "pipeline_model_parallel_layout"};
  return kNames;
}

bool is_grid_arg(std::string_view name) {
  for (auto [known, value] : grid_args({}))
    if (known == name) return true;
  std::span<const std::string_view> pipeline = pipeline_args();
  if (std::ranges::find(pipeline, name) != pipeline.end() || name == kFormatArg || name == kFsdpArg ||
      name == kDistributed || name == kNoStates || name == kRankArg || name == kVocabDivisor)
    return true;
  return name == kOuterStrategy || name == kStrategy || name == kPerTokenLoss || name == kPaddedVocab;
}

std::optional<i64> other_vocab_divisor(std::string_view args, const ModelMap& map, i64 rows,
                                       i64 tensor_ranks) {
  if (rows <= 0 || map.model().vocab <= 0) return std::nullopt;
  const Pickle pickle({reinterpret_cast<const u8*>(args.data()), args.size()}, {});
  const PickleValue* now = arg_of(pickle.root(), kVocabDivisor);
  const PickleValue* ranks = arg_of(pickle.root(), grid_args({})[0].first);
  if (now == nullptr || !now->is_int()) return std::nullopt;
  const bool same_ranks = ranks != nullptr && ranks->is_int() && ranks->as_int() == tensor_ranks;
  if (same_ranks && gives_vocab_rows(map.model(), now->as_int(), rows, tensor_ranks)) return std::nullopt;
  return vocab_divisor_of(map.model(), map.family(), rows, tensor_ranks);
}

std::vector<ArgField> model_fields(const MegatronArgs& args) {
  Fields f;
  add_model(f, args);
  add_attention(f, args);
  add_positions(f, args);
  add_experts(f, args);
  add_recurrent(f, args.map.model());
  return f.take();
}

std::string pickle_args(const MegatronArgs& args) {
  PickleWriter p;
  write_args(p, args);
  return p.finish();
}

void write_args(PickleWriter& p, const MegatronArgs& args) {
  p.class_name("argparse", "Namespace");
  p.op(Op::kEmptyTuple), p.op(Op::kNewobj);
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  Fields of_run;
  add_run(of_run, args);
  add_training(of_run, args);
  for (const ArgField& field : model_fields(args)) write_field(p, field);
  for (const ArgField& field : of_run.take()) write_field(p, field);
  p.op(Op::kSetitems), p.op(Op::kBuild);
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

}  // namespace mckpt::impl
