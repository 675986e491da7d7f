// Adapters that fit their base in no way, or in more than one, are refused with the tensor, what was expected
// and what was found; configs that ask for what is not computed are refused by the entry.
#include <gtest/gtest.h>

#include "../quantized/made_folder.h"
#include "hf/adapter/adapted_store.h"
#include "hf/adapter/lora/lora_config.h"
#include "tests/support/throws.h"

namespace mckpt::impl::adapter_test {
namespace {

using quantized_test::MadePart;
using quantized_test::put_model;

constexpr const char* kPlain = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ".*"})";
constexpr DType kF32 = DType::kF32;

const std::vector<MadePart> kBase = {{"lm_head.weight", kF32, {11, 6}},
                                     {"model.embed_tokens.weight", kF32, {11, 6}},
                                     {"model.q.weight", kF32, {5, 6}},
                                     {"model.q.bias", kF32, {5}},
                                     {"model.k.weight", kF32, {3, 6}},
                                     {"model.experts.gate_up_proj", kF32, {4, 14, 6}},
                                     {"model.experts.down_proj", kF32, {4, 6, 7}},
                                     {"model.square.w", kF32, {4, 6, 6}},
                                     {"model.twins.a", kF32, {4, 5, 6}},
                                     {"model.twins.b", kF32, {4, 5, 6}}};

MadePart part(const std::string& name, std::vector<i64> dims) {
  return {"base_model.model." + name, kF32, std::move(dims)};
}
const MadePart kA = part("model.q.lora_A.weight", {2, 6}), kB = part("model.q.lora_B.weight", {5, 2});

// The error of opening an adapter of these tensors and this config, with the help; "nothing" if it is
// accepted.
std::string opened(const std::vector<MadePart>& tensors, const std::string& config = kPlain,
                   const std::vector<MadePart>& base_tensors = kBase, const char* model_type = nullptr,
                   const std::string& more_config = "") {
  TempFolder base, adapter;
  if (model_type) base.put("config.json", cat(R"({"model_type": ")", model_type, "\"", more_config, "}"));
  put_model(base, base_tensors, "");
  put_model(adapter, tensors, "");
  std::filesystem::rename(adapter.at("model.safetensors"), adapter.at("adapter_model.safetensors"));
  adapter.put("adapter_config.json", config);
  OpenOptions how;
  how.base = adapter_base(base.path());
  std::string help;
  std::string text = thrown_by([&] {
    try {
      open_store(adapter.path(), how);
    } catch (const Error& e) {
      help = e.help();
      throw;
    }
  });
  text += help;
  if (std::size_t at = text.find(adapter.path()); at != text.npos)
    text.replace(at, adapter.path().size(), "DIR");
  return text;
}

void expect_all(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& p : parts) EXPECT_NE(text.find(p), text.npos) << p << " is not in: " << text;
}

std::string with(const std::string& entry) {
  const bool own = entry.find("\"target_modules\"") != entry.npos;
  return cat(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, )", own ? "" : R"("target_modules": ".*", )",
             entry, "}");
}

TEST(Pairing, TakesAnAdapterThatFits) { EXPECT_EQ(opened({kA, kB}), "nothing"); }

TEST(Pairing, RefusesTensorsWithoutACounterpart) {
  expect_all(opened({kA}),
             {"MC2005", "DIR", "model.q", "one of the two factors of a module is missing", "lora_A"});
  expect_all(opened({kA, kB, part("model.v.lora_A.weight", {2, 6}), part("model.v.lora_B.weight", {5, 2})}),
             {"MC2005", "model.v.lora_A.weight", "belongs to no tensor of its base"});
  expect_all(opened({kA, kB, part("model.norm.weight", {6})}), {"MC2005", "model.norm.weight"});
  expect_all(opened({kA, kB, {"q.extra", kF32, {6}}}),
             {"MC2005", "q.extra", "is none of an adapter of PEFT"});
  expect_all(opened({kA, kB, part("model.q.base_layer.lora_B.bias", {5})}),
             {"MC2005", "base_layer.lora_B.bias"});
  expect_all(opened({kA, kB, part("model.q.base_layer.lora_A.weight", {2, 6}),
                     part("model.q.base_layer.lora_B.weight", {5, 2})}),
             {"MC2005", "base_layer.lora_A.weight"});
  expect_all(opened({kA, kB, part("model.q.lora_B.bias", {5})}),
             {"MC2005", "none, as lora_bias says", "lora_B.bias"});
  expect_all(opened({kA, kB}, with(R"("lora_bias": true)")), {"MC2005", "lora_B.bias, as lora_bias says"});
  expect_all(opened({kA, kB}, with(R"("use_dora": true)")),
             {"MC2005", "lora_magnitude_vector, as use_dora says"});
  expect_all(opened({part("model.k.lora_A.weight", {2, 6}), part("model.k.lora_B.weight", {3, 2}),
                     part("model.k.lora_B.bias", {3})},
                    with(R"("lora_bias": true)")),
             {"MC2005", "model.k", "has none to add it to"});
}

