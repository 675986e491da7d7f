// Names of checkpoints as training programs write them, and the names that their models have.
#include "convert/own/model_section.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/support/made_store.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace model_section_test {

using Names = std::vector<std::string>;

// "app.model. | model.norm.weight lm_head.weight | 2": the section, the names of the model, and the numbers
// of the tensors beside it.
std::string sectioned(const Names& names, const SectionOptions& options = {}) {
  TempFolder folder;
  std::vector<MadeTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, {2}});
  return thrown_by([&] {
           SectionedNames s = sectioned_names(*made_store(folder, tensors), options);
           std::string out = cat(s.section, " |");
           for (const NamedTensor& n : s.model) out += cat(" ", n.name);
           out += " |";
           for (i64 t : s.beside) out += cat(" ", t);
           throw Error(Code::kInternal, out);
         })
      .substr(7);
}

// Only names of several torch files begin with a file.
TEST(SectionedNames, HaveColonsOfTheirOwn) {
  TempFolder folder;
  const std::vector<MadeTensor> tensors = {{"a:w", {2}}, {"lm_head.weight", {2}}};
  for (Format format : {Format::kSafetensors, Format::kTorchShards}) {
    auto store = made_store(folder, tensors);
    static_cast<TableStore&>(*store).set_format(format);
    EXPECT_EQ(sectioned_names(*store).model[0].name, "a:w");
  }
  EXPECT_EQ(thrown_by([&] { sectioned_names(*made_store(folder, tensors)); }).substr(0, 6), "MC2005");
}

TEST(SectionedNames, FindsWhatIsInFrontOfTheModel) {
  const struct {
    const char* what;
    Names names;
    std::string expected;
  } kCases[] = {
      {"FSDP2, the model alone",
       {"model.norm.weight", "lm_head.weight"},
       " | model.norm.weight lm_head.weight |"},
      {"a model without a head of its own", {"model.norm.weight"}, " | model.norm.weight |"},
      {"accelerate",
       {"model.model.norm.weight", "model.lm_head.weight"},
       "model. | model.norm.weight lm_head.weight |"},
      {"accelerate, a tied model of which the head is not saved",
       {"model.model.norm.weight"},
       "model. | model.norm.weight |"},
      {"a headless model in a section: nothing shows it", {"model.layers.0.w"}, " | model.layers.0.w |"},
      {"one tensor without it: no section",
       {"model.model.w", "score.weight"},
       " | model.model.w score.weight |"},
      {"with its optimizer",
       {"model.lm_head.weight", "optimizer.state.lm_head.weight.exp_avg", "lr_scheduler.last",
        "optimizer_1.x"},
       "model. | lm_head.weight | 1 2 3"},
      {"the tutorial of torch",
       {"app.model.model.norm.weight", "app.model.lm_head.weight", "app.optim.state.lm_head.weight.step"},
       "app.model. | model.norm.weight lm_head.weight | 2"},
      {"the section may hold any names", {"app.model.h.0.w"}, "app.model. | h.0.w |"},
      {"a model of two parts, one of them named app", {"app.model.w", "head.w"}, " | app.model.w head.w |"},
      {"Lightning Fabric",
       {"state.model._forward_module.lm_head.weight"},
       "state.model._forward_module. | lm_head.weight |"},
      {"torchtitan before 2025",
       {"model.tok_embeddings.weight", "model.norm.weight"},
       "model. | tok_embeddings.weight norm.weight |"},
      {"torchtitan",
       {"norm.weight", "train_state.step", "dataloader.x", "tok_embeddings.weight"},
       " | norm.weight tok_embeddings.weight | 1 2"},
      {"files of one folder",
       {"model.bin:lm_head.weight", "optimizer.bin:state.lm_head.weight.exp_avg"},
       "model.bin: | lm_head.weight | 1"},
      {"groups of rank files",
       {"lm_head.weight", "optim:state.lm_head.weight.exp_avg", "extra_state:rank_0:rng.cpu"},
       " | lm_head.weight | 1 2"},
      {"counters and computed buffers",
       {"step", "lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq"},
       " | lm_head.weight | 0 2"},
  };
  for (const auto& c : kCases) EXPECT_EQ(sectioned(c.names), c.expected) << c.what;
}

// Where the dicts of the save are not known, the dict is the first part of the names, and what it holds is
// judged by name.
TEST(SectionedNames, OfADictThatIsNamedTheStatesAreBeside) {
  const Names names = {"actor.h.w", "actor.optimizer.state.h.w.exp_avg", "critic.h.w", "actor.step"};
  const SectionOptions actor{.model_dict = "actor"};
  EXPECT_EQ(sectioned(names, actor), "actor. | h.w | 1 2 3");
  const ExpectedTensors lists_it = {{"h.w", std::nullopt}, {"step", std::nullopt}};
  EXPECT_EQ(sectioned(names, {.expected = lists_it, .model_dict = "actor"}), "actor. | h.w step | 1 2");
}

