// The args that are made for a model, compared with what Megatron-Bridge built the same model of
// (test_data/golden/providers.json), with the tables of docs/formats/megatron_args.md, and with the list of
// arguments that Megatron reads back from a checkpoint.
#include "convert/facts/megatron_args.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "convert/facts/rope_args.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/run/args.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "tests/support/golden_config.h"
#include "tests/support/golden_json.h"

namespace mckpt::impl {
namespace megatron_args_test {

// A value as JSON and Python agree to write it, but for None, True and False: "null", "true", "12", "0.25",
// "'rope'", "[1, 0]".
std::string text_of(PickleValue v) {
  switch (v.kind()) {
    case PickleValue::Kind::kNone:
      return "null";
    case PickleValue::Kind::kBool:
      return v.as_bool() ? "true" : "false";
    case PickleValue::Kind::kFloat:
      return cat(v.as_float());
    case PickleValue::Kind::kText:
      return cat("'", v.text(), "'");
    case PickleValue::Kind::kClass:
      return "'torch.bfloat16'";
    case PickleValue::Kind::kList: {
      std::string out;
      for (PickleValue item : v.items()) out += cat(out.empty() ? "" : ", ", text_of(item));
      return cat("[", out, "]");
    }
    default:
      return v.is_int() ? cat(v.as_int()) : "?";
  }
}

std::string text_of(const GoldenJson& v) {
  switch (v.kind()) {
    case GoldenJson::Kind::kNull:
      return "null";
    case GoldenJson::Kind::kBool:
      return v.boolean() ? "true" : "false";
    case GoldenJson::Kind::kInteger:
      return cat(v.integer());
    case GoldenJson::Kind::kReal:
      return cat(v.real());
    case GoldenJson::Kind::kString:
      return cat("'", v.string(), "'");
    case GoldenJson::Kind::kArray: {
      std::string out;
      for (const GoldenJson& item : v.items()) out += cat(out.empty() ? "" : ", ", text_of(item));
      return cat("[", out, "]");
    }
    case GoldenJson::Kind::kObject:
      break;
  }
  return "?";
}

using Fields = std::map<std::string, std::string>;  // name -> value

// The args of a model in a run of one rank, or of `grid`. `rank`: in the file of that rank.
Fields args_of_config(const std::string& config, const Grid& grid = {}, i64 rank = -1) {
  HfConfig c = read_hf_config(config);
  ModelMap map = ModelMap::promised(c.model, *c.family);
  RunSetup run;
  run.vocab_rows = vocab_rows(c.model, *c.family, grid.tp, {VocabChoice::kAuto, 0});
  std::string pickle =
      pickle_args({.map = map, .entries = c.run, .grid = grid, .run = run, .iteration = 12, .rank = rank});
  std::vector<u8> bytes(pickle.begin(), pickle.end());
  Pickle read(bytes);
  Fields out;
  for (PickleEntry e : read.root().as_object().state.entries())
    EXPECT_TRUE(out.emplace(e.key.text(), text_of(e.value)).second) << e.key.text() << " is written twice";
  return out;
}

std::string config_of(const GoldenJson& run) {
  const GoldenJson* config = run.find("config");
  return config ? config->string() : golden_config_text(run["model"].string());
}

// The cells of the rows of a table of the page, without backquotes; the table is below the heading.
std::vector<std::vector<std::string>> table_below(std::string_view heading) {
  std::ifstream page(MCKPT_DOCS "/formats/megatron_args.md");
  std::vector<std::vector<std::string>> rows;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) here = line == cat("## ", heading);
    if (!here || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 2; at < line.size();) {
      std::size_t end = line.find(" |", at);
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    std::erase(cells[0], '`');
    rows.push_back(cells);
  }
  return rows;
}

struct LeftOut {
  std::string field, models, value;
  int used = 0;
};
std::vector<LeftOut> left_out() {
  std::vector<LeftOut> out;
  for (const auto& row : table_below("Fields that are left out")) {
    EXPECT_EQ(row.size(), 4u) << row[0];
    EXPECT_FALSE(row[3].empty()) << row[0];
    out.push_back({row[0], row[1], row[2]});
  }
  return out;
}

// The value that the args have for a field of the provider, which may have another name or sense there.
std::string written(const Fields& args, const std::string& field) {
  auto get = [&](const std::string& name) {
    auto at = args.find(name);
    return at == args.end() ? std::string("nothing") : at->second;
  };
  if (field == "num_moe_experts") return get("num_experts");
  if (field == "layernorm_zero_centered_gamma") return get("apply_layernorm_1p");
  if (field == "gated_linear_unit")
    return get("swiglu") == "true" || get("quick_geglu") == "true" ? "true" : "false";
  if (field == "share_embeddings_and_output_weights")
    return get("untie_embeddings_and_output_weights") == "true" ? "false" : "true";
  return get(field);
}

TEST(MegatronArgs, HaveWhatBridgeBuiltTheModelOf) {
  std::vector<LeftOut> rows = left_out();
  std::set<std::string> models, fields;
  const GoldenJson runs = read_golden("golden/providers.json");
  for (const GoldenJson& run : runs.items()) {
    const std::string model = run["model"].string();
    models.insert(model);
    Fields args = args_of_config(config_of(run));
    bool experts = args.contains("num_experts");
    for (const auto& [field, value] : run["provider"].members()) {
      fields.insert(field);
      // A provider that does not pad has a divisor that gives other rows than it has.
      if (field == "make_vocab_size_divisible_by") continue;
      std::string want = text_of(value), got = written(args, field);
      if (got == "nothing") {
        auto row = std::ranges::find_if(rows, [&, &field = field](const LeftOut& r) {
          bool here = r.models == "all" || (r.models == "without experts" && !experts);
          return r.field == field && here &&
                 (r.value == "any" || cat(", ", r.value, ",").find(cat(" ", want, ",")) != std::string::npos);
        });
        EXPECT_NE(row, rows.end()) << model << ": " << field << " " << want << " is not written";
        if (row != rows.end()) row->used++;
      } else {
        EXPECT_EQ(got, want) << model << ": " << field;
      }
    }
  }
  EXPECT_EQ(runs.size(), 44u);
  EXPECT_EQ(models.size(), 24u);
  for (const LeftOut& row : rows)
    EXPECT_TRUE(row.used > 0 || !fields.contains(row.field)) << row.field << ": no golden run lacks it";
}

// A small model of a family with one more entry in its config; the entries of Llama and Qwen3-MoE.
std::string tiny_config(std::string_view type, std::string_view entry) {
  return cat(R"({"model_type": ")", type, R"(", "hidden_size": 8, "num_attention_heads": 2,
    "num_key_value_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16, "vocab_size": 32,
    "num_experts": 4, "moe_intermediate_size": 8, "head_dim": 4, )",
             entry, "}");
}

