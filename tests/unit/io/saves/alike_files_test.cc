// Data files that are copies of another one, or could have changed places with it. Folders of two ranks are
// laid out here with values that differ in one point from case to case; the real one is of Megatron-FSDP.
#include "io/saves/alike_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "core/base/error_code.h"
#include "io/dcp/check/check.h"
#include "io/dcp/dcp.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/file/crc32.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace {

// A chunk of floats; `first`: its items count from there, or are all equal to `same`.
struct Piece {
  const char* tensor;
  std::vector<i64> shape;
  i32 rank;
  std::vector<i64> offsets, sizes;
  i64 first;
  float same = 0;
};

std::string data_of(const Piece& p) {
  std::string out;
  for (i64 i = 0; i < Shape(p.sizes).items(); i++) {
    const float item = p.first < 0 ? p.same : static_cast<float>(p.first + i);
    out.append(reinterpret_cast<const char*>(&item), sizeof item);
  }
  return out;
}

// Writes the folder. Without `sums`, each archive has the same one.
void write(const TempFolder& folder, const std::vector<Piece>& pieces, bool sums = true) {
  DcpLayout layout(2);
  std::map<std::string, i32> keys;
  std::string files[2];
  for (const Piece& p : pieces)
    if (!keys.contains(p.tensor))
      keys.emplace(p.tensor,
                   layout.add_key({.name = {p.tensor, {}}, .dtype = DType::kF32, .shape = Shape(p.shape)}));
  for (const Piece& p : pieces) {
    const i64 chunk = layout.add_chunk(keys.at(p.tensor), p.rank, p.offsets, p.sizes);
    const DcpTensorFrame& frame = *layout.chunk(chunk).frame;
    const std::string data = data_of(p);
    std::vector<u8> tail(static_cast<std::size_t>(frame.tail_bytes()));
    const std::span<const u8> bytes(reinterpret_cast<const u8*>(data.data()), data.size());
    frame.write_tail(sums ? crc32(0, bytes) : 7, tail);
    files[p.rank].append(frame.head().begin(), frame.head().end());
    files[p.rank].append(data).append(tail.begin(), tail.end());
  }
  for (i64 r : {0, 1}) folder.put(dcp_file_name(r), files[r]);
  std::string metadata;
  layout.write_metadata([&](std::string_view part) { metadata += part; });
  folder.put(".metadata", metadata);
}

// "problem __1_0.distcp", "warning __1_0.distcp" or "", and the number of files that could have changed
// places.
std::string judged(const std::vector<Piece>& pieces, bool sums = true) {
  TempFolder folder;
  write(folder, pieces, sums);
  std::unique_ptr<Store> store = open_store(folder.path());
  std::string out;
  for (const Finding& f : dcp_damage(*store, CheckedPart::kModel))
    if (f.code == Code::kBadShards) out += cat(f.warning ? "warning " : "problem ", f.file, " ");
  return cat(out, dcp_alike_files(*store));
}

constexpr i64 kSame = -1;  // items that do not vary

TEST(AlikeFiles, AreCopiesIfAllPiecesAreAlikeAndOneVaries) {
  const Piece w0{"w", {4, 3}, 0, {0, 0}, {2, 3}, 100}, w1{"w", {4, 3}, 1, {2, 0}, {2, 3}, 200},
      copied{"w", {4, 3}, 1, {2, 0}, {2, 3}, 100};
  const Piece ones0{"norm", {4}, 0, {0}, {2}, kSame, 1}, ones1{"norm", {4}, 1, {2}, {2}, kSame, 1},
      twos1{"norm", {4}, 1, {2}, {2}, kSame, 2}, norm1{"norm", {4}, 1, {2}, {2}, 300};
  EXPECT_EQ(judged({w0, ones0, w1, ones1}), "2");
  EXPECT_EQ(judged({w0, ones0, copied, ones1}), "problem __1_0.distcp 2");
  EXPECT_EQ(judged({w0, copied}), "problem __1_0.distcp 2");
  EXPECT_EQ(judged({w0, ones0, copied, twos1}), "2");
  EXPECT_EQ(judged({w0, ones0, copied, norm1}), "2");
  EXPECT_EQ(judged({ones0, ones1}), "2");
  EXPECT_EQ(judged({ones0, norm1}), "2");
  // Sums that say nothing: the data decide.
  EXPECT_EQ(judged({w0, ones0, w1, ones1}, false), "2");
  EXPECT_EQ(judged({w0, ones0, copied, ones1}, false), "problem __1_0.distcp 2");
}

TEST(AlikeFiles, HaveEqualLayouts) {
  const Piece w0{"w", {4, 3}, 0, {0, 0}, {2, 3}, 100};
  EXPECT_EQ(judged({w0, {"w", {4, 3}, 1, {2, 0}, {1, 3}, 100}}), "0");  // another shape in as many bytes
  EXPECT_EQ(judged({w0, {"w", {4, 3}, 1, {2, 0}, {2, 3}, 100}, {"b", {2}, 1, {0}, {2}, 1}}), "0");
}

// Experts, layers and tied tensors may have the same values.
TEST(AlikeFiles, AreNoCopiesForCertainIfTheyHaveOtherTensors) {
  auto pair = [](const char* name, std::vector<i64> shape, std::vector<i64> at, std::vector<i64> sizes) {
    return std::vector<Piece>{{name, shape, 0, std::vector<i64>(shape.size(), 0), sizes, 100},
                              {name, shape, 1, at, sizes, 100}};
  };
  EXPECT_EQ(judged({{"experts.0.w", {2, 3}, 0, {0, 0}, {2, 3}, 100},
                    {"experts.1.w", {2, 3}, 1, {0, 0}, {2, 3}, 100}}),
            "warning __1_0.distcp 2");
  EXPECT_EQ(judged(pair("decoder.layers.mlp.linear_fc1.weight", {2, 4, 3}, {1, 0, 0}, {1, 4, 3})),
            "warning __1_0.distcp 2");
  EXPECT_EQ(judged(pair("decoder.layers.mlp.linear_fc1.weight", {2, 4, 3}, {0, 2, 0}, {2, 2, 3})),
            "problem __1_0.distcp 2");
  EXPECT_EQ(judged(pair("decoder.layers.input_layernorm.weight", {2, 4}, {1, 0}, {1, 4})),
            "warning __1_0.distcp 2");
  EXPECT_EQ(judged(pair("layers.0.experts.w1_bias", {2, 4}, {1, 0}, {1, 4})), "warning __1_0.distcp 2");
  EXPECT_EQ(judged(pair("model.layers.0.mlp.up_proj.weight", {4, 3}, {2, 0}, {2, 3})),
            "problem __1_0.distcp 2");
}

TEST(AlikeFiles, OfARealSaveAreFoundIfOneIsACopy) {
  TempFolder folder;
  const std::string path = folder.at("saved");
  std::filesystem::copy(cat(MCKPT_TEST_DATA, "/dcp/uneven_tp2dp2"), path);
  EXPECT_EQ(dcp_alike_files(*open_store(path)), 2);
  std::filesystem::copy(path + "/__2_0.distcp", path + "/__3_0.distcp",
                        std::filesystem::copy_options::overwrite_existing);
  const std::vector<Finding> findings = verify_store(*open_store(path), 2, [](i64) {}).findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(cat(findings[0].file, " ", findings[0].rank, " ", findings[0].message),
            "__3_0.distcp 3 the file has the same weights as __2_0.distcp, and each rank has others: one of "
            "the two is a "
            "copy under another rank's name");
}

}  // namespace
}  // namespace mckpt::impl