// The class says that the bias of the decoder is a parameter of the head, too.
TEST(Pairing, FindsTheBiasOfAModuleUnderItsOtherName) {
  const std::string head = "cls.predictions", decoder = head + ".decoder";
  const std::vector<MadePart> base = {{"bert.embeddings.word_embeddings.weight", kF32, {11, 6}},
                                      {head + ".bias", kF32, {11}}};
  const std::vector<MadePart> tensors = {part(decoder + ".lora_A.weight", {2, 6}),
                                         part(decoder + ".lora_B.weight", {11, 2}),
                                         part(decoder + ".lora_B.bias", {11})};
  auto of_class = [&](const char* name) {
    return opened(tensors, with(R"("lora_bias": true)"), base, "bert",
                  cat(R"(, "architectures": [")", name, R"("])"));
  };
  EXPECT_EQ(of_class("BertForMaskedLM"), "nothing");
  expect_all(of_class("BertModel"), {"MC2005", "cls.predictions.decoder"});
}

TEST(Pairing, RefusesTheBiasesOfTwoModulesForOneTensor) {
  std::vector<MadePart> tensors;
  for (const std::string name : {"encoder.out", "ctc_head"})
    for (const MadePart& p : {part(name + ".lora_A.weight", {2, 6}), part(name + ".lora_B.weight", {11, 2}),
                              part(name + ".lora_B.bias", {11})})
      tensors.push_back(p);
  expect_all(opened(tensors, with(R"("lora_bias": true)"),
                    {{"encoder.out.weight", kF32, {11, 6}}, {"encoder.out.bias", kF32, {11}}}, "some",
                    R"(, "architectures": ["GraniteSpeech5ForCTC"])"),
             {"MC1224", "two modules whose bias the base ties"});
}

TEST(Pairing, RefusesShapesThatDoNotFit) {
  expect_all(opened({kA, part("model.q.lora_B.weight", {5, 3})}),
             {"MC2011", "different ranks", "[2, 6] and [5, 3]"});
  expect_all(opened({part("model.q.lora_A.weight", {3, 6}), part("model.q.lora_B.weight", {5, 3})}),
             {"MC2011", "expected rank 2, found rank 3"});
  expect_all(opened({kA, part("model.q.lora_B.weight", {4, 2})}),
             {"MC2011", "expected [4, 6], found [5, 6]"});
  expect_all(opened({kA, kB, part("model.k.weight", {6, 3})}),
             {"MC2011", "model.k.weight", "expected [3, 6], found [6, 3]"});
  expect_all(opened({part("model.q.lora_A.weight", {2, 6, 3}), kB}), {"MC1224", "no matrices"});
  expect_all(opened({{kA.name, DType::kI32, {2, 6}}, kB}), {"MC1224", "int32"});
}

