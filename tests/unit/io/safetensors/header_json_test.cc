#include "io/safetensors/header_json.h"
#include "core/base/error.h"

#include <gtest/gtest.h>

namespace mckpt::impl {
namespace {

// "" when the text is valid JSON, otherwise "message @ byte".
std::string fault(std::string_view text) {
  try {
    HeaderJson json(text);
    json.skip();
    json.end();
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadJson);
    return cat(e.message(), " @ ", e.offset());
  }
}

TEST(HeaderJson, TakesWhatTheGrammarAllows) {
  for (const char* text :
       {"{}", "[]", " [ 1 , -0, 0.5, 1e9, 1E-2, -1.25e+3, 1e-400, 12345678901234567890123 ] \n", "null",
        "true", "false", "\"\"",
        "{\"a\": {\"a\": [{\"a\": 1}]}, \"b\": \"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
        "\"\xc3\xa9\"", "[[],[],{}]"})
    EXPECT_EQ(fault(text), "") << text;
}

TEST(HeaderJson, RefusesEveryThingElseWithTheByte) {
  struct Case {
    std::string text, expected;
  };
  const Case cases[] = {
      {"", "the JSON text ends too early @ 0"},
      {"\xef\xbb\xbf{}", "the JSON begins with a byte order mark (BOM) @ 0"},
      {"{} x", "text follows the end of the JSON (trailing) @ 3"},
      {std::string("{}\0", 3), "text follows the end of the JSON (trailing) @ 2"},
      {"[1,]", "JSON syntax error at ']' @ 3"},
      {"[,1]", "JSON syntax error at ',' @ 1"},
      {"[1 2]", "JSON syntax error: a comma or ']' is expected in an array @ 3"},
      {"{\"a\" 1}", "JSON syntax error: ':' is expected behind the key 'a' @ 5"},
      {"{\"a\":1,}", "JSON syntax error at '}' @ 7"},
      {"{a:1}", "JSON syntax error at 'a' @ 1"},
      {"{1:1}", "a string is expected in the JSON, not a number @ 1"},
      {"[1] // c", "text follows the end of the JSON (trailing) @ 4"},
      {"/* c */ 1", "JSON syntax error at '/' @ 0"},
      {"{\"a\":1", "the JSON text ends inside an object @ 6"},
      {"[[1]", "the JSON text ends inside an array @ 4"},
      {"\"abc", "the JSON text ends inside a string @ 0"},
      {"\"abcdefghijklmnop\n\"", "a control character stands bare in a JSON string @ 17"},
      {"\"\\n\x01\"", "a control character stands bare in a JSON string @ 3"},
      {"\"\\x41\"", "a JSON string has an unknown escape @ 1"},
      {"\"\\u12g4\"", "a JSON string has a broken \\u escape @ 3"},
      {"\"\\ud800\"", "a JSON string has a lone surrogate (not Unicode) @ 1"},
      {"\"\\ud800\\u0041\"", "a JSON string has a lone surrogate (not Unicode) @ 1"},
      {"\"\\udc00\"", "a JSON string has a lone surrogate (not Unicode) @ 1"},
      {"\"\xff\"", "the JSON text is not UTF-8 @ 1"},
      {"\"\xed\xa0\x80\"", "the JSON text is not UTF-8 @ 1"},
      {"01", "JSON syntax error in a number @ 0"},
      {"-", "JSON syntax error in a number @ 0"},
      {"1.", "JSON syntax error in a number @ 0"},
      {".5", "JSON syntax error at '.' @ 0"},
      {"+1", "JSON syntax error at '+' @ 0"},
      {"1e", "JSON syntax error in a number @ 0"},
      {"[1E400]", "the number 1E400 is out of range (overflow) @ 1"},
      {"-1e309", "the number -1e309 is out of range (overflow) @ 0"},
      {"NaN", "JSON syntax error at 'N' @ 0"},
      {"nul", "JSON syntax error @ 0"},
      {"True", "JSON syntax error at 'T' @ 0"},
      {"{\"a\":1,\"\\u0061\":2}", "the key 'a' is there twice (duplicate) @ 7"},
  };
  for (const Case& c : cases) EXPECT_EQ(fault(c.text), c.expected) << c.text;
  const std::string digits(310, '1'), zeros(400, '0');
  EXPECT_NE(fault(digits), "");
  EXPECT_NE(fault(cat("0.", zeros, "1e800")), "");
  EXPECT_NE(fault("1e99999999999999999999"), "");
  EXPECT_EQ(fault(cat(digits, "e-10")), "");
  EXPECT_EQ(fault(cat("0.", zeros, "1e400")), "");
  EXPECT_EQ(fault(cat("0.", zeros, "1")), "");
  EXPECT_EQ(fault("1e-99999999999999999999"), "");
  EXPECT_EQ(fault("0e99999999999999999999"), "");
}

TEST(HeaderJson, FindsDuplicatesAmongManyKeys) {
  for (int count : {8, 9, 16, 17, 1000}) {
    std::string text = "{";
    for (int i = 0; i < count; i++) text += cat("\"key.", i, "\": {\"key.0\": 0}, ");
    EXPECT_EQ(fault(text + "\"other\": 1}"), "");
    for (int i : {0, 7, count - 1})
      EXPECT_EQ(fault(text + cat("\"key.", i, "\": 1}")),
                cat("the key 'key.", i, "' is there twice (duplicate) @ ", static_cast<i64>(text.size())));
  }
}

TEST(HeaderJson, BoundsTheDepth) {
  std::string deep(kMaxJsonDepth, '['), close(kMaxJsonDepth, ']');
  EXPECT_EQ(fault(deep + close), "");
  EXPECT_EQ(fault("[" + deep + close + "]"), "the JSON is nested deeper than the limit of 64 @ 64");
  EXPECT_NE(fault(std::string(5'000'000, '[')), "");
}

TEST(HeaderJson, KeepsIntegersExact) {
  auto integer = [](std::string_view text) { return HeaderJson(text).integer(); };
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  for (const char* text : {"9223372036854775808", "18446744073709551616", "-9223372036854775809", "1.0",
                           "2.4e1", "true", "\"1\"", "null"})
    EXPECT_THROW(integer(text), Error) << text;
}

TEST(HeaderJson, UnescapesToUtf8) {
  std::string text =
      "[\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000z\", \"plain text that is longer than eight bytes\"]";
  HeaderJson json(text);
  json.begin_array();
  ASSERT_TRUE(json.next_item());
  std::string_view first = json.string();
  ASSERT_TRUE(json.next_item());
  EXPECT_EQ(json.string(), "plain text that is longer than eight bytes");
  EXPECT_FALSE(json.next_item());
  EXPECT_EQ(first, std::string_view("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z", 12));
}

TEST(HeaderJson, ErrorsCountFromTheBaseInTheFile) {
  try {
    HeaderJson json("{\"a\": tru}", 100, 8);
    json.skip();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.offset(), 106);
  }
}

}  // namespace
}  // namespace mckpt::impl
