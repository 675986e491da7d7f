#include "core/base/text.h"

#include <gtest/gtest.h>

#include "core/base/one_of.h"

namespace mckpt::impl {
namespace text_test {

TEST(Text, CatsNumbersTextAndBooleans) {
  EXPECT_EQ(cat(1, " of ", 2.5, ' ', true, " ", std::string("x")), "1 of 2.5 true x");
  char array[] = "array";
  EXPECT_EQ(cat(array), "array");
}

TEST(Text, EscapesEverythingThatATerminalWouldObey) {
  EXPECT_EQ(escaped("weight.0"), "weight.0");
  EXPECT_EQ(escaped("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(escaped("\xc2\x9b"
                    "31m"),
            "\\xc2\\x9b31m");  // C1 control
  EXPECT_EQ(escaped("\xe2\x80\xae"
                    "abc"),
            "\\xe2\\x80\\xaeabc");                                   // right-to-left override
  EXPECT_EQ(escaped("\xd8\x9c|"), "\\xd8\\x9c|");                    // a mark of the direction, U+061C
  EXPECT_EQ(escaped("\xef\xbb\xbf|"), "\\xef\\xbb\\xbf|");           // U+FEFF
  EXPECT_EQ(escaped("\xf3\xa0\x81\x81|"), "\\xf3\\xa0\\x81\\x81|");  // a tag, U+E0041
  EXPECT_EQ(escaped("\xd8\x9b\xf3\xa0\x84\x80"), "\xd8\x9b\xf3\xa0\x84\x80");  // U+061B, U+E0100
  EXPECT_EQ(escaped("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(escaped("aaaaaaaaaa", 4), "aaaa...");
}

TEST(Text, KnowsWhatIsAscii) {
  for (std::size_t size : {0, 1, 7, 8, 9, 23, 24}) {
    std::string text(size, '\x7f');
    EXPECT_TRUE(is_ascii(text)) << size;
    for (std::size_t i = 0; i < size; i++) {
      std::string other = text;
      other[i] = '\x80';
      EXPECT_FALSE(is_ascii(other)) << size << " " << i;
      EXPECT_TRUE(is_ascii(std::string_view(other).substr(0, i))) << size << " " << i;
    }
  }
}

TEST(Text, FindsTheNearestName) {
  std::vector<std::string> commands = {"inspect", "explain", "export"};
  EXPECT_EQ(nearest("inspct", commands), "inspect");
  EXPECT_EQ(nearest("exprot", commands), "export");
  EXPECT_EQ(nearest("zzzzz", commands), "");
  // Half of a short word is another word.
  EXPECT_EQ(nearest("v3", std::vector<std::string>{"v1"}), "v1");
  EXPECT_EQ(nearest("foo", std::vector<std::string>{"bool"}), "");
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(Text, ListsAFewAndCountsTheRest) {
  EXPECT_EQ(listed(std::vector<std::string>{"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(listed(std::vector<std::string>{"a", "b"}, 2), "a, b");
}

TEST(Text, AlternativesEndWithOr) {
  EXPECT_EQ(one_of(std::vector<std::string>{"auto", "keep", "bf16"}), "auto, keep or bf16");
  EXPECT_EQ(one_of(std::vector<std::string_view>{"a", "b"}), "a or b");
  EXPECT_EQ(one_of(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(one_of(std::vector<std::string>{}), "");
}

}  // namespace text_test
}  // namespace mckpt::impl
