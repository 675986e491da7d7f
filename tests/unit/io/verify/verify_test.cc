#include "io/verify/verify.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/table_store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

using Piece = TableStore::Piece;

// "coverage fail MC1304 w: message", one line a finding; "" when the store is sound.
std::string problems(const Store& store, int threads = 2) {
  VerifyReport report = verify_store(store, threads, [](i64) {});
  std::string out;
  for (std::size_t f = 0; f < report.findings.size(); f++) {
    const Check& check = report.checks[report.check_of[f]];
    const Finding& finding = report.findings[f];
    out += cat(check.name, " ", status_name(check.status), " ", code_name(finding.code), " ", finding.tensor,
               ": ", finding.message, "\n");
  }
  EXPECT_EQ(report.sound(), out.find(" fail ") == std::string::npos);
  return out;
}

const Check& check(const VerifyReport& report, std::string_view name) {
  for (const Check& c : report.checks)
    if (c.name == name) return c;
  throw Error(Code::kInternal, "no such check");
}

class Verify : public ::testing::Test {
 protected:
  // One byte an item, in a file of its own.
  void add(std::string name, std::vector<i64> dims, const std::string& bytes, DType dtype = DType::kU8) {
    folder.put(name, bytes);
    i32 file = store.add_file(name, static_cast<i64>(bytes.size()));
    std::vector<i64> zeros(dims.size());
    store.tensors.push_back({name, dtype, dims, {{zeros, dims, {.file = file, .dtype = dtype}}}});
  }

  TempFolder folder;
  TableStore store{folder.path()};
};

TEST_F(Verify, FindsNothingWrongWithASoundStore) {
  add("a", {2, 3}, "123456");
  add("b", {}, "1");
  EXPECT_EQ(problems(store), "");
  VerifyReport report = verify_store(store, 1, [](i64) {});
  EXPECT_EQ(check(report, "files").count, 2);
  EXPECT_EQ(check(report, "values").count, 7);
  EXPECT_EQ(check(report, "values").status, Check::Status::kPass);
  EXPECT_EQ(check(report, "crc32").status, Check::Status::kNone);
}

TEST_F(Verify, NamesHolesAndOverlapsAndStillReadsTheRest) {
  add("w", {4}, "1234");
  store.tensors[0].pieces[0].sizes = {3};
  add("v", {4}, "1234");
  store.tensors[1].pieces.push_back(store.tensors[1].pieces[0]);
  add("nan", {1}, "\xff", DType::kF8E8M0);
  EXPECT_EQ(problems(store),
            "coverage fail MC1304 w: a hole: no chunk covers offsets [3], sizes [1]\n"
            "coverage fail MC1305 v: chunks 0 and 1 overlap: offsets [0], sizes [4]\n"
            "values fail MC1008 nan: 1 x NaN, first at [0]\n");
}

TEST_F(Verify, TellsAFileThatIsGoneOrChanged) {
  add("a", {2}, "12");
  add("b", {2}, "12");
  std::filesystem::remove(folder.at("a"));
  folder.put("b", "123");
  std::string found = problems(store);
  EXPECT_NE(found.find("files fail MC1001"), std::string::npos);
  EXPECT_NE(found.find("files fail MC1002 : the file was changed since it was looked at"), std::string::npos);
}

TEST_F(Verify, TellsChunksOfAnotherType) {
  add("a", {2}, "12");
  store.tensors[0].pieces[0].data.dtype = DType::kI8;
  EXPECT_NE(problems(store).find("items fail MC1103 a: a chunk has another data type"), std::string::npos);
}

