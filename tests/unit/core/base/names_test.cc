#include "core/base/names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {
namespace names_test {

TEST(NaturalOrder, CountsAsAPersonDoes) {
  std::vector<std::string> names = {"a",           "layers.0.w",   "layers.2.w", "layers.10",
                                    "layers.10.w", "layers.010.x", "layers.w",   "layersX"};
  std::vector<std::string> sorted = names;
  std::reverse(sorted.begin(), sorted.end());
  std::sort(sorted.begin(), sorted.end(), natural_less);
  EXPECT_EQ(sorted, names);
}

// A second look at it: names as lists of numbers and letters, compared part by part.
std::vector<std::pair<i64, std::string>> parts_of(const std::string& name) {
  std::vector<std::pair<i64, std::string>> parts;
  for (std::size_t i = 0; i < name.size();) {
    std::size_t end = i;
    while (end < name.size() && name[end] >= '0' && name[end] <= '9') end++;
    if (end == i) {
      parts.emplace_back(-1, name.substr(i++, 1));
    } else {
      parts.emplace_back(std::stoll(name.substr(i, end - i)), "");
      i = end;
    }
  }
  return parts;
}

bool plainly_less(const std::string& a, const std::string& b) {
  auto x = parts_of(a), y = parts_of(b);
  for (std::size_t i = 0; i < x.size() && i < y.size(); i++) {
    if (x[i] == y[i]) continue;
    if (x[i].first >= 0 && y[i].first >= 0) return x[i].first < y[i].first;
    // A number against a letter: by the characters that stand there.
    auto first = [](const std::string& name, const auto& parts, std::size_t at) {
      std::size_t byte = 0;
      for (std::size_t p = 0; p < at; p++) {
        if (parts[p].first < 0) byte++;
        while (parts[p].first >= 0 && byte < name.size() && name[byte] >= '0' && name[byte] <= '9') byte++;
      }
      return name[byte];
    };
    return first(a, x, i) < first(b, y, i);
  }
  return x.size() != y.size() ? x.size() < y.size() : a < b;
}

std::string key_of(const std::string& name) {
  std::string key(2 * name.size(), 'x');
  char* end = write_natural_key(key.data(), name);
  EXPECT_LE(end, key.data() + key.size()) << name;
  key.resize(static_cast<std::size_t>(end - key.data()));
  return key;
}

bool key_less(const std::string& a, const std::string& b) {
  int order = std::string_view(key_of(a)).compare(key_of(b));
  return order != 0 ? order < 0 : a < b;
}

TEST(NaturalOrder, OfRandomNamesIsThatOfTheirParts) {
  std::mt19937 random(7);
  auto name = [&](std::size_t most) {
    std::string out;
    for (std::size_t n = random() % (most + 1); n > 0; n--) out += "0019.a"[random() % 6];
    return out;
  };
  for (int i = 0; i < 200'000; i++) {
    std::string front = name(12), a = front + name(5), b = front + name(5);
    ASSERT_EQ(natural_less(a, b), plainly_less(a, b)) << a << " " << b;
    ASSERT_EQ(key_less(a, b), plainly_less(a, b)) << a << " " << b;
  }
}

// Long names, and bytes next to digits and beyond ASCII.
TEST(NaturalOrder, OfKeysIsThatOfTheNames) {
  std::mt19937 random(8);
  const std::string bytes = "/0:9.ab\x7f\xb0\xb9\xff";
  auto name = [&](std::size_t most) {
    std::string out;
    for (std::size_t n = random() % (most + 1); n > 0; n--) out += bytes[random() % bytes.size()];
    return out;
  };
  for (int i = 0; i < 100'000; i++) {
    std::string front = name(20), a = front + name(12), b = front + name(12);
    ASSERT_EQ(key_less(a, b), natural_less(a, b)) << a << " " << b;
  }
}

TEST(NaturalOrder, IsAStrictOrder) {
  std::vector<std::string> names = {
      "",   "0",   "00", "01", "1", "a", "a0", "a00", "a1b", "a01b", "a1", "b", "99999999999999999999999",
      "1e", "\xff"};
  for (const std::string& a : names) {
    EXPECT_FALSE(natural_less(a, a)) << a;
    for (const std::string& b : names) {
      EXPECT_EQ(natural_less(a, b) + natural_less(b, a), a == b ? 0 : 1) << a << " " << b;
      EXPECT_EQ(key_less(a, b), natural_less(a, b)) << a << " " << b;
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
}  // namespace mckpt::impl
