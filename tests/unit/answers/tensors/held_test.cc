// The tensors of a rank: the whole, a box, or nothing, as JSON and in the table.
#include "tools/answers/tensors/held.h"

#include <gtest/gtest.h>

#include "convert/jobs/held_tensors.h"
#include "io/json/json_writer.h"
#include "mappings/model/parameter_marks.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace held_test {

HeldTensor held(const std::string& name, std::vector<i64> offsets, std::vector<i64> sizes, ItemRange items) {
  return {.name = name,
          .parameter = nullptr,
          .shape = Shape({6, 4}),
          .offsets = offsets,
          .sizes = sizes,
          .items = items};
}

std::string json_of(const HeldTensor& h, const std::string* sha256 = nullptr,
                    const ParameterMarks* marks = nullptr) {
  std::string text;
  JsonWriter json(text);
  const HeldList list{{&h, 1}, {sha256, sha256 ? 1u : 0u}, {marks, marks ? 1u : 0u}, false};
  write_held(json, list, 0, 3);
  return text;
}

TEST(HeldAnswer, HasTheRanksBoxAsItsOneChunk) {
  const std::string sum = "ab";
  EXPECT_EQ(
      json_of(held("w", {2, 0}, {3, 4}, {8, 20}), &sum),
      R"({"name": "w", "dtype": "bfloat16", "shape": [6, 4], "bytes": 48, "file": null, "offset": null, )"
      R"("chunks": [{"rank": 3, "offsets": [2, 0], "sizes": [3, 4], "file": null, "offset": null, "bytes": 24}], )"
      R"("sha256": "ab"})");
}

TEST(HeldAnswer, HasNoChunkOfATensorOfWhichTheRankHoldsNothing) {
  const std::string text = json_of(held("w", {0, 0}, {0, 4}, {0, 0}));
  EXPECT_NE(text.find(R"("chunks": [])"), std::string::npos) << text;
  EXPECT_EQ(text.find("sha256"), std::string::npos);
}

TEST(HeldAnswer, ListsTheRowsThatTheRankComputesWith) {
  HeldTensor h = held("w", {0, 0}, {6, 4}, {0, 24});
  h.cp_rows = {{0, 1}, {4, 6}};
  const std::string text = json_of(h);
  EXPECT_NE(text.find(R"("cp_rows": [[0, 1], [4, 6]])"), std::string::npos) << text;
}

TEST(HeldAnswer, SaysInWordsWhatIsHeld) {
  Output out(GlobalFlags{.ascii = true});
  const std::vector<HeldTensor> rows = {held("whole", {0, 0}, {6, 4}, {0, 24}),
                                        held("box", {2, 0}, {3, 4}, {8, 20}),
                                        held("none", {0, 0}, {0, 4}, {0, 0})};
  write_held(out, {rows, {}, {}, true});
  const std::string text = std::exchange(out.buffer(), "");
  for (const char* words : {"all", "[3, 4] at [2, 0]", "nothing"})
    EXPECT_NE(text.find(words), std::string::npos) << text;
  EXPECT_EQ(text.find("cp rows"), std::string::npos);
  EXPECT_EQ(text.find("attributes"), std::string::npos);
}

TEST(HeldAnswer, SaysTheAttributesThatMegatronSets) {
  ParameterMarks split, whole;
  split.tensor_model_parallel = true, split.partition_dim = 1, split.allreduce = false;
  whole.sequence_parallel = true;
  const HeldTensor h = held("w", {0, 0}, {6, 4}, {0, 24});
  const std::string text = json_of(h, nullptr, &split);
  EXPECT_NE(
      text.find(
          R"("attributes": {"tensor_model_parallel": true, "partition_dim": 1, "sequence_parallel": false, "allreduce": false})"),
      std::string::npos)
      << text;
  Output out(GlobalFlags{.ascii = true});
  const std::vector<HeldTensor> rows = {h, h, h};
  const std::vector<ParameterMarks> marks = {split, whole, {}};
  write_held(out, {rows, {}, marks, false});
  const std::string lines = std::exchange(out.buffer(), "");
  for (const char* words : {"  attributes\n", "  tensor_model_parallel, partition_dim 1, allreduce False\n",
                            "  sequence_parallel\n"})
    EXPECT_NE(lines.find(words), std::string::npos) << lines;
}

}  // namespace held_test
}  // namespace mckpt::impl
