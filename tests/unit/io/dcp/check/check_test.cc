#include "io/dcp/check/check.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/run/run_config.h"
#include "io/dcp/run/sizes.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mckpt::impl {
namespace {

// A store of names and shapes.
class NameStore final : public Store {
 public:
  void add_tensor(std::string name, std::vector<i64> dims = {4, 2}) {
    names_.push_back(std::move(name));
    dims_.push_back(std::move(dims));
  }
  void add_object(std::string name) { objects_.emplace_back().name = std::move(name); }
  void remove(std::string_view name) {
    auto at = std::find(names_.begin(), names_.end(), name);
    ASSERT_NE(at, names_.end()) << name;
    dims_.erase(dims_.begin() + (at - names_.begin()));
    names_.erase(at);
  }
  void reshape(std::string_view name, std::vector<i64> dims) {
    dims_[static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin())] =
        std::move(dims);
  }

  i64 tensor_count() const override { return static_cast<i64>(names_.size()); }
  std::string_view name(i64 t) const override { return names_[static_cast<std::size_t>(t)]; }
  DType dtype(i64) const override { return DType::kF32; }
  std::span<const i64> dims(i64 t) const override { return dims_[static_cast<std::size_t>(t)]; }
  i64 chunk_count(i64) const override { return 0; }
  Chunk chunk(i64, i64) const override { return {}; }
  ChunkData resolve(i64, i64) const override { return {}; }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<i64>> dims_;
};

constexpr const char* kOptimizer = "optimizer.state.module.module.module.";
constexpr const char* kMeta = "optimizer.param_to_group_meta.module.module.module.";

void add_parameter(NameStore& store, const std::string& name, const std::vector<std::string>& pieces,
                   bool trained = true) {
  for (const std::string& piece : pieces) {
    store.add_tensor("model.module." + name + piece);
    if (!trained) continue;
    for (const char* moment : {".exp_avg", ".exp_avg_sq"})
      store.add_tensor(kOptimizer + name + piece + moment);
  }
  if (!trained) return;
  for (const char* field : {".lr", ".step"}) store.add_object(kMeta + name + field);
}

// Two layers, the second with three experts, all that Megatron splits, and a frozen tensor.
NameStore sound_model() {
  NameStore store;
  add_parameter(store, "embedding.word_embeddings.weight", {""}, false);
  add_parameter(store, "decoder.layers.0.mlp.linear_fc1.weight", {"_w", "_v"});
  add_parameter(store, "decoder.layers.0.self_attention.in_proj.weight",
                {".query", ".key", ".value", ".z", ".beta", ".alpha"});
  add_parameter(store, "decoder.layers.1.self_attention.linear_qkv.weight", {""});
  for (const char* expert : {"0", "1", "2"}) {
    add_parameter(store, std::string("decoder.layers.1.mlp.experts.linear_fc1.weight") + expert,
                  {"_w", "_v"});
    add_parameter(store, std::string("decoder.layers.1.mlp.experts.linear_fc2.weight") + expert, {""});
  }
  store.add_object("iteration");
  return store;
}

std::string found(const NameStore& store, const RunSizes& facts = {},
                  DcpDialect dialect = DcpDialect::kFsdpDtensor) {
  std::string out;
  for (const Finding& f : check_names(store, dialect, facts))
    out += cat(f.warning ? "warning " : "", code_name(f.code), " ", f.tensor, f.tensor.empty() ? "" : ": ",
               f.message, "\n");
  return out;
}

TEST(DcpNames, OfASoundModelPass) {
  EXPECT_EQ(found(sound_model()), "");
  EXPECT_EQ(found(sound_model(), {.layers = 2, .experts = 3, .pipeline_stages = 1}), "");
}

