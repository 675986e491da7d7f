#include "mckpt/conversion.h"

#include <gtest/gtest.h>

#include <atomic>

#include "mckpt/error.h"
#include "mckpt/verify.h"
#include "tests/support/temp_folder.h"

namespace mckpt {
namespace api_conversion_test {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";

template <typename Fn>
ErrorFacts error_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.facts();
  }
  return {};
}

// Changes the last of these bytes where the file has them.
void flip_in_file(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ifstream in(path, std::ios::binary);
  std::string all(std::istreambuf_iterator<char>(in), {});
  std::size_t at = all.find(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  ASSERT_NE(at, all.npos);
  all[at + bytes.size() - 1] ^= 1;
  std::ofstream(path, std::ios::binary) << all;
}

bool is_there(const std::string& path) { return std::filesystem::exists(path); }

TEST(ApiConversion, IsAValueUntilItRuns) {
  impl::TempFolder t;
  std::string target = t.path() + "/ckpt";
  Conversion c = plan(ToFsdp{.source = kModel, .target = target, .grid = {.tp = 2, .ep = 2}}, 2);
  EXPECT_EQ(c.path(), target + "/release");
  EXPECT_FALSE(c.outputs().empty());
  const Account& account = c.prove(2);
  EXPECT_EQ(account.tensors_in, 45);
  EXPECT_EQ(account.invented, 0);
  EXPECT_EQ(account.tensors_out, account.copied + account.fused + account.split);
  EXPECT_FALSE(is_there(target));
  RunReport done = c.run({.threads = 2});
  EXPECT_TRUE(is_there(done.output + "/.metadata"));
  EXPECT_EQ(done.bytes_read, 7408 * 2);  // every byte of the model once
}

TEST(ApiConversion, GoesRoundThroughAllFormats) {
  impl::TempFolder t;
  plan(ToFsdp{.source = kModel, .target = t.path() + "/a", .grid = {.tp = 2, .ep = 2}, .iteration = 7}).run();
  plan(Reshard{.source = t.path() + "/a", .target = t.path() + "/b", .grid = {.etp = 1, .dp = 3}}).run();
  plan(ToMcore{.source = t.path() + "/b",
               .target = t.path() + "/core",
               .grid = {.tp = 2, .ep = 2, .pp = 2},
               .vpp = 1,
               .first_stage_layers = 1})
      .run();
  plan(ToHf{.source = t.path() + "/core", .target = t.path() + "/hf", .max_shard_size = 20'000}).run();
  EXPECT_TRUE(is_there(t.path() + "/b/iter_0000007"));
  EXPECT_TRUE(is_there(t.path() + "/core/iter_0000007/common.pt"));
  EXPECT_EQ(compare(t.path() + "/hf", kModel).equal, true);
  plan(ToPt{.source = t.path() + "/hf", .target = t.path() + "/model.pt"}).run();
  plan(PtToSafetensors{.source = t.path() + "/model.pt", .target = t.path() + "/model.safetensors"}).run();
  Checkpoint one = open(t.path() + "/model.safetensors"), first = open(kModel);
  ASSERT_EQ(one.names(), first.names());
  for (const std::string& name : one.names()) EXPECT_EQ(one.read(name), first.read(name)) << name;
}

// A size that is given splits at that size, also the usual one; without a size the files are the original ones.
TEST(ApiConversion, ASizeThatIsGivenIsNotTheSizeThatIsLeftOut) {
  impl::TempFolder t;
  plan(ToFsdp{.source = kModel, .target = t.path() + "/ckpt"}).run();
  plan(ToHf{.source = t.path() + "/ckpt", .target = t.path() + "/like"}).run();
  EXPECT_TRUE(is_there(t.path() + "/like/model-00002-of-00002.safetensors"));
  plan(ToHf{.source = t.path() + "/ckpt", .target = t.path() + "/usual", .max_shard_size = kUsualShardSize})
      .run();
  EXPECT_TRUE(is_there(t.path() + "/usual/model.safetensors"));
  EXPECT_FALSE(is_there(t.path() + "/usual/model-00002-of-00002.safetensors"));
}

TEST(ApiConversion, TakesCheckpointsWithTheModelsOwnNames) {
  impl::TempFolder t;
  std::string dcp = t.path() + "/dcp", one = t.path() + "/one.safetensors",
              half = t.path() + "/half.safetensors";
  plan(ToDcp{.source = kModel, .target = dcp, .dp = 3, .section = "app.model"}).run();
  EXPECT_EQ(open(dcp).names("*norm.weight").at(0).substr(0, 10), "app.model.");
  EXPECT_EQ(error_of([&] { plan(ToFsdp{.source = dcp, .target = t.path() + "/a"}); }).code, "MC2014");
  Conversion c =
      plan(ToFsdp{.source = dcp, .target = t.path() + "/a", .assets = kModel, .grid = {.ep = 2}}, 2);
  EXPECT_EQ(c.prove().tensors_in, 45);
  EXPECT_EQ(compare(c.run().output, kModel).equal, true);
  EXPECT_EQ(compare(t.path() + "/a", dcp).equal, true);
  plan(ToSafetensors{.source = dcp, .target = one, .assets = kModel}, 2).run();
  plan(ToSafetensors{.source = dcp, .target = half, .dtype_rule = {{"*", "fp16"}}}).run();
  Checkpoint written = open(one), first = open(kModel);
  ASSERT_EQ(written.names().size(), first.names().size());
  for (const std::string& name : first.names()) EXPECT_EQ(written.digest(name), first.digest(name)) << name;
  EXPECT_EQ(open(half).tensor("lm_head.weight").dtype, "float16");
}

TEST(ApiConversion, FindsTheTensorsThatDiffer) {
  impl::TempFolder t;
  plan(ToFsdp{.source = kModel,
              .target = t.path() + "/a",
              .values = {.dtype_rule = {{"*.router.weight", "fp32"}}}})
      .run();
  EXPECT_EQ(compare(t.path() + "/a", kModel).equal, true);  // wider, and bit for bit the same values
  EXPECT_EQ(compare(t.path() + "/a", kModel, {.dtype = "bf16"}).equal, false);
  EXPECT_EQ(
      compare(t.path() + "/a", kModel, {.dtype = "keep", .dtype_rule = {{"*.router.weight", "fp32"}}}).equal,
      true);
  const std::string norm = "model.module.decoder.final_layernorm.weight";
  Checkpoint ckpt = open(t.path() + "/a");
  std::vector<std::byte> values = ckpt.read(norm);
  flip_in_file(t.path() + "/a/release/" + ckpt.chunks(norm).at(0).file, values);
  Report report = compare(t.path() + "/a", kModel);
  EXPECT_EQ(report.equal, false);
  EXPECT_FALSE(report.sound);
  EXPECT_FALSE(report.findings.empty());
}

TEST(ApiConversion, AsksBeforeItReplaces) {
  impl::TempFolder t;
  ToFsdp what{.source = kModel, .target = t.path() + "/ckpt"};
  plan(what).run();
  EXPECT_EQ(error_of([&] { plan(what).run(); }).status, Status::kRefused);
  EXPECT_EQ(error_of([&] { plan(what).check(); }).status, Status::kRefused);
  plan(what).run({.overwrite = true});
  Conversion c = plan(what);
  c.run({.overwrite = true});
  EXPECT_EQ(error_of([&] { c.run({.overwrite = true}); }).code, "MC0001");
}

// Asks to stop at the first report of written bytes.
class Impatient : public Observer {
 public:
  void begin(const std::string& phase, std::int64_t) override { phases.push_back(phase); }
  void done(std::int64_t bytes) override { seen += bytes; }
  bool stop() override { return wants_to_stop; }
  void published() override { is_published = true; }

  std::vector<std::string> phases;
  std::atomic<std::int64_t> seen = 0;
  bool wants_to_stop = false, is_published = false;
};

TEST(ApiConversion, StopsWhenAskedAndResumes) {
  impl::TempFolder t;
  ToFsdp what{.source = kModel, .target = t.path() + "/ckpt", .grid = {.tp = 2}};
  Impatient observer;
  observer.wants_to_stop = true;
  Conversion stopped = plan(what);
  EXPECT_EQ(error_of([&] { stopped.prove(1, &observer); }).status, Status::kInterrupted);
  EXPECT_EQ(observer.phases, std::vector<std::string>{"prove"});
  stopped.prove();
  EXPECT_EQ(error_of([&] { stopped.run({}, &observer); }).status, Status::kInterrupted);
  EXPECT_FALSE(is_there(t.path() + "/ckpt/release"));
  EXPECT_FALSE(observer.is_published);
  observer.wants_to_stop = false;
  plan(what).run({.resume = true}, &observer);
  EXPECT_TRUE(observer.is_published);
  EXPECT_GT(observer.seen, 7408 * 2);  // of copying and comparing
  EXPECT_FALSE(observer.phases.empty());
  EXPECT_EQ(compare(t.path() + "/ckpt", kModel).equal, true);
}

TEST(ApiConversion, RefusesWhatNobodyCanMean) {
  impl::TempFolder t;
  ToFsdp what{.source = kModel, .target = t.path() + "/ckpt"};
  for (int threads : {0, -1, 5000}) {
    EXPECT_EQ(error_of([&] { plan(what, threads); }).expected, "1 to 1024");
    EXPECT_EQ(error_of([&] { plan(ToHf{.source = kModel, .target = "hf"}, threads); }).expected, "1 to 1024");
    EXPECT_EQ(error_of([&] { plan(what).prove(threads); }).expected, "1 to 1024");
    EXPECT_EQ(error_of([&] { plan(what).run({.threads = threads}); }).expected, "1 to 1024");
    EXPECT_EQ(error_of([&] { verify(kModel, {.threads = threads}); }).expected, "1 to 1024");
    EXPECT_EQ(error_of([&] { compare(kModel, kModel, {.threads = threads}); }).expected, "1 to 1024");
  }
  EXPECT_EQ(error_of([&] { plan(what).run({.max_memory = 0}); }).status, Status::kUsage);
  what.fsdp.hybrid_stack_units = true;  // the model is not a hybrid
  EXPECT_EQ(error_of([&] { plan(what); }).code, "MC0203");
  what.fsdp.hybrid_stack_units = false, what.hybrid_pattern = "[*-]";
  EXPECT_EQ(error_of([&] { plan(what); }).code, "MC0205");
  EXPECT_EQ(error_of([] { plan(ToFsdp{.source = kModel}); }).status, Status::kUsage);
  EXPECT_EQ(error_of([&] { plan(ToFsdp{.target = what.target}); }).status, Status::kUsage);
  EXPECT_EQ(error_of([] { plan(ToPt{.source = kModel}).run(); }).status, Status::kUsage);
  EXPECT_FALSE(is_there(what.target));
}

TEST(ApiConversion, WritesValuesOfQuantisedModelsAndCodesOfThem) {
  impl::TempFolder t;
  const std::string source = std::string(MCKPT_TEST_DATA) + "/quantized/deepseek_v3_128";
  Conversion values = plan(Dequantize{.source = source, .target = t.path() + "/values", .dtype = "fp32"});
  EXPECT_EQ(values.prove().dequantized, 36);
  values.run({.sync = false});
  EXPECT_TRUE(compare(values.path(), source, {.dtype = "fp32"}).equal);
  Conversion codes =
      plan(Quantize{.source = values.path(), .target = t.path() + "/codes", .scheme = "fp8-block"});
  EXPECT_EQ(codes.prove().quantized, 72);
  EXPECT_EQ(error_of([&] { plan(Quantize{.source = source, .target = "b", .scheme = "fp8"}); }).found, "fp8");
}

TEST(ApiConversion, NamesTheSettingThatIsWrong) {
  impl::TempFolder t;
  ToFsdp what{.source = kModel, .target = t.path() + "/ckpt"};
  auto of = [](ToFsdp changed) { return error_of([&] { plan(changed); }); };
  ToFsdp dtype = what;
  dtype.values.dtype = "bf61";
  EXPECT_NE(of(dtype).message.find("`dtype`"), std::string::npos);
  EXPECT_EQ(of(dtype).found, "bf61");
  ToFsdp grid = what;
  grid.grid.ep = 3;
  EXPECT_EQ(of(grid).status, Status::kRefused);
  ToFsdp iteration = what;
  iteration.iteration = 0;
  EXPECT_NE(of(iteration).message.find("`iteration`"), std::string::npos);
  EXPECT_NE(error_of([&] {
              plan(Reshard{.source = "a", .target = "b", .weights_only = true, .rank_states = "c"});
            }).message.find("`rank_states`"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { plan(Relayer{.way = "sideways", .source = "a", .target = "b"}); }).found,
            "sideways");
}

}  // namespace api_conversion_test
}  // namespace mckpt