constexpr std::string_view
    kLinear = R"("rope_scaling": {"rope_type": "linear", "factor": 2.0})",
    kYarn = R"("rope_scaling": {"rope_type": "yarn", "factor": 8.0})",
    kYarnBesideWindows = R"("rope_scaling": {"rope_type": "yarn", "factor": 8}, "rope_local_base_freq": 1e4)";

TEST(MegatronArgs, AreThoseOfThePage) {
  std::set<std::string> documented, written;
  for (const auto& row : table_below("Fields that are written"))
    EXPECT_TRUE(documented.insert(row[0]).second) << row[0] << " has two rows";
  Grid wide;
  wide.cp = 2, wide.dp = 4, wide.hsdp = 2;
  std::string yarn = golden_config_text("deepseek_v3"), plain = R"("rope_type": "default")";
  ASSERT_NE(yarn.find(plain), yarn.npos);
  yarn.replace(yarn.find(plain), plain.size(),
               R"("rope_type": "yarn", "factor": 40.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                  "mscale_all_dim": 0.5, "original_max_position_embeddings": 4096)");
  std::vector<Fields> all = {args_of_config(yarn), args_of_config(golden_config_text("llama3"), wide),
                             args_of_config(golden_config_text("llama3"), {}, 0),
                             args_of_config(golden_config_text("ernie4_5_moe")),
                             args_of_config(tiny_config("llama", kLinear))};
  const GoldenJson runs = read_golden("golden/providers.json");
  for (const GoldenJson& run : runs.items()) all.push_back(args_of_config(config_of(run)));
  for (const Fields& args : all)
    for (const auto& [name, value] : args) written.insert(name);
  EXPECT_EQ(written, documented);
}