// nn.Linear has [out, in] and Conv1D of transformers [in, out], whatever fan_in_fan_out says.
TEST(Pairing, GoesByTheKindOfTheModule) {
  const std::string said = with(R"("fan_in_fan_out": true)");
  EXPECT_EQ(opened({kA, kB}, said), "nothing");
  EXPECT_EQ(opened({kA, kB}, said, kBase, "qwen3"), "nothing");
  auto with_module = [](const std::string& name, i64 rows, i64 columns, const std::string& config,
                        const char* type) {
    return opened({part(name + ".lora_A.weight", {2, 6}), part(name + ".lora_B.weight", {5, 2})}, config,
                  {{name + ".weight", kF32, {rows, columns}}}, type);
  };
  for (const std::string& config : {std::string(kPlain), said}) {
    EXPECT_EQ(with_module("h.0.c_fc", 6, 5, config, "gpt2"), "nothing");
    EXPECT_EQ(with_module("h.0.c_fc", 5, 6, config, "starcoder2"), "nothing");
    EXPECT_EQ(with_module("h.0.c_fc", 6, 5, config, "of_tomorrow"), "nothing");
    expect_all(with_module("h.0.c_fc", 5, 6, config, "gpt2"), {"MC2011", "expected [6, 5], found [5, 6]"});
    expect_all(with_module("h.0.q_proj", 6, 5, config, "llama"), {"MC2011", "expected [5, 6], found [6, 5]"});
  }
  auto square = [](const std::string& config, const char* type) {
    return opened({part("h.c_proj.lora_A.weight", {2, 6}), part("h.c_proj.lora_B.weight", {6, 2})}, config,
                  {{"h.c_proj.weight", kF32, {6, 6}}}, type);
  };
  EXPECT_EQ(square(said, "gpt2"), "nothing");
  EXPECT_EQ(square(kPlain, "of_tomorrow"), "nothing");
  expect_all(square(said, "of_tomorrow"), {"MC2008", "h.c_proj", "fan_in_fan_out", "found [6, 6]"});
}

const std::string kParameters = with(
    R"("target_modules": [], "target_parameters": ["experts.down_proj", "experts.gate_up_proj", "square.w", "twins.a", "twins.b"])");
std::vector<MadePart> pairs(const std::string& first, const std::string& second, i64 rows, i64 columns,
                            i64 rows2, i64 columns2) {
  return {part(first + ".lora_A.weight", {8, columns}), part(first + ".lora_B.weight", {rows, 8}),
          part(second + ".lora_A.weight", {8, columns2}), part(second + ".lora_B.weight", {rows2, 8})};
}

TEST(Pairing, GivesPairsToParametersByTheirShapes) {
  EXPECT_EQ(opened(pairs("model.experts.base_layer", "model.experts", 14, 6, 6, 7), kParameters), "nothing");
  EXPECT_EQ(opened(pairs("model.experts.base_layer", "model.experts", 6, 7, 14, 6), kParameters), "nothing");
  expect_all(opened(pairs("model.experts.base_layer", "model.experts", 14, 6, 6, 9), kParameters),
             {"MC2011", "model.experts", "do not fit the parameters"});
  expect_all(
      opened({part("model.experts.lora_A.weight", {8, 7}), part("model.experts.lora_B.weight", {6, 8})},
             kParameters),
      {"MC2005", "a pair for each of down_proj, gate_up_proj", "1 pair"});
  expect_all(opened({part("model.square.lora_A.weight", {8, 6}), part("model.square.lora_B.weight", {6, 8})},
                    kParameters),
             {"MC2008", "which dimension of the parameter is the output", "w of [6, 6]"});
  expect_all(opened(pairs("model.twins.base_layer", "model.twins", 5, 6, 5, 6), kParameters),
             {"MC2008", "which parameter a pair of factors is for", "a, b"});
}

TEST(Pairing, GivesParametersTheirOwnRanks) {
  const char* ranks =
      R"("rank_pattern": {".*\\.gate_up_proj": 4}, "target_modules": [], "target_parameters": ["gate_up_proj", "down_proj"])";
  std::vector<MadePart> tensors = {part("model.experts.base_layer.lora_A.weight", {16, 6}),
                                   part("model.experts.base_layer.lora_B.weight", {14, 16}),
                                   part("model.experts.lora_A.weight", {8, 7}),
                                   part("model.experts.lora_B.weight", {6, 8})};
  EXPECT_EQ(opened(tensors, with(ranks)), "nothing");
  expect_all(opened(tensors, kParameters), {"MC2011", "model.experts", "do not fit the parameters"});
}

TEST(Pairing, RefusesSettingsThatParametersCannotHave) {
  for (const char* setting :
       {"\"lora_bias\": true", "\"fan_in_fan_out\": true", "\"use_dora\": true", "\"lora_dropout\": 0.1"}) {
    const std::string config = with(
        cat(R"("target_modules": [], "target_parameters": ["experts.gate_up_proj", "experts.down_proj"], )",
            setting));
    const std::string key(setting + 1, std::string(setting).find('"', 1) - 1);
    expect_all(opened(pairs("model.experts.base_layer", "model.experts", 14, 6, 6, 7), config),
               {"MC2001", key, "not for parameters"});
  }
}

