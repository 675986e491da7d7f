// The groups of an optimizer in state dicts that DcpLayout writes: numbered groups with lists, and flattened
// ones.
#include "io/dcp/keys/param_groups.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/layout.h"
#include "io/dcp/write/record.h"
#include "io/file/crc32.h"
#include "io/output/output_files.h"
#include "io/store/store.h"
#include "tests/support/temp_folder.h"

namespace mckpt::impl {
namespace param_groups_test {

const std::string kParameters[] = {"layers.0.weight", "layers.0.bias", "head.weight"};

// A folder of one rank with the parameters above, a moment of each, and these objects: name and pickle.
void write(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& objects) {
  DcpLayout layout(1);
  const std::vector<i64> dims = {2, 3}, zeros = {0, 0};
  for (const std::string& name : kParameters)
    for (const std::string& key : {cat("model.", name), cat("optimizer.state.", name, ".exp_avg")}) {
      i32 k = layout.add_key({{key, {}}, DType::kF32, Shape(dims)});
      layout.add_chunk(k, 0, zeros, dims);
    }
  for (const auto& [name, pickle] : objects) layout.add_object({name, {}}, 0, pickle);
  OutputFiles out(folder, layout.files());
  for (i64 c = 0; c < layout.chunk_count(); c++) {
    DcpLayout::Chunk chunk = layout.chunk(c);
    std::vector<u8> data(static_cast<std::size_t>(chunk.frame->data_bytes()));
    std::vector<u8> tail(static_cast<std::size_t>(chunk.frame->tail_bytes()));
    chunk.frame->write_tail(crc32(0, data), tail);
    out.write(0, chunk.record_offset, chunk.frame->head());
    out.write(0, chunk.data_offset(), data);
    out.write(0, chunk.data_offset() + std::ssize(data), tail);
  }
  layout.write_objects(out);
  std::ofstream metadata(folder + "/.metadata", std::ios::binary);
  layout.write_metadata([&](std::string_view piece) { metadata << piece; });
}

// Pickles of small integers, and of a list of texts or numbers.
std::string number(int value) { return cat("\x80\x02K", std::string(1, static_cast<char>(value)), "."); }
std::string text(const std::string& value) {
  return cat("X", std::string(1, static_cast<char>(value.size())), std::string(3, '\0'), value);
}
std::string list(const std::string& entries) { return cat("\x80\x02](", entries, "e."); }

const std::string kFront = "optimizer.param_groups.";

TEST(GroupField, IsSplitAtTheLastDot) {
  auto split = [](std::string_view name) {
    std::optional<GroupField> at = group_field(name);
    return at ? cat(at->group, " | ", at->field) : "none";
  };
  EXPECT_EQ(split("optimizer.param_groups.0.lr"), "0 | lr");
  EXPECT_EQ(split("optimizer.param_groups.12.params"), "12 | params");
  EXPECT_EQ(split("optimizer.param_groups.layers.0.weight.lr"), "layers.0.weight | lr");
  EXPECT_EQ(split("optimizer.param_groups.lr"), "none");
  EXPECT_EQ(split("optimizer.state.0.lr"), "none");
}

TEST(ListedGroups, HaveNamesOrNumbersInTheirOrder) {
  TempFolder folder;
  write(folder.path(), {{kFront + "0.params", list(text("layers.0.weight") + text("head.weight"))},
                        {kFront + "0.lr", number(7)},
                        {kFront + "1.params", list("K\x05K\x03N")}});
  std::unique_ptr<Store> store = open_store(folder.path());
  std::vector<ListedGroup> groups = listed_groups(*store);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].group, "0");
  EXPECT_EQ(groups[0].names, (std::vector<std::string>{"layers.0.weight", "head.weight"}));
  EXPECT_TRUE(groups[0].numbers.empty() && groups[0].others == 0);
  EXPECT_EQ(groups[1].numbers, (std::vector<i64>{5, 3}));
  EXPECT_EQ(groups[1].others, 1);
}

TEST(OptimizerGroups, OfFlattenedGroupsAreThoseOfTheirParameters) {
  TempFolder folder;
  write(folder.path(), {{kFront + "layers.0.weight.lr", number(7)},
                        {kFront + "layers.0.weight.weight_decay", number(3)},
                        {kFront + "head.weight.lr", number(7)},
                        {kFront + "head.weight.weight_decay", number(5)}});
  std::unique_ptr<Store> store = open_store(folder.path());
  OptimizerGroups found = optimizer_groups(*store);
  EXPECT_EQ(found.section, "optimizer.param_groups");
  EXPECT_EQ(found.common, (std::map<std::string, std::string>{{"lr", "7"}}));
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[0].parameters, std::vector<std::string>{"head.weight"});
  EXPECT_EQ(found.groups[0].fields, (std::map<std::string, std::string>{{"weight_decay", "5"}}));
  EXPECT_EQ(found.groups[1].parameters, std::vector<std::string>{"layers.0.weight"});
  EXPECT_EQ(found.without, std::vector<std::string>{"layers.0.bias"});
  EXPECT_TRUE(found.unknown.empty());
}

TEST(OptimizerGroups, OfListsHaveTheFieldsOfTheirNumber) {
  TempFolder folder;
  write(folder.path(), {{kFront + "0.params", list(text("layers.0.weight") + text("head.weight"))},
                        {kFront + "0.lr", number(7)},
                        {kFront + "1.params", list(text("layers.0.bias"))},
                        {kFront + "1.lr", number(9)}});
  std::unique_ptr<Store> store = open_store(folder.path());
  OptimizerGroups found = optimizer_groups(*store);
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[0].parameters, (std::vector<std::string>{"head.weight", "layers.0.weight"}));
  EXPECT_EQ(found.groups[0].fields, (std::map<std::string, std::string>{{"lr", "7"}}));
  EXPECT_EQ(found.groups[1].fields, (std::map<std::string, std::string>{{"lr", "9"}}));
  EXPECT_TRUE(found.without.empty());
}

}  // namespace param_groups_test
}  // namespace mckpt::impl
