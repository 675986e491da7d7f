// The flat buffers of real Megatron-FSDP runs: which parameters share one, its size, the shard's, the grid on
// which it is packed, and the place of every parameter.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "core/base/text.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "tests/support/golden_config.h"

namespace mckpt::impl {
namespace golden_buckets_test {

struct Case {
  std::string tag, model;
  Grid grid;
  std::vector<std::string> buckets;  // "1024 512 96: a@0+96 b@96+12"
};

std::vector<Case> golden_cases(const std::string& file) {
  std::ifstream in(MCKPT_TEST_DATA "/golden/" + file);
  std::vector<Case> cases;
  for (std::string line, word; std::getline(in, line);) {
    std::istringstream fields(line);
    fields >> word;
    if (word == "case") {
      Case& c = cases.emplace_back();
      fields >> c.tag >> c.model >> c.grid.tp >> c.grid.cp >> c.grid.ep >> c.grid.dp;
    } else if (word == "group") {
      i64 bucket = 0, shard = 0, chunk = 0;
      fields >> bucket >> shard >> chunk;
      cases.back().buckets.push_back(cat(bucket, " ", shard, " ", chunk, ":"));
    } else {
      i64 offset = 0, items = 0;
      fields >> offset >> items;
      cases.back().buckets.back() += cat(" ", word, "@", offset, "+", items);
    }
  }
  return cases;
}

std::vector<std::string> buckets_of_rank_0(const Case& c) {
  ModelMap map = golden_map(c.model);
  std::vector<ModelParameter> parameters = golden_parameters(map, c.grid, 0);
  FsdpLayout layout(parameters, map.model(), c.grid, {});
  std::vector<std::string> out;
  for (const FsdpLayout::Group& group : layout.groups()) {
    const FlatBuffer& b = group.buffer;
    std::string& text = out.emplace_back(cat(b.bucket_items, " ", b.shard_items, " ", b.chunk_items, ":"));
    std::map<i64, std::string> by_offset;
    for (std::size_t i = 0; i < b.parameters.size(); i++) {
      const ModelParameter& p = parameters[static_cast<std::size_t>(group.bucket.members[i])];
      const PackedParameter& at = b.parameters[i];
      EXPECT_TRUE(by_offset.emplace(at.offset, cat(" ", p.name, "@", at.offset, "+", at.items)).second);
    }
    for (const auto& [offset, line] : by_offset) text += line;
  }
  return out;
}

void expect_real_buckets(const std::string& file, std::size_t count) {
  std::vector<Case> cases = golden_cases(file);
  ASSERT_EQ(cases.size(), count);
  for (const Case& c : cases) {
    std::vector<std::string> buckets = buckets_of_rank_0(c);
    ASSERT_EQ(buckets.size(), c.buckets.size()) << c.tag;
    for (std::size_t i = 0; i < buckets.size(); i++) EXPECT_EQ(buckets[i], c.buckets[i]) << c.tag;
  }
}

TEST(GoldenBuckets, AreTheRealOnes) { expect_real_buckets("buckets.txt", 11); }

TEST(GoldenBuckets, OfFurtherFamiliesAreTheRealOnes) { expect_real_buckets("families/buckets.txt", 30); }

}  // namespace golden_buckets_test
}  // namespace mckpt::impl
