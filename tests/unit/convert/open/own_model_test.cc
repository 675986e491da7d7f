// Which checkpoints have the model's own names, and what of them is written.
#include "convert/open/openers.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace own_model_test {

bool own(const char* name) {
  TableStore store("nowhere");
  store.tensors.push_back({"model.norm.weight", DType::kF32, {}, {}});
  store.tensors.push_back({name, DType::kF32, {}, {}});
  return has_own_names(store);
}

TEST(HasOwnNames, KnowsLayersOfMegatron) {
  for (const char* name : {"model.layers.0.self_attn.q_proj.weight", "layers.0.attention.wo.weight",
                           "model.decoder.layers.0.self_attn.k_proj.weight",
                           "model.decoder.layers.0.cross_attention.out_proj.bias",
                           "decoder.layers.0.self_attention.o_proj.weight",
                           "transformer.encoder.layers.0.self_attention.dense.weight",
                           "model.visual.blocks.0.mlp.linear_fc1.weight", "my_decoder.layers.0.mixer.weight"})
    EXPECT_TRUE(own(name)) << name;
  for (const char* name :
       {"model.module.decoder.layers.0.self_attention.linear_qkv.weight",
        "decoder.layers.0.self_attention.out_proj.weight", "decoder.layers.0.cross_attention.linear_q.weight",
        "model.decoder.layers.3.mlp.linear_fc2.weight", "decoder.layers.0.mixer.in_proj.weight",
        "language_model.decoder.layers.0.mlp.router.weight"})
    EXPECT_FALSE(own(name)) << name;
}

// [1, 2] of float32 at an offset of the file.
TableStore::Tensor pair_at(std::string name, i64 offset) {
  return {std::move(name),
          DType::kF32,
          {1, 2},
          {{{0, 0}, {1, 2}, {.file = 0, .offset = offset, .dtype = DType::kF32}}}};
}

