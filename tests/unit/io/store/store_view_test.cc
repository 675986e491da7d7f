#include "io/store/store_view.h"

#include <gtest/gtest.h>

#include "tests/support/table_store.h"

namespace mckpt::impl::store_view_test {
namespace {

// A source that answers what no table has.
class Source final : public TableStore {
 public:
  Source() : TableStore("/source") {
    add_file("a", 8);
    add_fact("iteration", "10");
    add_finding({.message = "odd"});
    Object& args = objects_.emplace_back();
    args.name = "args";
    tensors = {{.name = "w", .dims = {2}, .pieces = {{{0}, {2}, {.file = 0, .dtype = DType::kF32}}}}};
  }
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override {
    visit({.offset = 7});
  }
  std::optional<std::vector<Finding>> check(int threads) const override {
    return std::vector<Finding>(static_cast<std::size_t>(threads));
  }
};

class Renamed final : public StoreView {
 public:
  explicit Renamed(const Store& source) : StoreView(source) {}
  explicit Renamed(std::unique_ptr<Store> source) : StoreView(std::move(source)) {
    take_objects();
    take_findings();
  }
  std::string_view name(i64) const override { return "v"; }
};

void expect_forwards(const Store& view) {
  EXPECT_EQ(view.root(), "/source");
  EXPECT_EQ(view.files().size(), 1u);
  EXPECT_EQ(view.facts().size(), 1u);
  EXPECT_EQ(view.tensor_count(), 1);
  EXPECT_EQ(view.name(0), "v");
  EXPECT_EQ(view.dtype(0), DType::kF32);
  EXPECT_EQ(view.shape(0).items(), 2);
  EXPECT_EQ(view.chunk_count(0), 1);
  EXPECT_EQ(view.chunk(0, 0).sizes[0], 2);
  EXPECT_EQ(view.resolve(0, 0).file, 0);
  i64 offset = 0;
  view.each_checksum([&](const Checksum& sum) { offset = sum.offset; });
  EXPECT_EQ(offset, 7);
  EXPECT_EQ(view.check(3)->size(), 3u);
}

TEST(StoreView, ForwardsWhatItDoesNotOverride) {
  const Source source;
  const Renamed view(source);
  expect_forwards(view);
  EXPECT_TRUE(view.objects().empty());
  EXPECT_TRUE(view.findings().empty());
}

TEST(StoreView, OwnsItsSourceAndTakesObjectsAndFindings) {
  const Renamed view(std::make_unique<Source>());
  expect_forwards(view);
  EXPECT_EQ(view.objects().size(), 1u);
  EXPECT_EQ(view.findings().size(), 1u);
}

}  // namespace
}  // namespace mckpt::impl::store_view_test
