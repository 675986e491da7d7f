#include "core/base/name_hash.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/int.h"
#include "core/base/text.h"

namespace mckpt::impl::name_hash_test {
namespace {

u64 hash(std::string_view name) { return NameHash()(name); }

TEST(NameHash, IsOfTheWholeName) {
  for (std::size_t length = 0; length < 70; length++) {
    std::string name(length, 'x');
    EXPECT_EQ(hash(name), hash(std::string(name)));
    EXPECT_NE(hash(name), hash(name + 'x'));
    EXPECT_NE(hash(name), hash(name + '\0'));
    for (std::size_t i = 0; i < length; i++) {
      std::string other = name;
      other[i] = 'y';
      EXPECT_NE(hash(name), hash(other)) << length << " " << i;
    }
  }
}

// An empty name without an address: UBSan sees it handed to memcpy.
TEST(NameHash, TakesAnEmptyNameWithoutAnAddress) { EXPECT_EQ(hash(std::string_view()), hash("")); }

// Words whose highest bits differ in pairs: one hash for all of them where a hash multiplies and rotates
// alone.
TEST(NameHash, DoesNotCollideWhereFixedOnesDo) {
  std::set<u64> seen;
  for (u64 bits = 0; bits < 1 << 12; bits++) {
    std::string name(24 * 8, 'a');
    for (std::size_t block = 0; block < 12; block++)
      if (bits >> block & 1) name[16 * block + 7] ^= '\x80', name[16 * block + 11] ^= '\x10';
    seen.insert(hash(name));
  }
  EXPECT_EQ(seen.size(), 1u << 12);
}

// Low bits choose the slot of a table.
TEST(NameHash, SpreadsNamesOfLayers) {
  std::set<u64> slots;
  for (i64 layer = 0; layer < 1 << 12; layer++)
    for (i64 expert = 0; expert < 16; expert++)
      slots.insert(hash(cat("model.layers.", layer, ".mlp.experts.", expert, ".up_proj.weight")) & 0xffff);
  // Random slots would fill 63.2 % of 65536.
  EXPECT_NEAR(static_cast<double>(slots.size()) / (1 << 16), 0.632, 0.02);
}

}  // namespace
}  // namespace mckpt::impl::name_hash_test