// torch_dist has the same parameter of all layers in one tensor, and all experts of a layer in another.
TEST(DcpNames, AreOfTheSizesThatTheArgsSay) {
  NameStore store;
  store.add_tensor("decoder.layers.mlp.router.weight", {3, 5, 8});
  store.add_tensor("decoder.layers.mlp.experts.experts.linear_fc1.weight", {3, 5, 4, 8});
  store.add_tensor("mtp.layers.0.mtp_model_layer.mlp.router.weight", {5, 8});
  auto said = [&](const RunSizes& facts) { return found(store, facts, DcpDialect::kTorchDist); };
  EXPECT_EQ(said({.layers = 3, .experts = 5}), "");
  EXPECT_EQ(said({}), "");
  const std::string of_router = "MC1312 decoder.layers.mlp.router.weight: the args of the training run say ";
  EXPECT_EQ(said({.layers = 7, .experts = 5}), of_router + "7 layers, but 3 are stored\n");
  EXPECT_EQ(said({.layers = 2}), of_router + "2 layers, but 3 are stored\n");
  EXPECT_EQ(said({.layers = 3, .experts = 4}), of_router + "4 experts, but the router has 5\n");
  EXPECT_EQ(found(sound_model(), {.layers = 1}).substr(0, 6), "MC1312");
  // None in the args is 0 of them.
  EXPECT_EQ(said({.layers = 0}), of_router + "no layers, but 3 are stored\n");
  EXPECT_EQ(said({.experts = 0}), of_router + "no experts, but the router has 5\n");
  const std::string of_mtp =
      "MC1312 mtp.layers.0.mtp_model_layer.mlp.router.weight: the args of the training run say ";
  EXPECT_EQ(said({.mtp_layers = 1}), "");
  EXPECT_EQ(said({.mtp_layers = 2}), of_mtp + "2 MTP layers, but 1 is stored\n");
  EXPECT_EQ(said({.mtp_layers = 0}), of_mtp + "no MTP layers, but 1 is stored\n");
  EXPECT_EQ(found(sound_model(), {.mtp_layers = 2}), "");
}

// Two kinds of layers that are stacked apart are the run's layers together.
TEST(DcpNames, OfTwoKindsOfLayersAddUp) {
  NameStore store;
  store.add_tensor("decoder.layers.mlp.linear_fc2.weight", {5, 4});
  store.add_tensor("decoder.layers.self_attention_sliding.linear_proj.weight", {3, 4, 8});
  store.add_tensor("decoder.layers.self_attention_sliding.linear_qkv.weight", {3, 9, 4});
  store.add_tensor("decoder.layers.self_attention_global.linear_proj.weight", {2, 4, 6});
  auto said = [&](i64 layers) { return found(store, {.layers = layers}, DcpDialect::kTorchDist); };
  EXPECT_EQ(
      said(5),
      "MC1312 decoder.layers.self_attention_sliding.linear_qkv.weight: the args of the training run say "
      "5 layers, but 3 are stored\n");
  store.add_tensor("decoder.layers.self_attention_global.linear_qkv.weight", {2, 7, 4});
  EXPECT_EQ(said(5), "");
  EXPECT_EQ(said(3).substr(0, 44), "MC1312 decoder.layers.mlp.linear_fc2.weight:");
}

TEST(DcpNames, MustComeInHalves) {
  NameStore store = sound_model();
  store.remove("model.module.decoder.layers.1.mlp.experts.linear_fc1.weight1_v");
  store.reshape("model.module.decoder.layers.0.mlp.linear_fc1.weight_w", {3, 2});
  std::string said = found(store);
  EXPECT_NE(
      said.find("MC1311 model.module.decoder.layers.1.mlp.experts.linear_fc1.weight1_w: the other half, "
                "'decoder.layers.1.mlp.experts.linear_fc1.weight1_v', is missing\n"),
      said.npos)
      << said;
  EXPECT_NE(said.find("MC1311 model.module.decoder.layers.0.mlp.linear_fc1.weight_w: the shape "
                      "[3, 2] differs from the shape [4, 2] of the "
                      "other half, 'decoder.layers.0.mlp.linear_fc1.weight_v'\n"),
            said.npos)
      << said;
}

TEST(DcpNames, MustHaveBothMomentsInTheShapeOfTheParameter) {
  NameStore store = sound_model();
  std::string qkv = "decoder.layers.1.self_attention.linear_qkv.weight";
  store.remove(kOptimizer + qkv + ".exp_avg_sq");
  EXPECT_EQ(found(store),
            cat("MC1311 ", kOptimizer, qkv, ".exp_avg: the parameter of this state has no exp_avg_sq\n"));
  store.reshape(kOptimizer + qkv + ".exp_avg", {0, 2});
  EXPECT_EQ(found(store),
            cat("MC1311 ", kOptimizer, qkv, ".exp_avg: the parameter of this state has no exp_avg_sq\n",
                "MC1311 ", kOptimizer, qkv,
                ".exp_avg: the shape [0, 2] of the state differs from the shape "
                "[4, 2] of its parameter\n"));
}

