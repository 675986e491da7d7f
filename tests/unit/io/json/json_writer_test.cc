#include "io/json/json_writer.h"

#include <cmath>

#include "gtest/gtest.h"

namespace mckpt::impl::json_writer_test {

template <typename T>
std::string written(const T& value) {
  std::string out;
  JsonWriter(out).value(value);
  return out;
}

TEST(JsonWriter, separates_what_is_nested) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("a", 1).key("b").begin_array().value("x").null().begin_object().end_object();
  json.end_array().null_field("c").field("d", std::span<const i64>(std::vector<i64>{2, 3})).end_object();
  EXPECT_EQ(out, R"({"a": 1, "b": ["x", null, {}], "c": null, "d": [2, 3]})");
}

TEST(JsonWriter, numbers_that_json_lacks_are_words) {
  EXPECT_EQ(written(std::nan("")), R"("NaN")");
  EXPECT_EQ(written(-INFINITY), R"("-Infinity")");
  EXPECT_EQ(written(-0.0), "-0.0");
  EXPECT_EQ(written(0.5), "0.5");
  EXPECT_EQ(written(std::optional<i64>()), "null");
}

TEST(JsonWriter, strings_hold_nothing_that_a_terminal_obeys) {
  EXPECT_EQ(written("a\"\n\x1b"), R"("a\"\n\u001b")");
  EXPECT_EQ(written("\xc2\x9b"), R"("\u009b")");        // CSI in one character
  EXPECT_EQ(written("\xe2\x80\xae|"), R"("\u202e|")");  // right to left
  EXPECT_EQ(written("\xc3\xa9"), "\"\xc3\xa9\"");       // letters stay
  EXPECT_EQ(written("\xff"), "\"\xef\xbf\xbd\"");       // not UTF-8
}

TEST(JsonWriter, a_text_that_is_taken_away_goes_on) {
  std::string out, all;
  JsonWriter json(out, [&] { all += out, out.clear(); });
  json.begin_array();
  for (i64 i = 0; i < 50000; i++) json.value(i);
  json.end_array();
  EXPECT_LT(out.size(), 70000u);
  all += out;
  EXPECT_TRUE(all.starts_with("[0, 1, 2, ")) << all.substr(0, 20);
  EXPECT_TRUE(all.ends_with("49998, 49999]"));
}

}  // namespace mckpt::impl::json_writer_test