// The names in load_args_from_checkpoint() of Megatron-LM (2026).
TEST(MegatronArgs, AnswerForEveryFieldThatMegatronReadsBack) {
  const char* read_back[] = {"num_layers",
                             "hidden_size",
                             "ffn_hidden_size",
                             "seq_length",
                             "num_attention_heads",
                             "num_query_groups",
                             "group_query_attention",
                             "kv_channels",
                             "max_position_embeddings",
                             "position_embedding_type",
                             "add_position_embedding",
                             "use_rotary_position_embeddings",
                             "rotary_base",
                             "rotary_percent",
                             "rotary_interleaved",
                             "add_bias_linear",
                             "add_qkv_bias",
                             "squared_relu",
                             "swiglu",
                             "untie_embeddings_and_output_weights",
                             "apply_layernorm_1p",
                             "normalization",
                             "apply_query_key_layer_scaling",
                             "attention_dropout",
                             "hidden_dropout",
                             "mtp_hybrid_override_pattern",
                             "mtp_num_layers",
                             "mtp_use_repeated_layer",
                             "spec",
                             "num_experts",
                             "moe_layer_freq",
                             "moe_ffn_hidden_size",
                             "moe_router_topk",
                             "moe_token_dispatcher_type",
                             "moe_router_pre_softmax",
                             "moe_grouped_gemm",
                             "moe_single_grouped_weight",
                             "moe_single_grouped_bias",
                             "moe_shared_expert_intermediate_size",
                             "moe_router_load_balancing_type",
                             "moe_aux_loss_coeff",
                             "moe_router_quantile_balancing_estimation_scope",
                             "moe_router_qb_num_bins",
                             "moe_router_score_function",
                             "moe_router_enable_expert_bias",
                             "moe_router_topk_scaling_factor",
                             "moe_hybridep_routing_map_mode",
                             "mamba_state_dim",
                             "mamba_head_dim",
                             "mamba_num_groups",
                             "mamba_num_heads",
                             "hybrid_layer_pattern",
                             "heterogeneous_layers_config_path",
                             "heterogeneous_layers_config_encoded_json",
                             "moe_latent_size",
                             "tokenizer_model",
                             "tokenizer_type",
                             "tiktoken_pattern",
                             "padded_vocab_size",
                             "ckpt_format",
                             "tensor_model_parallel_size",
                             "pipeline_model_parallel_size",
                             "virtual_pipeline_model_parallel_size",
                             "num_layers_per_virtual_pipeline_stage",
                             "expert_model_parallel_size",
                             "iteration"};
  std::set<std::string> answered;
  for (const char* table : {"Fields that are written", "Fields that are left out"})
    for (const auto& row : table_below(table)) answered.insert(row[0]);
  for (const char* name : read_back) EXPECT_TRUE(answered.contains(name)) << name;
}

