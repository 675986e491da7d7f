// The proof against jobs made by hand: tensors "a", "b", "c" of the source, "x", "y", "z" of the result.
#include "convert/jobs/proof.h"

#include <gtest/gtest.h>

#include "convert/jobs/tensor_account.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/plan.h"
#include "io/copy/job.h"
#include "io/file/file.h"
#include "tests/support/throws.h"

namespace mckpt::impl {
namespace proof_test {

// Items [from, from + count) of a piece of a tensor of the source to [to, ...) of a piece of one of the
// result.
struct Carry {
  i32 source, target;
  i64 from, to, count;
  i64 source_piece = 0, target_piece = 0;
  MoveKind kind = MoveKind::kCopy;
};
using Carries = std::vector<Carry>;

class HandMadeJob final : public CopyJob {
 public:
  std::vector<Carries> tasks;
  std::vector<i64> source_items, target_items;  // of a piece of each
  std::vector<ItemRun> unwanted;                // of task 0, whose first source is slot 0
  bool casts = false;

  i64 task_count() const override { return std::ssize(tasks); }
  const ByteSource& source(i32) const override { throw std::logic_error("a proof reads nothing"); }
  std::string tensor_of(const Region& r) const override { return std::string(1, "xyz"[r.tensor]); }
  CopyTask task(i64 index) const override {
    DType to = casts ? DType::kF32 : DType::kBF16;
    CopyTask task{Plan(this), {DType::kBF16, DType::kBF16, to, 0, 0}};
    std::map<std::pair<i32, i64>, i32> from, into;
    for (const Carry& c : tasks[static_cast<std::size_t>(index)]) {
      auto [s, new_source] = from.try_emplace({c.source, c.source_piece});
      if (new_source)
        s->second = task.plan.add_source(
            {0, c.source_piece * 1000, source_items[static_cast<std::size_t>(c.source)], 2, c.source});
      auto [t, new_target] = into.try_emplace({c.target, c.target_piece});
      if (new_target)
        t->second = task.plan.add_destination(
            {c.target, c.target_piece * 1000, target_items[static_cast<std::size_t>(c.target)], 2, c.target});
      task.plan.add(t->second,
                    {.kind = c.kind, .slot = s->second, .from = c.from, .to = c.to, .length = c.count});
    }
    task.plan.finish();
    if (index == 0) task.unwanted = unwanted;
    return task;
  }
};

ProofSide side(const char* names, std::vector<i64> items) {
  return {std::ssize(items), [=](i64 t) { return std::string(1, names[t]); },
          [=](i64 t) { return items[static_cast<std::size_t>(t)]; }};
}

// a and b of 8 items to x and y of 8 items.
struct Case {
  HandMadeJob job;
  ProofInput input{side("abc", {8, 8}), side("xyz", {8, 8})};