// `model.` is a dict only if the names behind it are names of a model.
TEST(SectionedNames, ADictModelIsNotTheFrontOfTheModelsOwnNames) {
  const ExpectedTensors gpt = {{"h.w", std::nullopt}}, headless = {{"model.w", std::nullopt}};
  const struct {
    Names names;
    ExpectedTensors expected;
    std::string text;  // where the dict need not be there
    bool is_dict;
  } kCases[] = {
      {{"model.norm.w", "lm_head.w"}, {}, " | model.norm.w lm_head.w |", false},
      {{"model.norm.w", "model.embed.w"}, {}, " | model.norm.w model.embed.w |", false},
      {{"model.model.norm.w", "model.lm_head.w", "ema.model.norm.w"},
       {},
       "model. | model.norm.w lm_head.w | 2",
       true},
      {{"model._orig_mod.model.w", "ema.model.w"}, {}, "model. | model.w | 1", true},
      {{"model.h.w", "ema.h.w"}, gpt, "model. | h.w | 1", true},
      {{"model.model.w", "lm_head.w"},
       {{"model.model.w", std::nullopt}},
       " | model.model.w lm_head.w |",
       false},
      {{"model.w", "x.w"}, headless, " | model.w x.w |", false},
  };
  for (const auto& c : kCases) {
    SectionOptions how{.expected = c.expected, .model_dict = "model", .dict_if_there = true};
    EXPECT_EQ(sectioned(c.names, how), c.text);
    how.dict_if_there = false;
    for (const char* dict : {"model", "model."}) {
      how.model_dict = dict;
      const std::string strict = sectioned(c.names, how);
      EXPECT_EQ(strict.find("no dict of the name") == strict.npos, c.is_dict) << strict;
    }
  }
}

// Names say nothing against the model's folder, and nothing inside of a dict that is known.
TEST(SectionedNames, KeepsWhatTheFolderListsWhateverItsNameIs) {
  const ExpectedTensors expected = {{"scheduler.w", std::nullopt},
                                    {"step", std::nullopt},
                                    {"enc.w", std::nullopt},
                                    {"enc.inv_freq", std::nullopt}};
  const Names names = {"scheduler._orig_mod.w", "step", "enc.w", "enc.inv_freq", "dec.inv_freq", "epoch"};
  EXPECT_EQ(sectioned(names, {expected}), " | scheduler.w step enc.w enc.inv_freq | 4 5");
  EXPECT_EQ(sectioned(names), " | enc.w enc.inv_freq dec.inv_freq | 0 1 5");
  EXPECT_EQ(sectioned({"enc.w", "enc.rotary_emb.inv_freq", "enc.rotary_pos_emb.inv_freq"}),
            " | enc.w enc.rotary_pos_emb.inv_freq | 1");
}

TEST(SectionedNames, NamesWhatMayBeWeightsBesideTheModel) {
  TempFolder folder;
  const std::vector<MadeTensor> tensors = {
      {"enc.w", {2}},
      {"scheduler.w", {3}},
      {"train_state.x", {1}},
      {"optim.state.enc.w.mine", {5}},
      {"data_loader:optimizer.x", {6}},
      {"state.enc.w.exp_avg", {4}},
      {"enc.inv_freq", {7}},
      {"extra_states.enc.w", {8}},
  };
  EXPECT_EQ(sectioned_names(*made_store(folder, tensors)).floats_beside, (std::vector<i64>{1, 2, 4, 7}));
}

// No dicts are known here, as of rank files that were joined elsewhere: the names of the folder decide.
TEST(SectionedNames, LeavesTheFrontBehindWhichTheNamesOfTheFolderAre) {
  const ExpectedTensors expected = {
      {"bert.a.w", std::nullopt}, {"bert.b.w", std::nullopt}, {"cls.w", std::nullopt}};
  const std::pair<Names, std::string> kCases[] = {
      {{"model.bert.a.w", "model.bert.b.w", "model.cls.w"}, "model. | bert.a.w bert.b.w cls.w |"},
      {{"net.model.bert.a.w", "net.model.bert.b.w"}, "net.model. | bert.a.w bert.b.w |"},
      {{"bert.a.w", "bert.b.w"}, " | bert.a.w bert.b.w |"},
      {{"module.bert.a.w", "loss.w"}, " | module.bert.a.w loss.w |"},
      // TRL: a model inside of another one. Two of them, or a part of one, are not known to be the model.
      {{"v_head.w", "pre.bert.a.w", "pre.bert.b.w", "pre.cls.w"}, " | v_head.w bert.a.w bert.b.w cls.w |"},
      {{"v_head.w", "pre.bert.a.w", "pre.bert.b.w"}, " | v_head.w pre.bert.a.w pre.bert.b.w |"},
      {{"v.bert.a.w", "v.bert.b.w", "v.cls.w", "p.bert.a.w", "p.bert.b.w", "p.cls.w"},
       " | v.bert.a.w v.bert.b.w v.cls.w p.bert.a.w p.bert.b.w p.cls.w |"},
      {{"cls.w", "pre.bert.a.w", "pre.bert.b.w", "pre.cls.w"},
       " | cls.w pre.bert.a.w pre.bert.b.w pre.cls.w |"},
      // One name by chance decides nothing.
      {{"model.lm_head.w", "model.bert.a.w", "model.x.w"}, "model. | lm_head.w bert.a.w x.w |"},
  };
  for (const auto& [names, text] : kCases) EXPECT_EQ(sectioned(names, {expected}), text);
  EXPECT_EQ(sectioned({"model.bert.a.w", "model.bert.b.w"}), " | model.bert.a.w model.bert.b.w |");
}