// Numbers that no golden provider has, by hand from the configs.
TEST(MegatronArgs, HaveTheNumbersOfTheConfig) {
  struct Case {
    const char *model, *field, *value;
  };
  const Case cases[] = {
      {"llama3", "rotary_base", "500000"},
      {"llama3", "use_rope_scaling", "true"},
      {"llama3", "rope_scaling_factor", "8"},
      {"llama3", "norm_epsilon", "1e-05"},
      {"llama3", "rotary_percent", "1"},
      {"llama3", "hidden_dropout", "0"},
      {"llama3", "padded_vocab_size", "517"},
      {"qwen3_next", "rotary_percent", "0.25"},
      {"ernie4_5_moe", "rotary_interleaved", "true"},
      {"qwen3_next", "rotary_interleaved", "nothing"},
      {"qwen3_next", "linear_conv_kernel_dim", "4"},
      {"qwen3_next", "moe_shared_expert_gate", "true"},
      {"qwen3_next", "moe_router_topk", "2"},
      {"qwen3_next", "moe_router_pre_softmax", "false"},
      {"qwen3_vl_moe", "position_embedding_type", "'mrope'"},
      {"qwen3_vl_moe", "mrope_section", "[4, 4, 4]"},
      {"qwen3_vl_moe", "rotary_base", "5000000"},
      {"deepseek_v3", "moe_layer_freq", "[0, 1, 1]"},
      {"deepseek_v3", "q_lora_rank", "40"},
      {"deepseek_v3", "kv_lora_rank", "28"},
      {"deepseek_v3", "qk_head_dim", "20"},
      {"deepseek_v3", "qk_pos_emb_head_dim", "8"},
      {"deepseek_v3", "v_head_dim", "14"},
      {"deepseek_v3", "rope_type", "'rope'"},
      {"deepseek_v3", "moe_router_score_function", "'sigmoid'"},
      {"deepseek_v3", "moe_router_topk_scaling_factor", "2.5"},
      {"deepseek_v3", "moe_router_num_groups", "4"},
      {"deepseek_v3", "moe_router_group_topk", "2"},
      {"deepseek_v3", "kv_channels", "8"},
      {"gpt_oss", "softmax_type", "'learnable'"},
      {"gpt_oss", "position_embedding_type", "'yarn'"},
      {"gpt_oss", "yarn_rotary_scaling_factor", "32"},
      {"gpt_oss", "quick_geglu", "true"},
      {"gpt_oss", "swiglu", "false"},
      {"gpt_oss", "add_bias_linear", "true"},
      {"nemotron_h", "position_embedding_type", "'none'"},
      {"nemotron_h", "squared_relu", "true"},
      {"nemotron_h_moe", "moe_layer_freq", "1"},
      {"qwen3_moe_sparse2", "moe_layer_freq", "[0, 1, 0, 1]"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(written(args_of_config(golden_config_text(c.model)), c.field), c.value)
        << c.model << ": " << c.field;
}

TEST(MegatronArgs, SayWhatTheConfigSays) {
  struct Case {
    std::string_view entry;
    const char *field, *value;
  };
  const Case cases[] = {
      {R"("rms_norm_eps": 0)", "norm_epsilon", "0"},
      {R"("rms_norm_eps": 0.0)", "norm_epsilon", "0"},
      {R"("use_cache": true)", "norm_epsilon", "nothing"},
      {R"("rope_theta": 0.5)", "rotary_base", "0.5"},
      {R"("rope_theta": 10000.5)", "rotary_base", "10000.5"},
      {R"("rope_theta": 10000.0)", "rotary_base", "10000"},
      {kLinear, "rotary_seq_len_interpolation_factor", "2"},
      {R"("rope_parameters": {"rope_type": "linear", "factor": 2.5})", "rotary_seq_len_interpolation_factor",
       "2.5"},
      {R"("rope_scaling": {"rope_type": "linear", "factor": 2}, "rope_local_base_freq": 10000)",
       "rotary_seq_len_interpolation_factor", "nothing"},
      {R"("rope_scaling": {"rope_type": "dynamic", "factor": 2})", "rotary_seq_len_interpolation_factor",
       "nothing"},
      {kYarn, "position_embedding_type", "'yarn'"},
      {kYarn, "yarn_rotary_scaling_factor", "8"},
      {kYarnBesideWindows, "position_embedding_type", "'rope'"},
      {kYarnBesideWindows, "yarn_rotary_scaling_factor", "nothing"},
      {R"("partial_rotary_factor": 0.5)", "rotary_percent", "1"},
      {R"("partial_rotary_factor": 0.5, "auto_map": {})", "rotary_percent", "0.5"},
      {R"("hidden_act": "swish")", "swiglu", "true"},
      {R"("hidden_act": "gelu")", "swiglu", "false"},
  };
  for (const Case& c : cases)
    EXPECT_EQ(written(args_of_config(tiny_config("llama", c.entry)), c.field), c.value) << c.entry;
}

std::vector<std::string> unsaid_of(const std::string& config) {
  const HfConfig c = read_hf_config(config);
  Notes notes;
  note_unsaid_rope(c.model, c.run, notes);
  std::vector<std::string> out;
  for (const Note& n : notes)
    out.push_back(cat(n.kind == Note::Kind::kWarning ? "warning " : "note ", n.text));
  return out;
}

// Every way of stretching is in the args or in a note.
TEST(MegatronArgs, NoteTheStretchingThatTheyCannotSay) {
  auto unsaid = [](std::string_view rope) { return unsaid_of(tiny_config("qwen3_moe", rope)); };
  for (const char* type : {"dynamic", "longrope", "su", "proportional"})
    EXPECT_EQ(
        unsaid(cat(R"("rope_scaling": {"type": ")", type, R"(", "factor": 2})")),
        std::vector<std::string>{cat("warning the args do not say how the rotary embeddings are stretched: "
                                     "Megatron has no argument for the type ",
                                     type, ", and computes without it")});
  for (const char* type : {"default", "linear", "yarn", "llama3", "mrope"})
    EXPECT_EQ(unsaid(cat(R"("rope_scaling": {"type": ")", type, R"(", "factor": 2})")),
              std::vector<std::string>{});
  EXPECT_EQ(unsaid(R"("rope_scaling": {"type": "llama3", "factor": 2, "low_freq_factor": 1.0,
      "high_freq_factor": 5.0, "original_max_position_embeddings": 8192})"),
            std::vector<std::string>{"warning the args do not say high_freq_factor 5 of rotary embeddings: "
                                     "Megatron computes with 4"});
  EXPECT_EQ(unsaid(R"("rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8}})"),
            std::vector<std::string>{
                "note the args do not say how the rotary embeddings of kinds of layers are stretched "
                "(full_attention: linear): Megatron has arguments for all layers together"});
  EXPECT_EQ(unsaid(R"("rope_scaling": {"type": "linear", "factor": 8}, "rope_local_base_freq": 10000)"),
            std::vector<std::string>{
                "note the args do not say how the rotary embeddings of layers without windows are stretched "
                "(linear): Megatron has arguments for all layers together"});
  const std::vector<std::string> some_layers = {
      "note the args do not say how the rotary embeddings of layers without windows are stretched "
      "(yarn): Megatron has arguments for all layers together"};
  EXPECT_EQ(unsaid(kYarnBesideWindows), some_layers);
  EXPECT_EQ(unsaid_of(tiny_config("olmo3", kYarn)), some_layers);
  EXPECT_EQ(written(args_of_config(tiny_config("olmo3", kYarn)), "position_embedding_type"), "'rope'");
  EXPECT_EQ(
      unsaid(R"("partial_rotary_factor": 0.5)"),
      std::vector<std::string>{
          "note config.json says that the part 0.5 of each head is rotated, which transformers' class of "
          "qwen3_moe does not compute with: the args say that heads are rotated whole"});
  EXPECT_EQ(unsaid(R"("partial_rotary_factor": 1)"), std::vector<std::string>{});
  EXPECT_EQ(unsaid(R"("rope_scaling": {"type": "linear"})"),
            std::vector<std::string>{"warning the args do not say how the rotary embeddings are stretched: "
                                     "config.json has the type linear without a factor"});
  EXPECT_EQ(unsaid(R"("rope_scaling": {"type": "linear", "factor": 1})"), std::vector<std::string>{});
  for (const char* golden : {"gpt_oss", "deepseek_v3", "qwen3_vl_moe", "nemotron_h"})
    EXPECT_EQ(unsaid_of(golden_config_text(golden)), std::vector<std::string>{}) << golden;
  std::string latent = golden_config_text("deepseek_v3");
  const std::string plain = R"("rope_type": "default")";
  latent.replace(latent.find(plain), plain.size(), R"("rope_type": "linear", "factor": 2)");
  ASSERT_EQ(unsaid_of(latent).size(), 1u);
  EXPECT_NE(unsaid_of(latent)[0].find("the type linear of latent attention"), std::string::npos);
}