// A base whose output layer is the embedding: it has no lm_head.
const std::vector<MadePart> kTied(kBase.begin() + 1, kBase.end());
const MadePart kEmbeddingA = part("model.embed_tokens.lora_embedding_A", {2, 11}),
               kEmbeddingB = part("model.embed_tokens.lora_embedding_B", {6, 2}),
               kHeadA = part("lm_head.lora_A.weight", {2, 6}),
               kHeadB = part("lm_head.lora_B.weight", {11, 2});

TEST(Pairing, TakesBothSidesOfATie) {
  EXPECT_EQ(opened({kEmbeddingA, kEmbeddingB}), "nothing");
  EXPECT_EQ(opened({kEmbeddingA, kEmbeddingB}, kPlain, kTied), "nothing");
  EXPECT_EQ(opened({kEmbeddingA, kEmbeddingB, kHeadA, kHeadB}, kPlain, kTied), "nothing");
  EXPECT_EQ(opened({part("model.embed_tokens.weight", {11, 6})}, kPlain, kTied), "nothing");
  EXPECT_EQ(opened({part("lm_head.weight", {11, 6})}, with(R"("modules_to_save": ["lm_head"])"), kTied),
            "nothing");
  // A base with an output layer of its own has no second one.
  expect_all(opened({part("embed_out.weight", {11, 6})}), {"MC2005", "embed_out.weight"});
}

// Values of its own for one of several tied tensors: where a folder can have them apart.
TEST(Pairing, DividesATieThatIsKnown) {
  const MadePart embedding = part("model.embed_tokens.weight", {11, 6}),
                 head = part("lm_head.weight", {11, 6});
  const std::string saved = with(R"("modules_to_save": ["embed_tokens"])");
  auto of_class = [&](const char* name, const char* more = "") {
    return opened({embedding}, saved, kTied, "some", cat(R"(, "architectures": [")", name, "\"]", more));
  };
  EXPECT_EQ(of_class("Qwen3ForCausalLM"), "nothing");
  EXPECT_EQ(of_class("Qwen3Model"), "nothing");
  EXPECT_EQ(of_class("OwnForCausalLM", R"(, "tie_word_embeddings": false)"), "nothing");
  expect_all(of_class("OwnForCausalLM"),
             {"MC1224", "not known", "the class OwnForCausalLM", "merge_and_unload"});
  // The names of the class are none of this base: it has another model in it.
  expect_all(of_class("WhisperForConditionalGeneration"), {"MC1224", "not known"});
  expect_all(of_class("T5ForConditionalGeneration"), {"MC1224", "not known"});
  expect_all(opened({embedding}, saved, kTied), {"MC1224", "no class in config.json"});
  EXPECT_EQ(opened({embedding, head}, saved, kTied), "nothing");  // the adapter says that there is a head
  const std::vector<MadePart> shared = {{"shared.weight", kF32, {11, 6}}};
  expect_all(opened({part("shared.weight", {11, 6})}, with(R"("modules_to_save": ["shared"])"), shared, "t5",
                    R"(, "architectures": ["T5ForConditionalGeneration"])"),
             {"MC1224", "no folder of a T5ForConditionalGeneration", "shared.weight"});
}

TEST(Pairing, RefusesRowsOfTokensThatPeftDoesNotMerge) {
  const MadePart rows = part("model.embed_tokens.token_adapter.trainable_tokens_delta", {2, 6});
  const std::string config = with(R"("trainable_token_indices": [3, 10])");
  expect_all(opened({rows, kHeadA, kHeadB}, config, kTied),
             {"MC1224", "rows of tokens of one module and factors of another", "factors of lm_head"});
  EXPECT_EQ(opened({rows, kHeadA, kHeadB}, config), "nothing");
  expect_all(
      opened({rows, part("model.embed_tokens.weight", {11, 6}), part("lm_head.weight", {11, 6})},
             with(R"("trainable_token_indices": [3, 10], "modules_to_save": ["embed_tokens"])"), kTied),
      {"MC1224", "a module that it has whole, too"});
  expect_all(opened({rows, part("model.embed_tokens.weight", {11, 6})},
                    with(R"("trainable_token_indices": [3, 10], "modules_to_save": ["embed_tokens"])")),
             {"MC1224", "a module that it has whole, too"});
}

