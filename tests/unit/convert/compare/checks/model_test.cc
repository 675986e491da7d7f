// The check "model" of a Hugging Face folder whose config names another class than its family's table: the
// folders that transformers writes (test_data/own_names/make_heads.py), and the faults of others.
#include "convert/compare/checks/model.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "tests/support/golden_heads.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace model_check_test {

// "pass", or "warn: ...; ..." with the findings.
std::string checked(const std::string& config, const GoldenShapes& tensors) {
  std::string header, data;
  for (const auto& [name, dims] : tensors) {
    const i64 at = std::ssize(data);
    i64 bytes = 4;
    std::string shape;
    for (i64 size : dims) {
      bytes *= size;
      shape += cat(shape.empty() ? "" : ",", size);
    }
    header += cat(header.empty() ? "{" : ",", safetensors_entry(name, "F32", shape, at, at + bytes));
    data += std::string(bytes, '\0');
  }
  TempFolder folder;
  folder.put("config.json", config);
  folder.put("model.safetensors", safetensors_file(header + "}", data));
  VerifyReport report;
  check_model_folder(*open_store(folder.path()), 1, report);
  if (report.checks.size() != 1) return cat(report.checks.size(), " checks");
  const Check& check = report.checks[0];
  std::string out(status_name(check.status));
  for (const Finding& f : report.findings) out += cat("; ", code_name(f.code), " ", f.message);
  return check.note.empty() ? out : cat(out, ": ", check.note);
}

TEST(ModelCheck, PassesWhatTransformersWrites) {
  for (const GoldenHead& model : golden_heads())
    EXPECT_EQ(checked(model.config, model.tensors), "pass") << model.name;
}

// A tensor of the decoder, and each of the head.
TEST(ModelCheck, FailsWithoutATensorOfTheClass) {
  for (const GoldenHead& model : golden_heads())
    for (const auto& [name, dims] : model.tensors) {
      if (name.find("layers.") != name.npos && !name.ends_with("q_proj.weight")) continue;
      GoldenShapes less = model.tensors;
      less.erase(name);
      EXPECT_EQ(checked(model.config, less),
                cat("fail; MC2005 class ", model.name,
                    ": the tensors and the model do not match: 1 missing; missing: ", name));
    }
}

// All tensors of the family's table, but not the tensors of the class that from_pretrained makes.
TEST(ModelCheck, FailsForAnotherHead) {
  const GoldenHead model = golden_heads()[0];
  ASSERT_EQ(model.name, "LlamaForSequenceClassification");
  GoldenShapes other = model.tensors;
  other["lm_head.weight"] = other["model.embed_tokens.weight"];
  EXPECT_EQ(checked(model.config, other),
            "warn; MC2005 the folder has tensors beside those of the class LlamaForSequenceClassification: "
            "lm_head.weight");
  other.erase("score.weight");
  EXPECT_EQ(checked(model.config, other).substr(0, 5), "fail;");
  EXPECT_EQ(checked(model.with_class("LlamaForCausalLM"), other), "pass");
  EXPECT_EQ(checked(model.with_class("LlamaForCausalLM"), model.tensors).substr(0, 5), "fail;");
  GoldenShapes rows = model.tensors;
  rows["score.weight"][0]++;
  EXPECT_EQ(checked(model.config, rows).find("fail; MC2005"), 0u);
}

TEST(ModelCheck, DoesNotJudgeAClassThatNobodyKnows) {
  const GoldenHead model = golden_heads()[0];
  EXPECT_EQ(checked(model.with_class("LlamaForRewardModel"), model.tensors),
            "none: not compared with config.json: no table describes the class LlamaForRewardModel");
}

}  // namespace model_check_test
}  // namespace mckpt::impl