// A run computes the rows of the vocabulary: its tokens, rounded up to a multiple of the divisor times the
// tensor ranks.
TEST(MegatronArgs, GiveTheRowsOfTheVocabularyOnEveryGrid) {
  struct Case {
    i64 vocab, tp, rows, divisor;
  };
  const Case cases[] = {{500, 1, 500, 4},  {500, 2, 500, 2}, {500, 4, 500, 1},   {500, 8, 512, 4},
                        {517, 1, 517, 1},  {517, 2, 518, 1}, {512, 2, 512, 128}, {384, 2, 384, 64},
                        {640, 4, 640, 32}, {500, 5, 500, 4}};
  for (const Case& c : cases) {
    std::string config = golden_config_text("llama3"), own = "\"vocab_size\": 517";
    ASSERT_NE(config.find(own), config.npos);
    config.replace(config.find(own), own.size(), cat("\"vocab_size\": ", c.vocab));
    Grid grid;
    grid.tp = c.tp;
    const Fields args = args_of_config(config, grid);
    const std::string of = cat(c.vocab, " tokens, tp ", c.tp);
    EXPECT_EQ(written(args, "padded_vocab_size"), cat(c.rows)) << of;
    EXPECT_EQ(written(args, "make_vocab_size_divisible_by"), cat(c.divisor)) << of;
    const i64 step = std::stoll(written(args, "make_vocab_size_divisible_by")) * c.tp;
    EXPECT_EQ((c.vocab + step - 1) / step * step, c.rows) << of;
  }
}