TEST(DcpNames, MayHaveAnOptimizerOfOneMoment) {
  for (const char* lacking : {".exp_avg", ".exp_avg_sq"}) {
    NameStore store = sound_model();
    for (i64 t = store.tensor_count(); t-- > 0;)
      if (std::string name(store.name(t)); name.ends_with(lacking)) store.remove(name);
    EXPECT_EQ(found(store), "") << lacking;
  }
}

// Adafactor keeps the squares of a matrix as two vectors.
TEST(DcpNames, MayHaveFactorsInPlaceOfASecondMoment) {
  NameStore store = sound_model();
  std::string state = cat(kOptimizer, "decoder.layers.1.self_attention.linear_qkv.weight");
  store.remove(state + ".exp_avg_sq");
  store.add_tensor(state + ".exp_avg_sq_row", {4});
  store.add_tensor(state + ".exp_avg_sq_col", {2});
  EXPECT_EQ(found(store), "");
}

TEST(DcpNames, MustHaveAStateForWhatTheOptimizerTrains) {
  NameStore store = sound_model();
  std::string qkv = "decoder.layers.1.self_attention.linear_qkv.weight";
  for (const char* moment : {".exp_avg", ".exp_avg_sq"}) store.remove(kOptimizer + qkv + moment);
  EXPECT_EQ(found(store),
            cat("MC1311 ", qkv,
                ": optimizer.param_to_group_meta names the parameter, but it has no optimizer state\n"));
}

TEST(DcpNames, MayLackMomentsBeforeTheFirstStep) {
  NameStore store;
  store.add_tensor("model.module.a");
  store.add_object(cat(kMeta, "a.lr"));
  EXPECT_EQ(found(store), "");
}

TEST(DcpNames, MustCountLayersAndExpertsWithoutGaps) {
  NameStore store;
  for (const char* layer : {"0", "1", "4"})
    store.add_tensor(cat("model.module.decoder.layers.", layer, ".mlp.linear_fc2.weight"));
  store.add_tensor("model.module.decoder.layers.4.mlp.experts.linear_fc2.weight0");
  store.add_tensor("model.module.decoder.layers.4.mlp.experts.linear_fc2.weight2");
  store.add_tensor("model.module.decoder.layers.4.mlp.experts.linear_fc2.bias1");
  EXPECT_EQ(found(store),
            "MC1312 model.module.decoder.layers.4.mlp.experts.linear_fc2.bias1: the layers "
            "decoder.layers.0 to 4 have gaps; no "
            "tensors are stored of 2, 3\n"
            "MC1312 model.module.decoder.layers.4.mlp.experts.linear_fc2.bias1: the model has 3 experts, "
            "but only 1 of them has decoder.layers.4.mlp.experts.linear_fc2.biasN; missing: 0\n"
            "MC1312 model.module.decoder.layers.4.mlp.experts.linear_fc2.weight2: the model has 3 experts, "
            "but only 2 of them have decoder.layers.4.mlp.experts.linear_fc2.weightN; missing: 1\n");
}

// nn.Sequential numbers modules without parameters, too: convolutions 0, 2, 3, 5 with activations between.
TEST(DcpNames, MayHaveModulesOfASequenceWithoutParameters) {
  NameStore store;
  for (const char* module : {"0", "2", "3", "5"})
    for (const char* leaf : {".weight", ".bias"})
      store.add_tensor(cat("model.encoder.subsampling.layers.", module, leaf));
  EXPECT_EQ(found(store), "");
}

TEST(DcpNames, AreComparedWithWhatTheRunSays) {
  NameStore store = sound_model();
  EXPECT_EQ(
      found(store, {.layers = 4, .pipeline_stages = 2}),
      "MC1313 model.module.decoder.layers.1.mlp.experts.linear_fc2.weight2: the training run had 4 "
      "layers, but only 2 are stored\n"
      "MC1313 the training run had 2 pipeline stages; fsdp_dtensor keeps only one layer of each number\n");
  store.add_object("rng_state.(1, 0).0.np_rng_state");
  EXPECT_EQ(
      found(store),
      "MC1313 the training run had 2 pipeline stages; fsdp_dtensor keeps only one layer of each number\n");
}

