#include "core/names.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mckpt {
namespace names_test {

TEST(NaturalOrder, CountsAsAPersonDoes) {
  std::vector<std::string> names = {"a",           "layers.0.w",   "layers.2.w", "layers.10",
                                    "layers.10.w", "layers.010.x", "layers.w",   "layersX"};
  std::vector<std::string> sorted = names;
  std::reverse(sorted.begin(), sorted.end());
  std::sort(sorted.begin(), sorted.end(), natural_less);
  EXPECT_EQ(sorted, names);
}

TEST(NaturalOrder, IsAStrictOrder) {
  std::vector<std::string> names = {
      "",   "0",   "00", "01", "1", "a", "a0", "a00", "a1b", "a01b", "a1", "b", "99999999999999999999999",
      "1e", "\xff"};
  for (const std::string& a : names) {
    EXPECT_FALSE(natural_less(a, a)) << a;
    for (const std::string& b : names) {
      EXPECT_EQ(natural_less(a, b) + natural_less(b, a), a == b ? 0 : 1) << a << " " << b;
      for (const std::string& c : names) {
        if (!natural_less(a, b) || !natural_less(b, c)) continue;
        EXPECT_TRUE(natural_less(a, c)) << a << " " << b << " " << c;
      }
    }
  }
}

TEST(Glob, MatchesWholeNames) {
  struct Case {
    const char *glob, *name;
    bool matches;
  };
  const Case cases[] = {
      {"*", "", true},
      {"*", "a.b", true},
      {"", "", true},
      {"", "a", false},
      {"a", "ab", false},
      {"*.weight", "layers.0.weight", true},
      {"*.weight", "layers.0.weights", false},
      {"layers.*.q*", "layers.0.self.q_proj", true},
      {"layers.?.w", "layers.10.w", false},
      {"layers.[0-3].w", "layers.2.w", true},
      {"layers.[!0-3].w", "layers.2.w", false},
      {"layers.[!0-3].w", "layers.7.w", true},
      {"a[b", "a[b", true},
      {"a\\*b", "a*b", true},
      {"a\\*b", "axb", false},
      {"[]]", "]", true},
      {"a\\", "a\\", true},
      {"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
      {"**x", "x", true},
  };
  for (const Case& c : cases) EXPECT_EQ(glob_match(c.glob, c.name), c.matches) << c.glob << " " << c.name;
}

}  // namespace names_test
}  // namespace mckpt
