#include "convert/compare/diff/diff.h"

#include <gtest/gtest.h>

#include "convert/compare/diff/groups.h"
#include "convert/compare/diff/verdict.h"
#include "core/base/error.h"
#include "core/base/observer.h"
#include "tests/support/safetensors_text.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace diff_test {

using Values = std::vector<std::pair<std::string, float>>;

// A tensor of one float32 for each pair.
std::string file_of(const Values& values) {
  std::string header, data;
  for (const auto& [name, value] : values) {
    i64 at = std::ssize(data);
    header += cat(header.empty() ? "{" : ",", safetensors_entry(name, "F32", "1", at, at + 4));
    data.append(reinterpret_cast<const char*>(&value), 4);
  }
  return safetensors_file(header + "}", data);
}

class DiffOfFiles : public testing::Test {
 protected:
  Diff compared(const Values& a, const Values& b, TensorChoice choice = {}) {
    DiffOptions how;
    how.comparing.choice = std::move(choice);
    return diff(folder_.put("a.safetensors", file_of(a)), folder_.put("b.safetensors", file_of(b)), how,
                observer_);
  }
  static std::vector<std::string> names(const Diff& d) {
    std::vector<std::string> out;
    for (const DiffRow& row : d.rows) out.push_back(row.name);
    return out;
  }

  TempFolder folder_;
  Observer observer_;
};

using Names = std::vector<std::string>;

TEST_F(DiffOfFiles, NamesWeightsBeforeStatesOfTheOptimizer) {
  Diff d = compared(
      {{"optimizer.state.exp_avg.w.weight", 8}, {"optim_0.v.weight", 9}, {"v.weight", 1}, {"w.weight", 1}},
      {{"optimizer.state.exp_avg.w.weight", 1}, {"optim_0.v.weight", 1}, {"v.weight", 2}, {"w.weight", 4}});
  EXPECT_EQ(names(d),
            (Names{"w.weight", "v.weight", "optim_0.v.weight", "optimizer.state.exp_avg.w.weight"}));
  std::vector<DiffGroup> groups = diff_groups(d);
  ASSERT_EQ(groups.size(), 4u);
  EXPECT_EQ(groups[0].pattern, "v.weight");
  EXPECT_EQ(groups[3].pattern, "optimizer.state.exp_avg.w.weight");
}

const Values kA = {{"a.x", 1}, {"a.y", 2}, {"a.only", 3}, {"b.x", 4}},
             kB = {{"a.x", 1}, {"a.y", 7}, {"b.x", 5}, {"b.only", 6}};

TEST_F(DiffOfFiles, SpeaksOfChosenTensorsAlone) {
  Diff all = compared(kA, kB);
  EXPECT_EQ(all.tensors(), 3);  // A's tensors that could be compared
  EXPECT_EQ(all.rows.size(), 4u);

  Diff d = compared(kA, kB, {"a.*"});
  EXPECT_EQ(names(d), (Names{"a.only", "a.y"}));
  EXPECT_EQ(d.report.compared, (Names{"a.x", "a.y"}));
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(diff_verdict(d).substr(0, 53), "2 of 3 tensors that match 'a.*' differ, 1 is bit-equa");

  Diff equal = compared(kA, kB, {"^a\\.[xz]$", true});
  EXPECT_TRUE(equal.equal);
  EXPECT_EQ(equal.tensors(), 1);
  EXPECT_EQ(diff_verdict(equal), "equal: the 1 tensor that matches '^a\\.[xz]$'");
  EXPECT_EQ(names(compared(kA, kB, {"*only"})), (Names{"a.only", "b.only"}));
}

TEST(DiffVerdict, SaysThatOtherTypesAreNotWithinATolerance) {
  Diff d{.rows = {{.kind = DiffRow::Kind::kCast, .name = "x"},
                  {.kind = DiffRow::Kind::kCast, .name = "y"},
                  {.kind = DiffRow::Kind::kValues, .name = "y", .items = 1, .beyond = 0}}};
  d.report.compared = {"x", "y"};
  EXPECT_EQ(
      diff_verdict(d),
      "no value differs beyond the tolerance, but 2 of 2 tensors have another type: 1 has equal values in "
      "another type, 1 within the tolerance");
}

TEST_F(DiffOfFiles, RefusesAChoiceOfNothing) {
  try {
    compared(kA, kB, {"a"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kNoSuchTensor);
    EXPECT_EQ(e.found(), "5 tensors");
    EXPECT_EQ(e.help(), "a glob has to match the whole name: '*a*' matches 3 tensors");
  }
}

}  // namespace diff_test
}  // namespace mckpt::impl