TEST(DcpNames, MayLackAllMixersOfThePattern) {
  NameStore store;
  for (const char* layer : {"1", "2", "4"})
    store.add_tensor(cat("model.module.decoder.layers.", layer, ".mlp.linear_fc2.weight"));
  std::string said =
      "warning MC1312 model.module.decoder.layers.4.mlp.linear_fc2.weight: the pattern of the training "
      "run has M layers, but no tensor of them is stored";
  EXPECT_EQ(found(store, {.layers = 6, .mixers = {0, 3, 5}}).substr(0, said.size()), said);
  // One of them is there, or more is left out than they are.
  EXPECT_EQ(found(store, {.layers = 6, .mixers = {0, 3}}).substr(0, 6), "MC1312");
  store.add_tensor("model.module.decoder.layers.3.mixer.D");
  EXPECT_EQ(found(store, {.layers = 6, .mixers = {0, 3, 5}}).substr(0, 6), "MC1312");
  EXPECT_EQ(found(store, {.layers = 6, .mixers = {0, 5}}).substr(0, 6), "MC1312");
}

// As in the golden checkpoint of gpt-oss on two expert-parallel ranks.
TEST(DcpNames, OfExpertBiasesThatWereNotRenumberedAreKnown) {
  NameStore store;
  for (int e = 0; e < 16; e++)
    store.add_tensor(cat("model.module.decoder.layers.0.mlp.experts.linear_fc2.weight", e));
  for (int e = 0; e < 8; e++)
    store.add_tensor(cat("model.module.decoder.layers.0.mlp.experts.linear_fc2.bias", e), {4});
  std::string said =
      "MC1312 model.module.decoder.layers.0.mlp.experts.linear_fc2.bias7: the biases of experts were not "
      "renumbered: each of 2 expert-parallel ranks wrote its biases as "
      "decoder.layers.0.mlp.experts.linear_fc2.bias0 to 7, over those of the other ranks; the biases "
      "of 8 of 16 experts are lost\n";
  EXPECT_EQ(found(store), said);
  EXPECT_EQ(found(store, {.experts = 16}), said);
  EXPECT_NE(check_names(store, DcpDialect::kFsdpDtensor, {})[0].help, "");
}

TEST(DcpNames, OfPipelineStagesThatCountedOnAreNoMoreThanOdd) {
  EXPECT_EQ(found(sound_model(), {.layers = 2, .pipeline_stages = 2}),
            "warning MC1313 the training run had 2 pipeline stages; fsdp_dtensor keeps only one layer of "
            "each number, "
            "but all layers are stored: their numbers must have continued from stage to stage\n");
}

TEST(DcpNames, WithoutAListOfWhatIsTrainedShowWhatHasNoStates) {
  NameStore store;
  for (const char* name : {"a", "b"}) {
    store.add_tensor(cat("model.module.", name));
    for (const char* moment : {".exp_avg", ".exp_avg_sq"}) store.add_tensor(cat(kOptimizer, name, moment));
  }
  store.add_tensor("model.module.c");
  store.add_tensor("model.module.mlp.router.expert_bias");
  EXPECT_EQ(found(store),
            "warning MC1311 model.module.c: 1 of 3 parameters has no optimizer states, which only frozen "
            "parameters may lack: c\n");
}

TEST(DcpNames, OfLostStatesDoNotHarmTheModel) {
  NameStore store = sound_model();
  store.remove(cat(kOptimizer, "decoder.layers.1.self_attention.linear_qkv.weight.exp_avg_sq"));
  store.remove(cat(kOptimizer, "decoder.layers.0.mlp.linear_fc1.weight_v.exp_avg"));
  EXPECT_EQ(check_names(store, DcpDialect::kFsdpDtensor, {}).size(), 3u);
  EXPECT_TRUE(check_names(store, DcpDialect::kFsdpDtensor, {}, CheckedPart::kModel).empty());
  store.remove("model.module.decoder.layers.0.mlp.linear_fc1.weight_v");
  EXPECT_EQ(check_names(store, DcpDialect::kFsdpDtensor, {}, CheckedPart::kModel).size(), 1u);
}

TEST(DcpNames, OfStackedLayersAreLeftAlone) {
  NameStore store;
  store.add_tensor("decoder.layers.mlp.linear_fc1.weight", {2, 8, 4});
  for (const char* kind : {"exp_avg.", "exp_avg_sq."})
    store.add_tensor(cat("optimizer.state.", kind, "decoder.layers.mlp.linear_fc1.weight"), {64});
  EXPECT_EQ(found(store, {}, DcpDialect::kTorchDist), "");
}