TEST_F(Verify, TellsWhereNaNAndInfinitiesAre) {
  std::string bytes(2 * 600 * 1000, '\0');
  auto set = [&](std::size_t item, char low, char high) {
    bytes[2 * item] = low, bytes[2 * item + 1] = high;
  };
  set(599'999, '\xc0', '\x7f');
  set(1000, '\x80', '\xff');
  set(2003, '\x80', '\x7f');
  add("w", {600, 1000}, bytes, DType::kBF16);
  EXPECT_EQ(problems(store),
            "values fail MC1008 w: 1 x NaN, first at [599, 999], 2 x infinity, first at [1, 0]\n");
}

// Ranges of clipping that were never set are open; an infinity of the other sign, or beside numbers, is none.
TEST_F(Verify, TakesOpenRangesOfClipping) {
  const std::string minus("\x80\xff", 2), plus("\x80\x7f", 2), one("\x80\x3f", 2), nan("\xc0\x7f", 2);
  add("layers.0.q_proj.input_min", {}, minus, DType::kBF16);
  add("layers.0.q_proj.output_max", {1}, plus, DType::kBF16);
  add("layers.q_proj.input_max", {2}, plus + plus, DType::kBF16);
  EXPECT_EQ(problems(store), "");
  add("layers.1.q_proj.input_min", {}, plus, DType::kBF16);
  add("layers.1.q_proj.input_max", {}, minus, DType::kBF16);
  add("layers.1.q_proj.output_min", {}, nan, DType::kBF16);
  add("layers.2.q_proj.output_max", {2}, plus + one, DType::kBF16);
  add("layers.1.q_proj.max", {}, plus, DType::kBF16);
  EXPECT_EQ(problems(store),
            "values fail MC1008 layers.1.q_proj.input_min: 1 x infinity, first at []\n"
            "values fail MC1008 layers.1.q_proj.input_max: 1 x infinity, first at []\n"
            "values fail MC1008 layers.1.q_proj.output_min: 1 x NaN, first at []\n"
            "values fail MC1008 layers.2.q_proj.output_max: 1 x infinity, first at [0]\n"
            "values fail MC1008 layers.1.q_proj.max: 1 x infinity, first at []\n");
}

TEST_F(Verify, TellsExpertsThatAreEqual) {
  add("layers.0.experts.0.w", {4}, "abcd");
  add("layers.0.experts.1.w", {4}, "efgh");
  add("layers.0.experts.2.w", {4}, "abcd");
  add("layers.0.experts.3.w", {4}, std::string(4, '\0'));
  add("layers.0.experts.4.w", {4}, std::string(4, '\0'));
  add("layers.1.experts.0.w", {4}, "abcd");
  add("layers.2.mlp.experts.fused", {3, 2, 2}, "xyzwabcdxyzw");
  add("layers.2.mlp.experts.bias", {2, 2}, "xyxy");
  // Scales and shapes of quantised weights are often equal; codes are not.
  for (int e : {0, 1}) {
    for (const char* part :
         {"weight_scale_inv", "weight_shape", "weight_scale", "weight_scale_2", "input_scale"})
      add(cat("layers.3.experts.", e, ".up_proj.", part), {4}, "mnop");
    add(cat("layers.3.experts.", e, ".up_proj.weight"), {4}, e == 0 ? "qrst" : "qrsu");
  }
  add("layers.4.mlp.experts.down_proj_scales", {2, 2, 1}, "mnmn");
  add("layers.4.mlp.experts.down_proj_scale_inv", {2, 2, 1}, "mnmn");
  EXPECT_EQ(problems(store),
            "experts warn MC1009 layers.0.experts.*.w: experts 0, 2 have the same bytes\n"
            "experts warn MC1009 layers.2.mlp.experts.fused: experts 0, 2 have the same bytes\n");
}

TEST_F(Verify, TellsEqualExpertsByMegatronsNames) {
  // Both ways in which Megatron names an expert, in a model and in its optimizer's states.
  for (const char* front :
       {"model.module.decoder.layers.0.mlp.experts.", "mp_rank_00/model.mtp.layers.1.experts."}) {
    std::string experts(front);
    for (const char* leaf :
         {"linear_fc1.weight*_w", "linear_fc2.weight*", "linear_fc1.bias*", "linear_fc1.weight*_v.exp_avg"})
      for (int e : {2, 10, 11}) {
        std::string name = experts + leaf;
        add(name.replace(name.find('*'), 1, std::to_string(e)), {4}, e == 11 ? "efgh" : "abcd");
      }
    for (int e : {0, 1}) add(cat(experts, "local_experts.", e, ".linear_fc2.weight"), {4}, "abcd");
  }
  // No number of an expert: what the older grouped MLP calls its two weights, one number for each tensor,
  // words.
  for (int e : {1, 2}) {
    add(cat("layers.0.mlp.experts.weight", e), {4}, "abcd");
    add(cat("layers.0.mlp.experts.linear_fc1.weight", e, ".step"), {}, "s");
    add(cat("layers.0.mlp.my_linear_fc1.weight", e), {4}, "abcd");
    add(cat("layers.0.mlp.experts.linear_fc1.weight", e, "x"), {4}, "abcd");
  }
  std::string expected;
  for (const char* front :
       {"model.module.decoder.layers.0.mlp.experts.", "mp_rank_00/model.mtp.layers.1.experts."}) {
    for (const char* leaf :
         {"linear_fc1.bias*", "linear_fc1.weight*_v.exp_avg", "linear_fc1.weight*_w", "linear_fc2.weight*"})
      expected += cat("experts warn MC1009 ", front, leaf, ": experts 2, 10 have the same bytes\n");
    expected += cat("experts warn MC1009 ", front,
                    "local_experts.*.linear_fc2.weight: experts 0, 1 have the same bytes\n");
  }
  EXPECT_EQ(problems(store), expected);
}

TEST_F(Verify, TellsEqualExpertsOfStackedLayersApart) {
  add("decoder.layers.mlp.experts.experts.linear_fc1.weight", {2, 3, 2, 1},
      "abcdab"
      "abefcd");
  add("decoder.layers.mlp.experts.experts.linear_fc1.bias", {2, 3, 2},
      "abcdef"
      "abcdef");
  EXPECT_EQ(
      problems(store),
      "experts warn MC1009 decoder.layers.mlp.experts.experts.linear_fc1.weight (layer 0): experts 0, 2 have "
      "the same bytes\n");
}

// A store that keeps a CRC-32 of its one file.
class Summed final : public Store {
 public:
  Summed(std::string root, std::string name, i64 bytes, u32 crc) : crc_(crc) {
    root_ = std::move(root);
    files_.push_back({std::move(name), bytes});
  }
  i64 tensor_count() const override { return 0; }
  std::string_view name(i64) const override { return ""; }
  DType dtype(i64) const override { return DType::kU8; }
  std::span<const i64> dims(i64) const override { return {}; }
  i64 chunk_count(i64) const override { return 0; }
  Chunk chunk(i64, i64) const override { return {}; }
  ChunkData resolve(i64, i64) const override { return {}; }
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override {
    visit({.file = 0, .offset = 3, .bytes = files_[0].bytes - 3, .crc32 = crc_, .name = "data/0"});
  }

 private:
  u32 crc_;
};

TEST_F(Verify, ChecksSumsOfRecordsOfAnyLength) {
  for (std::size_t size : {3u, 10u, 70'000'003u}) {
    std::string bytes(size, 'x');
    for (std::size_t i = 0; i < size; i += 997) bytes[i] = static_cast<char>(i);
    folder.put("f", bytes);
    u32 crc = crc32(0, {reinterpret_cast<const u8*>(bytes.data()) + 3, size - 3});
    EXPECT_EQ(problems(Summed(folder.path(), "f", static_cast<i64>(size), crc)), "");
    if (size == 3) continue;
    bytes[size - 1] ^= 1;
    folder.put("f", bytes);
    EXPECT_NE(problems(Summed(folder.path(), "f", static_cast<i64>(size), crc)).find("crc32 fail MC1203"),
              std::string::npos);
  }
}

TEST_F(Verify, SortsWhatTheOpenerFoundIntoItsChecks) {
  store.add_finding({.code = Code::kShardMissing, .message = "gone"});
  store.add_finding({.code = Code::kBadTotalSize, .message = "odd", .warning = true});
  store.add_finding({.code = Code::kBadHeader, .message = "bad"});
  EXPECT_EQ(problems(store), "files fail MC1106 : gone\nindex warn MC1109 : odd\nformat fail MC1102 : bad\n");
}

// The first tensor takes longest, so that threads find the last ones first.
class LateFirst final : public TableStore {
 public:
  using TableStore::TableStore;
  bool damaged_headers = false;
  ChunkData resolve(i64 t, i64 i) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(t + i == 0 ? 60 : t + i == 1 ? 30 : 0));
    if (damaged_headers) throw Error(t % 2 == 0 ? Code::kNotFound : Code::kItemMismatch, cat("chunk ", i));
    return TableStore::resolve(t, i);
  }
};

