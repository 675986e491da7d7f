#include "mckpt/checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>

#include "mckpt/conversion.h"
#include "mckpt/error.h"
#include "mckpt/verify.h"
#include "tests/support/temp_folder.h"

namespace mckpt {
namespace api_checkpoint_test {

const std::string kModel = MCKPT_TEST_DATA "/models/tiny_qwen3_moe";
const std::string kQuery = "model.layers.0.self_attn.q_proj.weight";  // [32, 16] of bfloat16

// The code of the error that fn throws, or "".
template <typename Fn>
std::string code_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

std::vector<std::uint16_t> values(const std::vector<std::byte>& bytes) {
  std::vector<std::uint16_t> out(bytes.size() / 2);
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

TEST(ApiCheckpoint, DescribesWhatItOpened) {
  Checkpoint model = open(kModel);
  EXPECT_EQ(model.format(), "safetensors folder");
  EXPECT_EQ(model.tensor_count(), 45);
  EXPECT_EQ(model.names("*layers.0.self_attn.?_proj.weight").size(), 4u);
  EXPECT_TRUE(model.has(kQuery));
  EXPECT_FALSE(model.has("q_proj"));
  Tensor t = model.tensor(kQuery);
  EXPECT_EQ(t.dtype, "bfloat16");
  EXPECT_EQ(t.shape, (std::vector<std::int64_t>{32, 16}));
  EXPECT_EQ(t.bytes, 1024);
  std::vector<TensorChunk> chunks = model.chunks(kQuery);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].file, "model-00001-of-00002.safetensors");
  EXPECT_EQ(chunks[0].bytes, 1024);
  EXPECT_TRUE(model.findings().empty());
}

TEST(ApiCheckpoint, ReadsEverySliceAsItsPartOfTheWhole) {
  Checkpoint model = open(kModel);
  std::vector<std::uint16_t> whole = values(model.read(kQuery));
  ASSERT_EQ(whole.size(), 32u * 16u);
  for (int a = 0; a < 32; a += 5)
    for (int b = a; b <= 32; b += 7)
      for (int c = 0; c < 16; c += 3)
        for (int d = c; d <= 16; d += 4) {
          std::string slice = "[" + std::to_string(a) + ":" + std::to_string(b) + ", " + std::to_string(c) +
                              ":" + std::to_string(d) + "]";
          std::vector<std::uint16_t> expected;
          for (int row = a; row < b; row++)
            for (int column = c; column < d; column++) expected.push_back(whole[row * 16 + column]);
          EXPECT_EQ(values(model.read(kQuery, slice)), expected) << slice;
        }
}

TEST(ApiCheckpoint, ReadsSlicesOfFourDimensions) {
  constexpr int kDims[] = {2, 3, 4, 5};
  std::string header = R"({"w":{"dtype":"U8","shape":[2,3,4,5],"data_offsets":[0,120]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header;
  for (int i = 0; i < 120; i++) file += static_cast<char>(i);
  impl::TempFolder t;
  Checkpoint c = open(t.put("w.safetensors", file));
  // Every choice of: all indexes, without the first, without the last, one.
  for (int choice = 0; choice < 256; choice++) {
    int begin[4], end[4];
    std::string slice;
    for (int d = 0; d < 4; d++) {
      int how = choice >> (2 * d) & 3;
      begin[d] = how == 1 || how == 3 ? 1 : 0;
      end[d] = how == 2 ? kDims[d] - 1 : how == 3 ? 2 : kDims[d];
      slice += (d ? "," : "") + std::to_string(begin[d]) + ":" + std::to_string(end[d]);
    }
    std::vector<std::byte> expected;
    for (int a = begin[0]; a < end[0]; a++)
      for (int b = begin[1]; b < end[1]; b++)
        for (int row = begin[2]; row < end[2]; row++)
          for (int column = begin[3]; column < end[3]; column++)
            expected.push_back(static_cast<std::byte>(((a * 3 + b) * 4 + row) * 5 + column));
    EXPECT_EQ(c.read("w", slice), expected) << slice;
  }
}

TEST(ApiCheckpoint, DropsTheDimensionOfASingleIndex) {
  Checkpoint model = open(kModel);
  std::vector<std::uint16_t> whole = values(model.read(kQuery));
  EXPECT_EQ(model.sliced(kQuery, "-1").shape, (std::vector<std::int64_t>{16}));
  EXPECT_EQ(values(model.read(kQuery, "[3, 5]")), (std::vector<std::uint16_t>{whole[3 * 16 + 5]}));
  EXPECT_EQ(model.sliced(kQuery, "[3, 5]").shape.size(), 0u);
}

TEST(ApiCheckpoint, ReadsShardsAsOneTensor) {
  impl::TempFolder t;
  Conversion made = plan(ToFsdp{.source = kModel, .target = t.path() + "/ckpt", .grid = {.tp = 2, .dp = 2}});
  made.run();
  Checkpoint view = open_as_fsdp(t.path() + "/ckpt");
  const std::string key = "model.module.decoder.layers.0.self_attention.linear_proj.weight";
  Checkpoint model = open(kModel);
  EXPECT_GT(view.chunks(key).size(), 1u);
  std::vector<Object> objects = open(t.path() + "/ckpt").objects();
  ASSERT_FALSE(objects.empty());
  for (const Object& o : objects) EXPECT_NE(o.summary, "") << o.name;
  EXPECT_EQ(view.read(key), model.read("model.layers.0.self_attn.o_proj.weight"));
  EXPECT_EQ(view.digest(key), model.digest("model.layers.0.self_attn.o_proj.weight"));
  EXPECT_EQ(view.read(key, "[3:11, 7:29]"),
            model.read("model.layers.0.self_attn.o_proj.weight", "[3:11, 7:29]"));
}

TEST(ApiCheckpoint, GivesTheStatisticsOfASlice) {
  Checkpoint c = open(kModel);
  Statistics whole = c.statistics("model.norm.weight"), all = c.slice_statistics("model.norm.weight", "");
  EXPECT_EQ(all.min, whole.min);
  EXPECT_EQ(all.max, whole.max);
  EXPECT_EQ(all.mean, whole.mean);
  EXPECT_EQ(all.deviation, whole.deviation);
  EXPECT_EQ(all.l2, whole.l2);
  Statistics one = c.slice_statistics("model.norm.weight", "[3]");
  EXPECT_EQ(one.numbers, 1);
  EXPECT_EQ(one.min, one.max);
  EXPECT_EQ(one.deviation, 0);
}

TEST(ApiCheckpoint, CountsAndMeasuresNumbers) {
  Statistics s = open(kModel).statistics("model.norm.weight", 2);
  EXPECT_EQ(s.numbers, 16);
  EXPECT_NEAR(s.l2, 3.9771514636292693, 1e-12);
  EXPECT_EQ(s.finite, 16);
  EXPECT_GT(s.min, 0.5);
  EXPECT_GT(s.max, s.mean);
  EXPECT_GT(s.mean, s.min);
}

TEST(ApiCheckpoint, NoticesAFileThatChanges) {
  impl::TempFolder t;
  std::filesystem::copy(kModel, t.path() + "/model");
  Checkpoint model = open(t.path() + "/model");
  std::vector<std::byte> before = model.read(kQuery);
  std::string file = t.path() + "/model/model-00001-of-00002.safetensors";
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put(7);
  EXPECT_EQ(code_of([&] { model.read(kQuery); }), "MC1002");
  EXPECT_EQ(open(t.path() + "/model").read(kQuery), before);
}

TEST(ApiCheckpoint, FollowsLinksOutOfTheFolderOnlyIfToldTo) {
  impl::TempFolder t;
  t.put("model/config.json", "{}");
  std::filesystem::create_symlink(kModel + "/model-00001-of-00002.safetensors",
                                  t.path() + "/model/model.safetensors");
  EXPECT_EQ(code_of([&] { open(t.path() + "/model"); }), "MC1004");
  EXPECT_TRUE(open(t.path() + "/model", {.follow_links = true}).has(kQuery));
  EXPECT_FALSE(verify(t.path() + "/model").sound);
  EXPECT_TRUE(verify(t.path() + "/model", {.files = {.follow_links = true}}).sound);
}

TEST(ApiCheckpoint, RefusesByTheNearestName) {
  Checkpoint model = open(kModel);
  try {
    model.read("model.norm.weigth");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), Status::kDifferent);  // "is there such a tensor?" is answered with no
    ASSERT_EQ(e.facts().notes.size(), 1u);
    EXPECT_NE(e.facts().notes[0].find("model.norm.weight"), std::string::npos) << e.facts().notes[0];
  }
  EXPECT_EQ(code_of([&] { model.read(kQuery, "[99]"); }), "MC0001");
  std::vector<std::byte> small(7);
  EXPECT_EQ(code_of([&] { model.read_into(kQuery, "", small); }), "MC0001");
  EXPECT_EQ(code_of([] { open("/nowhere/at/all"); }), "MC1001");
}

}  // namespace api_checkpoint_test
}  // namespace mckpt