std::unique_ptr<TableStore> two_tensors(TempFolder& folder, const std::string& head) {
  folder.put("data", head + std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  auto store = std::make_unique<TableStore>(folder.path());
  store->add_file("data", 16);
  store->tensors = {pair_at("lm_head.weight", 0), pair_at("model.embed_tokens.weight", 8)};
  return store;
}

TEST(OwnModel, LeavesOutAHeadThatRepeatsTheEmbedding) {
  const std::string same("\0\0\x80\x3f\0\0\0\x40", 8), other(8, '\1');
  TempFolder equal, unlike, apart;
  for (TempFolder* folder : {&equal, &unlike, &apart})
    folder->put("config.json", cat(R"({"model_type": "nobody_knows_it", "tie_word_embeddings": )",
                                   folder == &apart ? "false}" : "true}"));
  OwnModel tied = open_own_model(two_tensors(equal, same), {.source = equal.path()});
  ASSERT_EQ(tied.tensors.size(), 1u);
  EXPECT_EQ(tied.tensors[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(open_own_model(two_tensors(apart, other), {.source = apart.path()}).tensors.size(), 2u);
  EXPECT_NE(thrown_by([&] {
              open_own_model(two_tensors(unlike, other), {.source = unlike.path()});
            }).find("MC2005"),
            std::string::npos);
}

TEST(OwnModel, NeedsAConfigOnlyIfTheModelIsToBeComplete) {
  TempFolder folder;
  auto opened = [&](bool complete) {
    return thrown_by(
        [&] { open_own_model(two_tensors(folder, std::string(8, '\1')), {.complete = complete}); });
  };
  EXPECT_EQ(opened(true).substr(0, 6), "MC2014");
  EXPECT_EQ(opened(false), "nothing");
}

// [1, 2] of float32 for each name, as the bytes are listed; config.json and the headers of the model's
// folder. "@0" for bytes is the storage of the first tensor.
OwnModel opened_beside_headers(TempFolder& folder,
                               const std::vector<std::pair<std::string, std::string>>& stored,
                               const std::vector<std::string>& in_headers,
                               const std::string& config = R"({"model_type": "nobody_knows_it"})") {
  std::string data, header;
  for (const std::string& name : in_headers) {
    const i64 at = std::ssize(data);
    header += cat(header.empty() ? "{" : ",", safetensors_entry(name, "F32", "1,2", at, at + 8));
    data += std::string(8, '\0');
  }
  folder.put("config.json", config);
  folder.put("model.safetensors", safetensors_file(header + "}", data));
  std::string bytes;
  auto store = std::make_unique<TableStore>(folder.path());
  store->add_file("data", 8 * std::ssize(stored));
  for (const auto& [name, value] : stored) {
    const bool shared = value == "@0";
    store->tensors.push_back(pair_at(name, shared ? 0 : std::ssize(bytes)));
    if (!shared) bytes += value;
  }
  folder.put("data", bytes);
  return open_own_model(std::move(store), {.source = folder.path(), .assets = folder.path()});
}

std::string names_of(const OwnModel& model) {
  std::string out;
  for (const OwnTensor& t : model.tensors) out += cat(t.name, " ");
  return out;
}

TEST(OwnModel, LeavesOutCopiesThatTheHeadersLack) {
  const std::string a = "12345678", b = "12345679", zeros(8, '\0');
  TempFolder t5, bert;
  OwnModel model = opened_beside_headers(t5,
                                         {{"shared.weight", a},
                                          {"encoder.embed_tokens.weight", a},
                                          {"decoder.embed_tokens.weight", b},
                                          {"lm_head.weight", b}},
                                         {"shared.weight", "lm_head.weight"});
  EXPECT_EQ(names_of(model), "shared.weight lm_head.weight ");
  EXPECT_EQ(model.copies, (std::vector<std::pair<i32, i32>>{{1, 0}, {2, 3}}));
  ASSERT_EQ(std::ranges::distance(model.notes), 1);
  EXPECT_NE((*model.notes.begin())
                .text.find("encoder.embed_tokens.weight, decoder.embed_tokens.weight are left out, as in"),
            std::string::npos);
  // Tensors of one value are equal to any other; here the name says which one it is.
  EXPECT_EQ(names_of(opened_beside_headers(bert,
                                           {{"cls.predictions.bias", zeros},
                                            {"cls.predictions.decoder.bias", zeros},
                                            {"cls.pooler.bias", zeros}},
                                           {"cls.predictions.bias"})),
            "cls.predictions.bias cls.pooler.bias ");
}

// The reference model beside it was not trained: its embedding is equal to the head, and is not the model's.
TEST(OwnModel, OneEmbeddingIsTheCopyOfTheHead) {
  const std::string a = "12345678", name = "model.embed_tokens.weight", ref = cat("ref.", name);
  auto written = [&](const std::vector<std::string>& listed, const std::vector<std::string>& stored) {
    TempFolder folder;
    std::vector<std::pair<std::string, std::string>> tensors;
    for (const std::string& tensor : stored) tensors.emplace_back(tensor, a);
    return names_of(opened_beside_headers(folder, tensors, listed));
  };
  EXPECT_EQ(written({"lm_head.weight", name}, {"lm_head.weight", name, ref}),
            cat("lm_head.weight ", name, " ", ref, " "));
  // Which of the two is the head's is not known.
  EXPECT_EQ(written({"lm_head.weight"}, {"lm_head.weight", name, ref}),
            cat("lm_head.weight ", name, " ", ref, " "));
  EXPECT_EQ(written({"lm_head.weight"}, {"lm_head.weight", name}), "lm_head.weight ");
  EXPECT_EQ(written({"lm_head.weight"}, {"lm_head.weight", "shared.weight", "encoder.embed_tokens.weight"}),
            "lm_head.weight ");
}

TEST(OwnModel, AsksTheConfigWhetherAHeadIsTied) {
  const std::string a = "12345678", b = "12345679", other = R"({"model_type": "nobody_knows_it")";
  auto opened = [&](const std::string& tie, const std::string& head) {
    TempFolder folder;
    std::string out;
    return thrown_by([&] {
             OwnModel model =
                 opened_beside_headers(folder, {{"model.embed_tokens.weight", a}, {"lm_head.weight", head}},
                                       {"model.embed_tokens.weight"}, cat(other, tie, "}"));
             throw Error(Code::kInternal, cat(names_of(model), std::ranges::distance(model.notes)));
           })
        .substr(7);
  };
  const std::string tied = R"(, "tie_word_embeddings": true)", apart = R"(, "tie_word_embeddings": false)";
  EXPECT_EQ(opened(tied, a), "model.embed_tokens.weight 0");
  EXPECT_EQ(opened("", a), "model.embed_tokens.weight 1");
  EXPECT_EQ(opened(apart, a), "model.embed_tokens.weight lm_head.weight 1");
  EXPECT_EQ(opened("", b), "model.embed_tokens.weight lm_head.weight 1");
  EXPECT_NE(opened(tied, b).find("a tensor that should be a copy of another one"), std::string::npos);
}

TEST(OwnModel, LeavesOutWhatSharesTheStorageOfAnother) {
  TempFolder folder;
  OwnModel model = opened_beside_headers(
      folder, {{"a.table", "12345678"}, {"b.table", "@0"}, {"c.table", "12345678"}}, {"a.table"});
  EXPECT_EQ(names_of(model), "a.table c.table ");
  EXPECT_NE((*model.notes.begin()).text.find(": a copy of a tensor that is written"), std::string::npos);
  EXPECT_EQ(model.copies, (std::vector<std::pair<i32, i32>>{{1, 0}}));
}

// Names in memory that no rule changes to the names of the folder.
TEST(OwnModel, SaysWhoseNamesAreKnownWhereMostDiffer) {
  const std::string a = "12345678";
  TempFolder folder;
  try {
    opened_beside_headers(folder, {{"a.w", a}, {"b.w", a}}, {"x.w", "y.w"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string_view(e.what()).find("most tensors have other names"), std::string_view::npos);
    ASSERT_EQ(e.notes().size(), 1u);
    EXPECT_TRUE(e.notes()[0].ends_with("; this one has model_type nobody_knows_it")) << e.notes()[0];
    EXPECT_TRUE(e.help().ends_with("`assets` with config.json alone keeps the names")) << e.help();
  }
}

// The first of each pair is in the headers of the folder.
constexpr std::pair<const char*, const char*> kEqualAndNotTied[] = {
    {"proj.weight", "proj2.weight"},
    {"enc.pos", "dec.pos"},
    {"x.bias", "x.decoder.bias"},
    {"model.embed_tokens.weight", "v_head.weight"},
    {"model.embed_tokens.weight", "ref.lm_head.weight"},
    {"model.embed_tokens.weight", "ref.model.embed_tokens.weight"},
    {"lm_head.weight", "ref.lm_head.weight"},
};

TEST(OwnModel, KeepsWhatIsNoCopy) {
  const std::string a = "12345678", b = "12345679";
  TempFolder other, layers;
  OwnModel unlike = opened_beside_headers(other, {{"shared.weight", a}, {"encoder.embed_tokens.weight", b}},
                                          {"shared.weight"});
  EXPECT_EQ(names_of(unlike), "shared.weight encoder.embed_tokens.weight ");
  ASSERT_EQ(std::ranges::distance(unlike.notes), 1);
  EXPECT_EQ((*unlike.notes.begin()).kind, Note::Kind::kWarning);
  // Equal values are not enough.
  for (const auto& [listed, more] : kEqualAndNotTied) {
    TempFolder folder;
    OwnModel model = opened_beside_headers(folder, {{listed, a}, {more, a}}, {listed});
    EXPECT_EQ(names_of(model), cat(listed, " ", more, " "));
    EXPECT_EQ(std::ranges::distance(model.notes), 1) << more;
  }
  // Experts and layers that are equal are not tied.
  EXPECT_EQ(names_of(opened_beside_headers(layers, {{"experts.0.up.weight", a}, {"experts.1.up.weight", a}},
                                           {"experts.0.up.weight"})),
            "experts.0.up.weight experts.1.up.weight ");
}

}  // namespace own_model_test
}  // namespace mckpt::impl