TEST_F(Verify, TellsDamagedHeadersInOneOrderForAnyNumberOfThreads) {
  LateFirst late(folder.path());
  folder.put("f", "1234");
  late.add_file("f", 4);
  for (i64 t = 0; t < 8; t++)
    late.tensors.push_back({cat("t", t),
                            DType::kU8,
                            {2},
                            {{{0}, {1}, {.file = 0, .offset = 0}}, {{1}, {1}, {.file = 0, .offset = 1}}}});
  late.damaged_headers = true;
  EXPECT_EQ(problems(late, 8), problems(late, 1));
  EXPECT_NE(problems(late, 8).find("MC1001 t0: chunk 0"), std::string::npos);
}

TEST_F(Verify, TellsTheFirstOfWhatCannotBeReadForAnyNumberOfThreads) {
  LateFirst late(folder.path());
  folder.put("f", "1234");
  late.add_file("f", 4);
  // Each chunk is read on its own, and is outside of the file at a place of its own.
  i64 half = 16 << 20;
  for (i64 t = 0; t < 4; t++)
    late.tensors.push_back(
        {cat("t", t),
         DType::kU8,
         {2 * half},
         {{{0}, {half}, {.file = 0, .offset = 5}}, {{half}, {half}, {.file = 0, .offset = 7}}}});
  auto told = [&](int threads) {
    std::string out;
    for (const Finding& f : verify_store(late, threads, [](i64) {}).findings)
      out += cat(f.tensor, " ", f.message, " ", f.offset, "\n");
    return out;
  };
  std::string alone = told(1);
  EXPECT_NE(alone, "");
  EXPECT_EQ(told(8), alone);
}

}  // namespace
}  // namespace mckpt::impl