TEST(SectionedNames, RemovesWrappersOfModules) {
  const std::pair<std::string, std::string> kCases[] = {
      {"_orig_mod.lm_head.weight", " | lm_head.weight |"},
      {"module.lm_head.weight", "module. | lm_head.weight |"},
      {"_orig_mod.module.lm_head.weight", "module. | lm_head.weight |"},
      {"module._orig_mod.lm_head.weight", "module. | lm_head.weight |"},
      {"module.module.lm_head.weight", "module.module. | lm_head.weight |"},
      {"model.module.model.norm.weight", "model.module. | model.norm.weight |"},
      {"model.layers.0._orig_mod._checkpoint_wrapped_module.mlp.w", " | model.layers.0.mlp.w |"},
      {"_fsdp_wrapped_module.model.layers.0._fsdp_wrapped_module.mlp.w", " | model.layers.0.mlp.w |"},
      {"model.layers.0._orig_mod.module.mlp.w", " | model.layers.0.mlp.w |"},
      // Only whole parts of names are wrappers, and `module` only in front of everything.
      {"model.my_orig_mod.w", " | model.my_orig_mod.w |"},
      {"encoder.module.w", " | encoder.module.w |"},
      // An empty part is not a wrapper.
      {".weight", " | .weight |"},
      {"./a", " | ./a |"},
      {"._orig_mod.a..b.", " | .a..b. |"},
      {"_orig_mod..a", " | .a |"},
  };
  for (const auto& [name, expected] : kCases) EXPECT_EQ(sectioned({name}), expected);
  EXPECT_EQ(sectioned({"module.w", "head.w"}), " | module.w head.w |");
  EXPECT_EQ(sectioned({".a", "a"}), " | .a a |");
}

TEST(SectionedNames, TakesOneOfTwoEqualTensorsThatBecomeOneName) {
  TempFolder folder;
  std::vector<MadeTensor> tensors = {{"model.layers.0.w", {3, 2}, 5},
                                     {"model.layers.0._orig_mod.w", {3, 2}, 5, {1}}};
  SectionedNames s = sectioned_names(*made_store(folder, tensors));
  ASSERT_EQ(s.model.size(), 1u);
  EXPECT_EQ(s.model[0].tensor, 0);
  EXPECT_EQ(s.beside, std::vector<i64>{1});

  tensors[1].first = 6;
  std::string told = thrown_by([&] { sectioned_names(*made_store(folder, tensors)); });
  EXPECT_EQ(told.substr(0, 6), "MC2005") << told;
  EXPECT_NE(told.find("model.layers.0._orig_mod.w"), told.npos) << told;
}

TEST(SectionedNames, RefusesWhatIsNoModelOfItsOwn) {
  const std::tuple<const char*, std::string, std::string> kCases[] = {
      {"MC1224", "base_model.model.model.layers.0.mlp.up_proj.weight", "PEFT"},
      {"MC1224", "model.layers.0.mlp.up_proj.lora_A.default.weight", "PEFT"},
      {"MC1224", "model.layers.0.mlp.up_proj.base_layer.weight", "PEFT"},
      {"MC1224", "_fsdp_wrapped_module._flat_param", "flat parameter"},
      {"MC1113", "rank_0:lm_head.weight", "different values"},
      {"MC1112", "optimizer.state.lm_head.weight.exp_avg", "no tensors of a model"},
      {"MC1112", "state.model.norm.weight.exp_avg", "no tensors of a model"},
  };
  for (const auto& [code, name, text] : kCases) {
    TempFolder folder;
    std::string told = thrown_by([&, &name = name] { sectioned_names(*made_store(folder, {{name, {2}}})); });
    EXPECT_EQ(told.substr(0, 6), code) << told;
    EXPECT_NE(told.find(text), told.npos) << told;
  }
  TempFolder folder;
  std::string told = thrown_by([&] {
    sectioned_names(*made_store(folder, {{"a.pt:w", {2}}, {"b.pt:v", {2}}}));
  });
  EXPECT_EQ(told.substr(0, 6), "MC2005") << told;
}

}  // namespace model_section_test
}  // namespace mckpt::impl