// The pairs of two modules that the config ties are one: they have the same values, one of them transposed.
TEST(Pairing, TakesOnePairOfTiedFactors) {
  auto numbers = [](i64 rows, i64 columns, bool turned) {
    std::string bytes;
    for (i64 r = 0; r < rows; r++)
      for (i64 c = 0; c < columns; c++) {
        const float value = static_cast<float>(turned ? c * rows + r : r * columns + c);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    return bytes;
  };
  auto filled = [](MadePart of, std::string bytes) {
    of.bytes = std::move(bytes);
    return of;
  };
  const std::string config = with(R"("target_modules": ["transformer.wte"], "ensure_weight_tying": true)");
  const std::vector<MadePart> tied = {{"transformer.wte.weight", kF32, {11, 6}}};
  const std::vector<MadePart> both = {
      filled(part("transformer.wte.lora_embedding_A", {2, 11}), numbers(2, 11, false)),
      filled(part("transformer.wte.lora_embedding_B", {6, 2}), numbers(6, 2, false)),
      filled(kHeadA, numbers(2, 6, true)), filled(kHeadB, numbers(11, 2, true))};
  EXPECT_EQ(opened(both, config, tied), "nothing");
  EXPECT_EQ(opened({kEmbeddingA, kEmbeddingB, kHeadA, kHeadB},
                   with(R"("target_modules": ["model.embed_tokens"], "ensure_weight_tying": true)"), kTied),
            "nothing");
  // One bit of any of them.
  for (std::size_t i : {0u, 1u, 2u, 3u}) {
    std::vector<MadePart> other = both;
    other[i].bytes[other[i].bytes.size() - 4] ^= 1;
    expect_all(opened(other, config, tied),
               {"MC1224", "one pair of factors", "lm_head.lora_A.weight",
                i % 3 == 0 ? "other values of base_model.model.lm_head.lora_B.weight"
                           : "other values of base_model.model.lm_head.lora_A.weight",
                "as ensure_weight_tying says", "ensure_weight_tying false"});
  }
  // By an alpha of its own the product of the output layer is another one; with magnitudes each is.
  expect_all(
      opened(both, cat(config.substr(0, config.size() - 1), R"(, "alpha_pattern": {"lm_head": 3}})"), tied),
      {"MC1224", "the scales 2 and 1.5"});
  std::vector<MadePart> dora = both;
  dora.push_back(part("transformer.wte.lora_magnitude_vector", {6}));
  dora.push_back(part("lm_head.lora_magnitude_vector", {11}));
  expect_all(opened(dora, cat(config.substr(0, config.size() - 1), R"(, "use_dora": true})"), tied),
             {"MC1224", "magnitudes of their own"});
  // Without the embedding's factors, or without the entry, the config leaves the output layer out.
  for (const auto& [tensors, of] : {std::pair(std::vector<MadePart>{kHeadA, kHeadB}, config),
                                    std::pair(both, with(R"("target_modules": ["transformer.wte"])"))})
    expect_all(opened(tensors, of, tied), {"MC2005", "lm_head", "PEFT does not load them"});
}

TEST(Pairing, TakesAVocabularyOfAnotherSizeAsAWhole) {
  const MadePart embedding = part("model.embed_tokens.weight", {13, 6});
  EXPECT_EQ(opened({embedding, part("lm_head.weight", {13, 6})}), "nothing");
  EXPECT_EQ(opened({embedding}, kPlain, kTied), "nothing");
  expect_all(opened({embedding}),
             {"MC2011", "lm_head.weight", "expected 13 rows, as the adapter has them, found [11, 6]"});
  expect_all(opened({embedding, part("lm_head.weight", {12, 6})}), {"MC2011", "and not of another"});
  std::vector<MadePart> with_bias = kTied;
  with_bias.push_back({"final_logits_bias", kF32, {1, 11}});
  expect_all(opened({embedding}, kPlain, with_bias), {"MC2011", "final_logits_bias", "13 rows"});
  expect_all(opened({part("model.embed_tokens.weight", {13, 7})}), {"MC2011", "of another shape"});
  // Tensors that have as many items by chance, and an output layer of another part of the model.
  auto beside = [&](const std::vector<MadePart>& more) {
    std::vector<MadePart> base = kTied;
    base.insert(base.end(), more.begin(), more.end());
    return opened({embedding}, kPlain, base);
  };
  EXPECT_EQ(beside({{"h.norm.weight", kF32, {11}}, {"h.norm.bias", kF32, {11}}}), "nothing");
  EXPECT_EQ(beside({{"h.fc1.weight", kF32, {11, 6}}, {"h.fc1.bias", kF32, {11}}}), "nothing");
  EXPECT_EQ(beside({{"visual.merger.proj_out.weight", kF32, {5, 6}}}), "nothing");
  for (const char* bias : {"lm_head.bias", "cls.predictions.bias"})
    expect_all(beside({{bias, kF32, {11}}}), {"MC2011", bias, "13 rows"});
  expect_all(opened({embedding, part("lm_head.weight", {13, 6})}, kPlain,
                    {kBase[0], kBase[1], {"lm_head.bias", kF32, {11}}}),
             {"MC2011", "lm_head.bias", "13 rows"});
}

TEST(Pairing, TakesRowsOfTokensThatTheConfigNames) {
  const MadePart rows = part("model.embed_tokens.token_adapter.trainable_tokens_delta", {2, 6});
  EXPECT_EQ(opened({rows}, with(R"("trainable_token_indices": [3, 10])")), "nothing");
  EXPECT_EQ(opened({rows}, with(R"("trainable_token_indices": {"embed_tokens": [3, 10]})")), "nothing");
  expect_all(opened({rows}), {"MC2005", "which tokens"});
  expect_all(opened({rows}, with(R"("trainable_token_indices": [3])")),
             {"MC2011", "expected [1, 6], found [2, 6]"});
  expect_all(opened({rows}, with(R"("trainable_token_indices": [3, 11])")),
             {"MC2011", "expected 0 to 10, found 11"});
  expect_all(opened({rows}, with(R"("trainable_token_indices": {"lm_head": [3, 10]})")),
             {"MC2005", "which tokens"});
  expect_all(opened({rows}, with(R"("trainable_token_indices": {"embed_tokens": [3, 10], "lm_head": [3]})")),
             {"MC2005", "has no rows of them", "lm_head, 1 row"});
  // PEFT puts the rows of both into a tensor that is tied, unless the config wants them to be the same.
  const MadePart of_head = part("lm_head.token_adapter.trainable_tokens_delta", {2, 6});
  for (const char* both : {R"("trainable_token_indices": {"embed_tokens": [3, 10], "lm_head": [2, 9]})",
                           R"("trainable_token_indices": {"lm_head": [2, 9], "embed_tokens": [3, 10]})"}) {
    EXPECT_EQ(opened({rows, of_head}, with(both), kTied), "nothing");
    expect_all(opened({rows, of_head}, with(cat(both, R"(, "ensure_weight_tying": true)")), kTied),
               {"MC2005", "rows of two modules are for one tensor"});
    EXPECT_EQ(opened({rows, of_head}, with(both)), "nothing");
  }
  // Rows of the same tokens are saved once, for the embedding.
  const std::string same =
      with(R"("trainable_token_indices": {"lm_head": [3, 10], "embed_tokens": [3, 10]})");
  EXPECT_EQ(opened({rows}, same, kTied), "nothing");
  expect_all(opened({rows}, same), {"MC2005", "has no rows of them", "lm_head, 2 rows"});
  expect_all(opened({of_head}, same, kTied), {"MC2005", "has no rows of them", "embed_tokens, 2 rows"});
  expect_all(opened({kA, kB}, with(R"("trainable_token_indices": [3])")),
             {"MC2005", "has no rows of them", "the embedding, 1 row"});
}

// Settings by which PEFT would not load what is there, or would not find what it loads.
TEST(Pairing, RefusesTensorsThatTheConfigLeavesOut) {
  const char* left = "a module that its config leaves out";
  EXPECT_EQ(opened({kA, kB}, with(R"("target_modules": ["q", "v"])")), "nothing");
  EXPECT_EQ(opened({kA, kB}, with(R"("target_modules": ".*\\.q")")), "nothing");
  EXPECT_EQ(opened({kA, kB}, with(R"("target_modules": "(?:an|expression).*of.*Python.*alone")")), "nothing");
  for (const char* settings :
       {R"("target_modules": ["k"])", R"("target_modules": ["nothing"])", R"("target_modules": ".*\\.k")",
        R"("target_modules": ["q"], "exclude_modules": ["q"])",
        R"("target_modules": ["q"], "exclude_modules": ".*")",
        R"("target_modules": ["q"], "layers_to_transform": [0])", R"("target_modules": [])",
        R"("target_modules": ["q"], "modules_to_save": ["q"])"})
    expect_all(opened({kA, kB}, with(settings)), {"MC2005", "model.q", left});
  expect_all(opened({kA, kB}, with(R"("target_modules": ["q"], "modules_to_save": ["k"])")),
             {"MC2005", "model.k.weight", "the adapter has no tensor of it"});
  // The head of a class, on a base of another one.
  expect_all(
      opened({kA, kB, part("score.weight", {3, 6})}, with(R"("modules_to_save": ["classifier", "score"])")),
      {"MC2005", "score.weight", "modules_to_save has score", "for 3 labels"});
  // Heads that the config names for any model.
  EXPECT_EQ(opened({kA, kB}, with(R"("target_modules": ["q"], "modules_to_save": ["classifier", "score"])")),
            "nothing");
}

TEST(Pairing, ChoosesTheModulesOfPeftWhereTheConfigNamesNone) {
  constexpr const char *kNone = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})",
                       *kNull = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": null})";
  auto with_module = [](const std::string& name, const char* config, const char* type) {
    return opened({part(name + ".lora_A.weight", {2, 6}), part(name + ".lora_B.weight", {5, 2})}, config,
                  {{name + ".weight", kF32, {5, 6}}}, type);
  };
  for (const char* config : {kNone, kNull}) {
    EXPECT_EQ(with_module("x.v_proj", config, "qwen3"), "nothing");
    EXPECT_EQ(with_module("x.language_model.0.v_proj", config, "gemma4"), "nothing");
    expect_all(with_module("x.down_proj", config, "qwen3"), {"MC2005", "its config leaves out"});
    expect_all(with_module("x.vision.0.v_proj", config, "gemma4"), {"MC2005", "its config leaves out"});
    expect_all(with_module("x.v_proj", config, "of_tomorrow"),
               {"MC2001", "adapter_config.json", "names no modules", "of_tomorrow"});
    expect_all(with_module("x.v_proj", config, nullptr), {"MC2001", "no model_type of the base"});
  }
  // Nothing at all.
  expect_all(opened({part("model.embed_tokens.token_adapter.trainable_tokens_delta", {1, 6})},
                    with(R"("target_modules": [], "trainable_token_indices": [3])")),
             {"MC2005", "chooses no module of the base"});
}