  explicit Case(std::vector<Carries> tasks) {
    job.tasks = std::move(tasks);
    job.source_items = job.target_items = {8, 8, 8};
    input.threads = 2;
  }
  Account account() { return prove(job, input); }
  std::string refusal() {
    return thrown_by([&] { account(); });
  }
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST(Proof, CountsCopies) {
  Account a = Case({{{0, 0, 0, 0, 8}}, {{1, 1, 0, 0, 8}}}).account();
  EXPECT_EQ(std::tuple(a.tensors_in, a.tensors_out, a.copied), std::tuple(2, 2, 2));
  EXPECT_EQ(std::tuple(a.fused, a.split, a.changed, a.padded, a.dropped, a.invented),
            std::tuple(0, 0, 0, 0, 0, 0));
}

TEST(Proof, CountsWhatTensorsAreMadeOf) {
  // x is of both, and has the rest of neither: y is a part of b.
  Case c({{{0, 0, 0, 0, 8}, {1, 0, 0, 8, 4}}, {{1, 1, 4, 0, 4}}});
  c.job.target_items = {12, 4}, c.input.target = side("xyz", {12, 4});
  Account a = c.account();
  EXPECT_EQ(std::tuple(a.fused, a.split, a.copied), std::tuple(1, 1, 0));
}

// A tensor that a view computes is not a copy, and is changed; one that is joined with others is fused all
// the same.
TEST(Proof, CountsWhatViewsCompute) {
  Case c({{{0, 0, 0, 0, 8}}, {{1, 1, 0, 0, 8}}});
  c.input.dequantized = {1};
  TensorAccount tensors;
  Account a = prove(c.job, c.input, &tensors);
  EXPECT_EQ(std::tuple(a.copied, a.dequantized, a.quantized, a.changed), std::tuple(1, 1, 0, 1));
  EXPECT_EQ(tensors.made, (std::vector{Made::kCopied, Made::kDequantized}));
  c.input.dequantized = {}, c.input.quantized = {0, 1};
  a = c.account();
  EXPECT_EQ(std::tuple(a.copied, a.dequantized, a.quantized, a.changed), std::tuple(0, 0, 2, 2));
  Case fused({{{0, 0, 0, 0, 8}, {1, 0, 0, 8, 4}}, {{1, 1, 4, 0, 4}}});
  fused.job.target_items = {12, 4}, fused.input.target = side("xyz", {12, 4});
  fused.input.dequantized = {0};
  a = fused.account();
  EXPECT_EQ(std::tuple(a.fused, a.split, a.dequantized, a.changed), std::tuple(1, 1, 0, 1));
}

TEST(Proof, CountsPaddingAndCasts) {
  Case c({{{0, 0, 0, 0, 8}, {0, 0, 0, 8, 2, 0, 0, MoveKind::kZero}}, {{1, 1, 0, 0, 8}}});
  c.job.target_items[0] = 10, c.input.target = side("xyz", {10, 8}), c.job.casts = true;
  Account a = c.account();
  EXPECT_EQ(std::tuple(a.padded, a.changed, a.copied), std::tuple(1, 2, 2));
}

TEST(Proof, JoinsWhatTasksReadInPart) {
  Account a = Case({{{0, 0, 0, 0, 4}, {1, 0, 0, 4, 4}}, {{1, 1, 4, 0, 4}, {0, 1, 4, 4, 4}}}).account();
  EXPECT_EQ(a.fused, 2);
}

TEST(Proof, NamesATensorOfTheResultThatIsCutShort) {
  EXPECT_EQ(
      Case({{{0, 0, 0, 0, 7}}, {{1, 1, 0, 0, 8}}}).refusal(),
      "MC0301 tensor 'x': item 7 of a piece of the result is written by no move: expected each of 8 items "
      "written once, found 7 items written");
}

TEST(Proof, NamesATensorOfTheSourceThatIsReadTwiceInOnePlace) {
  std::string text = Case({{{0, 0, 1, 0, 1}, {0, 0, 1, 1, 7}}, {{1, 1, 0, 0, 8}}}).refusal();
  EXPECT_TRUE(has(text, "MC0301 tensor 'a': item 0 of a stored part of a source tensor is read by no move"))
      << text;
}

TEST(Proof, NamesATensorThatTwoTasksRead) {
  std::string text = Case({{{0, 0, 0, 0, 8}}, {{0, 1, 0, 0, 8}}}).refusal();
  EXPECT_TRUE(has(text, "MC0301 tensor 'a': a piece of a tensor is read by two tasks")) << text;
}

TEST(Proof, NamesATensorThatTwoTasksWrite) {
  std::string text = Case({{{0, 0, 0, 0, 8}}, {{1, 0, 0, 0, 8}}}).refusal();
  EXPECT_TRUE(has(text, "MC0301 tensor 'x': a piece of a tensor is written by two tasks")) << text;
}

// x has a twice; y has b, and the rest of b is compared with it.
TEST(Proof, CountsItemsOfTheSourceOnceThatTheResultHasTwice) {
  Case c({{{0, 0, 0, 0, 8}, {0, 0, 2, 8, 4, 0, 0, MoveKind::kAgain}}, {{1, 1, 0, 0, 8}}});
  c.job.target_items[0] = 12, c.input.target = side("xyz", {12, 8});
  EXPECT_EQ(c.account().copied, 2);
  c.job.tasks[0][1].kind = MoveKind::kCopy;
  EXPECT_TRUE(has(c.refusal(), "MC0301 tensor 'a': item 2 of a stored part of a source tensor is read twice"))
      << c.refusal();
  c.job.tasks[0] = {{0, 0, 0, 0, 8, 0, 0, MoveKind::kAgain}, {0, 0, 2, 8, 4, 0, 0, MoveKind::kAgain}};
  EXPECT_TRUE(has(c.refusal(), "MC0302")) << c.refusal();
}

TEST(Proof, CountsComparedItemsAsReadAndNotAsWritten) {
  Case c({{{0, 0, 0, 0, 8}}, {{1, 1, 0, 0, 4}, {1, 1, 4, 0, 4, 0, 0, MoveKind::kEqual}}});
  c.job.target_items[1] = 4, c.input.target = side("xyz", {8, 4});
  Account a = c.account();
  EXPECT_EQ(std::tuple(a.copied, a.unpadded, a.dropped), std::tuple(2, 0, 0));
  c.job.tasks[1][1].count = 3;
  EXPECT_TRUE(
      has(c.refusal(), "MC0301 tensor 'b': item 7 of a stored part of a source tensor is read by no move"))
      << c.refusal();
  c.job.tasks[1] = {{1, 1, 0, 0, 3}, {1, 1, 4, 0, 4, 0, 0, MoveKind::kEqual}};
  EXPECT_TRUE(has(c.refusal(), "MC0301 tensor 'y': item 3 of a piece of the result is written by no move"))
      << c.refusal();
}

TEST(Proof, NamesATensorThatGoesNowhere) {
  Case c({{{0, 0, 0, 0, 8}}});
  c.input.target = side("xyz", {8});
  EXPECT_TRUE(has(c.refusal(), "MC0302")) << c.refusal();
  c.input.dropped = {1};
  EXPECT_EQ(c.account().dropped, 1);
  c.input.dropped = {}, c.input.copies = {1};
  EXPECT_EQ(c.account().copies, 1);
}

std::vector<std::string> notes_of(Case& c) {
  try {
    c.account();
  } catch (const Error& e) {
    return e.notes();
  }
  return {};
}

TEST(Proof, HasBothNumbersOfEveryTensorAtFault) {
  Case c({{{0, 0, 0, 0, 8}}});
  c.input.dropped = {0};
  EXPECT_EQ(notes_of(c),
            (std::vector<std::string>{"a, of the source: expected 0 items read, as it is left out, found 8",
                                      "b, of the source: expected 8 items read, found 0",
                                      "y, of the result: expected 8 items written, found 0"}));
}

TEST(Proof, RefusesWhatIsMadeOfPaddingAlone) {
  Case c({{{0, 0, 0, 0, 8}}, {{1, 1, 0, 0, 8, 0, 0, MoveKind::kZero}}});
  c.input.dropped = {1};
  EXPECT_EQ(notes_of(c),
            (std::vector<std::string>{"y, of the result: expected 8 items of the source, found 0"}));
}

TEST(Proof, LetsARuleMakeATensorOfNothing) {
  Case c({{{0, 0, 0, 0, 8}}, {{1, 1, 0, 0, 8, 0, 0, MoveKind::kZero}}});
  c.input.dropped = {1}, c.input.constant = {1};
  EXPECT_EQ(c.account().invented, 1);
  c.input.constant = {0};
  EXPECT_TRUE(has(c.refusal(), "MC0302")) << c.refusal();
}

TEST(Proof, SeesThatPiecesDoNotMakeATensor) {
  Case c({{{0, 0, 0, 0, 8, 0, 0}}, {{1, 1, 0, 0, 8}}});
  c.input.source = side("abc", {16, 8}), c.input.target = side("xyz", {16, 8});
  EXPECT_EQ(notes_of(c), (std::vector<std::string>{"a, of the source: expected 16 items read, found 8",
                                                   "x, of the result: expected 16 items written, found 8"}));
  c.job.tasks.push_back({{0, 0, 0, 0, 8, 1, 1}});
  EXPECT_EQ(c.account().copied, 2);
}

TEST(Proof, LetsATensorRepeatAnotherWhereThatIsSaid) {
  Case c({{{0, 0, 0, 0, 8}}, {{0, 1, 0, 0, 8}}});
  c.input.source = side("abc", {8}), c.input.tied = {1};
  EXPECT_EQ(c.account().tied, 1);
}

TEST(Proof, WantsPaddingOfTheSourceToBeNamed) {
  Case c({{{0, 0, 0, 0, 6}}, {{1, 1, 0, 0, 8}}});
  c.job.target_items[0] = 6, c.input.target = side("xyz", {6, 8});
  std::string text = c.refusal();
  EXPECT_TRUE(has(text, "tensor 'a': item 6 of a stored part of a source tensor")) << text;
  c.job.unwanted = {{0, 6, 2, {}, {}}};
  EXPECT_EQ(c.account().copied, 2);
  c.job.unwanted = {{0, 5, 2, {}, {}}};
  EXPECT_TRUE(has(c.refusal(), "is read twice")) << c.refusal();
}

}  // namespace proof_test
}  // namespace mckpt::impl