// Args as a pickled dict; -1 is None.
RunSizes facts_of(const std::vector<std::pair<const char*, i64>>& numbers, const char* pattern = "",
                  bool repeated = false) {
  PickleWriter p;
  p.op(Op::kEmptyDict), p.op(Op::kMark);
  for (auto [name, value] : numbers) p.text(name), value < 0 ? p.op(Op::kNone) : p.integer(value);
  if (*pattern) p.text("hybrid_override_pattern"), p.text(pattern);
  if (repeated) p.text("mtp_use_repeated_layer"), p.boolean(true);
  p.op(Op::kSetitems);
  const std::string text = p.finish();
  const Pickle args({reinterpret_cast<const u8*>(text.data()), text.size()}, {});
  return run_sizes(args.root());
}

TEST(RunSizes, OfArgsSayWhatTheModelHasNot) {
  using Size = std::optional<i64>;
  auto sizes = [](const RunSizes& facts) {
    return std::vector{facts.layers, facts.experts, facts.mtp_layers};
  };
  const Size unsaid;
  EXPECT_EQ(sizes(facts_of({{"num_layers", 3}, {"num_experts", 4}, {"mtp_num_layers", 2}})),
            (std::vector<Size>{3, 4, 2}));
  EXPECT_EQ(sizes(facts_of({{"num_layers", -1}, {"num_experts", -1}, {"mtp_num_layers", -1}})),
            (std::vector<Size>{0, 0, 0}));
  EXPECT_EQ(sizes(facts_of({{"num_layers", 3}})), (std::vector<Size>{3, unsaid, 0}));
  EXPECT_EQ(sizes(facts_of({})), (std::vector<Size>{unsaid, unsaid, unsaid}));
  // The pattern gives the layers, and each of its MTP parts is a depth.
  EXPECT_EQ(sizes(facts_of({{"num_layers", -1}}, "M*-")), (std::vector<Size>{unsaid, unsaid, 0}));
  EXPECT_EQ(sizes(facts_of({{"num_layers", -1}}, "M*-/M*/M*")), (std::vector<Size>{unsaid, unsaid, 2}));
  // A layer that is repeated is stored once.
  EXPECT_EQ(sizes(facts_of({{"num_layers", 3}, {"mtp_num_layers", 2}}, "", true)),
            (std::vector<Size>{3, unsaid, unsaid}));
}

TEST(RunConfig, HasEntriesOfTheModelAlone) {
  constexpr std::string_view text =
      "rotary_base: 1\n"
      "train:\n"
      "  rotary_base: 2\n"
      "model:\r\n"
      "  vision:\n"
      "    rotary_base: 3\n"
      "# a comment\n"
      "  activation_func:\n"
      "  rotary_base_of_windows: 4\n"
      "  rotary_base: 10000  \r\n"
      "rng:\n"
      "  seed: 5\n";
  EXPECT_EQ(model_entry(text, "rotary_base"), "10000");
  EXPECT_EQ(model_entry(text, "activation_func"), std::nullopt);
  EXPECT_EQ(model_entry(text, "seed"), std::nullopt);
  EXPECT_EQ(model_entry("", "seed"), std::nullopt);
}

TEST(RunSizes, ComeFromTheModelSectionOfTheConfig) {
  RunSizes facts = run_sizes_of_yaml(
      "train:\n"
      "  num_layers: 7\n"
      "model:\n"
      "  _target_: megatron.bridge.models.X\n"
      "  num_layers: 12\n"
      "  vision:\n"
      "    num_layers: 3\n"
      "  num_moe_experts: null\n"
      "  pipeline_model_parallel_size: 2\n"
      "  tensor_model_parallel_size: 4\n"
      "  expert_tensor_parallel_size: 1\n"
      "  context_parallel_size: 3\n"
      "rng:\n"
      "  num_layers: 8");
  EXPECT_EQ(facts.layers, 12);
  EXPECT_EQ(facts.experts, std::nullopt);
  EXPECT_EQ(facts.pipeline_stages, 2);
  EXPECT_EQ(facts.tensor_ranks, 4);
  EXPECT_EQ(facts.expert_tensor_ranks, 1);
  EXPECT_EQ(facts.context_ranks, 3);
}

}  // namespace
}  // namespace mckpt::impl
