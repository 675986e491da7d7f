// The frame of planning, with an Opened that was made in memory: no folder on a disk is read.
#include "convert/plan/target.h"

#include <gtest/gtest.h>

#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/open.h"
#include "convert/open/own_model.h"
#include "core/base/text.h"
#include "io/copy/read_sums.h"
#include "io/store/finding.h"
#include "tests/support/table_store.h"

namespace mckpt::impl {
namespace target_test {

// A store with one tensor, of which no file is there.
std::unique_ptr<TableStore> one_tensor(std::string root = "memory") {
  auto store = std::make_unique<TableStore>(std::move(root));
  store->tensors.push_back({"w", DType::kF32, {4}, {}});
  store->tensors.back().pieces.push_back({{0}, {4}, {.file = 0, .dtype = DType::kF32}});
  return store;
}

Opened opened_in_memory() {
  Opened out =
      open_plain(one_tensor(), "memory", {{.code = Code::kMixedSaves, .message = "odd", .warning = true}});
  out.notes.note("of the source");
  out.left_out.note("left out of the source");
  out.objects = 2;
  return out;
}

class Made final : public Target {
 public:
  explicit Made(const Opened& source, std::string setting = "one") : chunks_(source.store(), source.store()) {
    job = std::make_unique<ChunkJob>(tensor_job(source.store(), chunks_));
    proof = {side_of(source.store()), side_of(source.store())};
    path = "result", format = "made";
    set_files(*this, {{"a", 16}, {"b", 4}});
    notes.note("of the target"), details.note("detail of the target");
    oddities.push_back({"beside", {}});
    dropped_objects = 1;
    identified.settings.emplace("made", "1.0");
    identified.settings->set("setting", setting);
    identified.result = "layout";
  }
  void write_frame(const FramePlace&) const override {}

 private:
  NamedChunks chunks_;
};

std::string texts(const Notes& notes) {
  std::string out;
  for (const Note& n : notes) out += cat(n.text, ";");
  return out;
}

TEST(Plan, PutsTheSourceInFrontOfTheTarget) {
  Conversion c = plan(opened_in_memory(), [](Opened& source) { return std::make_unique<Made>(source); });
  EXPECT_EQ(texts(c.notes), "of the source;of the target;");
  EXPECT_EQ(texts(c.details), "left out of the source;detail of the target;");
  ASSERT_EQ(c.oddities.size(), 2u);
  EXPECT_EQ(c.oddities[0].root, "memory");
  EXPECT_EQ(c.oddities[0].findings.at(0).message, "odd");
  EXPECT_EQ(c.oddities[1].root, "beside");
  EXPECT_EQ(c.dropped_objects, 3);
  EXPECT_EQ(c.sources, std::vector<std::string>{"memory"});
  EXPECT_EQ(c.store, &c.opened->store());
  EXPECT_TRUE(c.sums);
  EXPECT_EQ(c.bytes, 20);
  EXPECT_EQ(c.format, "made");
  prove(c, 1);
  EXPECT_EQ(c.account.copied, 1);
}

TEST(Plan, NamesTheFoldersOfTheTargetInstead) {
  Conversion c = plan(opened_in_memory(), [](Opened& source) {
    auto made = std::make_unique<Made>(source);
    made->folders = {"memory", "assets"};
    return made;
  });
  EXPECT_EQ(c.sources, (std::vector<std::string>{"memory", "assets"}));
}

TEST(Plan, IdentityIsOfSettingsAndResult) {
  auto identity = [](std::string setting, std::string result) {
    return plan(opened_in_memory(),
                [&](Opened& source) {
                  auto made = std::make_unique<Made>(source, setting);
                  made->identified.result = result;
                  return made;
                })
        .identity;
  };
  EXPECT_EQ(identity("one", "x"), identity("one", "x"));
  EXPECT_NE(identity("one", "x"), identity("two", "x"));
  EXPECT_NE(identity("one", "x"), identity("one", "y"));
  EXPECT_EQ(plan_differences(identity("one", "x"), identity("two", "x")).size(), 1u);
}

TEST(Plan, OfAModelInMemoryReadsNoFile) {
  class InMemory final : public Target {
   public:
    InMemory() { path = "result"; }
    void write_frame(const FramePlace&) const override {}
  };
  Conversion c = plan({}, [](Opened&) { return std::make_unique<InMemory>(); });
  EXPECT_EQ(c.store, nullptr);
  EXPECT_FALSE(c.sums);
  EXPECT_TRUE(c.sources.empty());
  EXPECT_EQ(c.identity, "");
}

TEST(Plan, OfAFileHasNoSumsWhereItsFormatHasNone) {
  Opened source = opened_in_memory();
  source.has_sums = false;
  Conversion c = plan(std::move(source), [](Opened& in) { return std::make_unique<Made>(in); });
  EXPECT_FALSE(c.sums);
}

}  // namespace target_test
}  // namespace mckpt::impl