TEST(LoraConfig, KnowsWhichModulesItIsFor) {
  const TargetRules r =
      parse_lora_config(
          with(
              R"("target_modules": ["q", "x.layers.7.v"], "layers_to_transform": [0, 12], "layers_pattern": "layers", "exclude_modules": ["layers.12.q"])"))
          .rules;
  EXPECT_EQ(r.targeted("x.layers.0.q"), true);
  EXPECT_EQ(r.targeted("layers.0.q"), true);
  EXPECT_EQ(r.targeted("x.layers.1.q"), false);
  EXPECT_EQ(r.targeted("x.layers.12.q"), false);
  EXPECT_EQ(r.targeted("x.layers.12.experts.0.q"), true);  // the first number is the layer
  EXPECT_EQ(r.targeted("x.blocks.0.q"), false);
  EXPECT_EQ(r.targeted("x.layers.7.v"), true);  // a whole name is meant in any layer
  EXPECT_EQ(r.targeted("x.layers.0.seq"), false);
  EXPECT_EQ(parse_lora_config(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4})").rules.targeted("x.q"),
            std::nullopt);
  EXPECT_EQ(parse_lora_config(with(R"("target_modules": [])")).rules.targeted("x.q"), false);
  EXPECT_EQ(parse_lora_config(with(R"("target_modules": "all-linear")")).rules.targeted("x.q"), std::nullopt);
}