// Args of a source keep a divisor that is right for their own grid, whatever it is.
TEST(MegatronArgs, OfASourceGetAnotherDivisorForAnotherGrid) {
  HfConfig c = read_hf_config(golden_config_text("llama3"));  // 517 tokens
  ModelMap map = ModelMap::promised(c.model, *c.family);
  auto args_with = [](i64 divisor, i64 tp) {
    PickleWriter p;
    p.op(Op::kEmptyDict), p.op(Op::kMark);
    p.text("make_vocab_size_divisible_by"), p.integer(divisor);
    p.text("tensor_model_parallel_size"), p.integer(tp);
    p.op(Op::kSetitems);
    return p.finish();
  };
  EXPECT_EQ(other_vocab_divisor(args_with(128, 1), map, 640, 1), std::nullopt);
  EXPECT_EQ(other_vocab_divisor(args_with(40, 8), map, 640, 8), std::nullopt);
  EXPECT_EQ(other_vocab_divisor(args_with(3, 1), map, 519, 1), std::nullopt);
  EXPECT_EQ(other_vocab_divisor(args_with(128, 1), map, 640, 2), 64);
  EXPECT_EQ(other_vocab_divisor(args_with(3, 1), map, 640, 1), 128);
  EXPECT_EQ(other_vocab_divisor(args_with(0, 2), map, 518, 2), 1);
  EXPECT_EQ(other_vocab_divisor("", map, 0, 2), std::nullopt);
}

}  // namespace megatron_args_test
}  // namespace mckpt::impl