std::string parsed(const std::string& text) {
  return thrown_by([&] { parse_lora_config(text); });
}

TEST(LoraConfig, RefusesWhatIsNotComputed) {
  EXPECT_EQ(parsed(kPlain), "nothing");
  EXPECT_EQ(
      parsed(with(
          R"("lora_dropout": 0.1, "target_modules": ["q"], "new_entry": null, "other": {}, "use_qalora": false)")),
      "nothing");
  expect_all(parsed(R"({"peft_type": "LOHA", "r": 2, "lora_alpha": 4})"),
             {"MC2001", "expected peft_type LORA, found 'LOHA'"});
  expect_all(parsed(R"({"r": 2, "lora_alpha": 4})"), {"MC2001", "no peft_type"});
  expect_all(parsed(R"({"peft_type": "LORA", "r": 2})"), {"MC2001", "'lora_alpha' is missing"});
  expect_all(parsed(R"({"peft_type": "LORA", "lora_alpha": 4})"), {"MC2001", "'r' is missing"});
  expect_all(parsed(R"({"peft_type": "LORA", "r": 0, "lora_alpha": 4})"), {"MC2001", "'r'", "from 1 on"});
  expect_all(parsed(R"({"peft_type": "LORA", "r": 2.5, "lora_alpha": 4})"), {"MC2001", "'r'"});
  expect_all(parsed("[]"), {"MC2001"});
  for (const char* entry :
       {R"("init_lora_weights": "of tomorrow")", R"("layer_replication": [[0, 4]])",
        R"("alora_invocation_tokens": [1])", R"("use_qalora": true)", R"("loftq_config": {"loftq_bits": 4})",
        R"("bias": "some")", R"("an_entry_of_tomorrow": 3)"})
    expect_all(parsed(with(entry)),
               {"MC2001", std::string(entry, 1, std::string(entry).find('"', 1) - 1), "not computed"});
  expect_all(parsed(with(R"j("rank_pattern": {"(?P<x>q)": 3})j")), {"MC2001", "regular expression"});
  expect_all(parsed(with(R"j("rank_pattern": {"q(": 3})j")), {"MC2001", "regular expression"});
  for (const char* slow : {"(a*)*b", "a*a*a*a*", "(x|x.*)+y"})
    expect_all(parsed(with(cat(R"("rank_pattern": {")", slow, R"(": 3})"))),
               {"MC2001", "regular expression", slow});
  EXPECT_EQ(parsed(with(R"j("alpha_pattern": {"q": 0})j")), "nothing");
  for (const char* start : {"pissa", "pissa_niter_4", "olora", "loftq", "corda"})
    expect_all(parsed(with(cat(R"("init_lora_weights": ")", start, R"(")"))),
               {"MC2001", "taking the factors out of the base", start});
}

// PEFT has defaults for all that is in these entries, so that they are on where they are empty, too.
TEST(LoraConfig, RefusesKindsOfLoraByTheirEntry) {
  for (const char* kind :
       {"arrow_config", "kasa_config", "monteclora_config", "use_bdlora", "velora_config"}) {
    EXPECT_EQ(parsed(with(cat("\"", kind, "\": null"))), "nothing");
    for (const char* value : {"{}", R"({"r": 1})", "false"})
      expect_all(parsed(with(cat("\"", kind, "\": ", value))), {"MC2001", kind, "not computed"});
  }
}

TEST(LoraConfig, RefusesEntriesThatExcludeEachOther) {
  for (const char* both :
       {R"("target_modules": ".*", "layers_to_transform": [0])",
        R"("target_modules": ".*", "layers_pattern": [])", R"("lora_bias": true, "use_dora": true)",
        R"("lora_bias": true, "init_lora_weights": "gaussian")"})
    expect_all(parsed(with(both)), {"MC2001", "exclude each other"});
  expect_all(parsed(with(R"("target_modules": ["q"], "layers_pattern": ["layers"])")),
             {"MC2001", "'layers_pattern' is there without 'layers_to_transform'"});
  EXPECT_EQ(parsed(with(R"("target_modules": ["q"], "layers_pattern": [], "layers_to_transform": null)")),
            "nothing");
}

TEST(LoraConfig, FindsRankAndAlphaOfAModule) {
  LoraConfig c = parse_lora_config(with(
      R"j("rank_pattern": {"layers.1.q": 9, "q": 16, "layers\\.[0-9]+\\.(k|v)": 8}, "alpha_pattern": {"^x.q": 5, "v": 6})j"));
  EXPECT_EQ(c.rank_of("x.layers.1.q"), 9);
  EXPECT_EQ(c.rank_of("layers.1.q"), 9);
  EXPECT_EQ(c.rank_of("x.layers.2.q"), 16);
  EXPECT_EQ(c.rank_of("x.layers.2.seq"), 2);  // whole parts of the name alone
  EXPECT_EQ(c.rank_of("x.layers.21.v"), 8);
  EXPECT_EQ(c.scale_of("x.layers.21.v"), 6.0 / 8);
  EXPECT_EQ(c.scale_of("x.layers.2.q"), 4.0 / 16);
  EXPECT_EQ(c.scale_of("other"), 4.0 / 2);
  c.by_root = true;
  EXPECT_EQ(c.scale_of("x.layers.2.q"), 4.0 / 4);
}

}  // namespace
}  // namespace mckpt::impl::adapter_test
