#include "io/json/json.h"

#include <limits>

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/json/json_keys.h"

namespace mckpt::impl {
namespace {

// "" when the text is valid JSON, otherwise "message @ byte".
std::string fault(std::string_view text, JsonNumbers numbers = JsonNumbers::kStrict) {
  try {
    static_cast<void>(parse_json(text, numbers));
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadJson);
    return cat(e.message(), " @ ", e.offset());
  }
}

TEST(Json, TakesWhatTheGrammarAllows) {
  for (const char* text :
       {"{}", "[]", " [ 1 , -0, 0.5, 1e9, 1E-2, -1.25e+3 ] \n", "null", "true", "false", "\"\"", " 7",
        "-0.5e1\n",
        "{\"a\": {\"a\": [{\"a\": 1}]}, \"b\": \"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
        "\"\xc3\xa9\"", "[[],[],{}]", "{\"\\\\\": 1, \"\\\"\": 2, \"\": 3}"})
    EXPECT_EQ(fault(text), "") << text;
}

TEST(Json, RefusesWhatTheGrammarDoesNotAllow) {
  struct Case {
    std::string text, expected;
  };
  const Case cases[] = {
      {"", "the JSON text ends too early @ 0"},
      {" \n", "the JSON text ends too early @ 2"},
      {"nul", "the JSON text ends too early @ 3"},
      {"\"abc", "the JSON text ends too early @ 4"},
      {"{\"a\":1", "the JSON text ends inside an object @ 6"},
      {"{\"a\":[1, \"b", "the JSON text ends inside an array @ 11"},
      {"[[1]", "the JSON text ends inside an array @ 4"},
      {"[-", "the JSON text ends inside an array @ 2"},
      {"{} x", "text follows the end of the JSON (trailing) @ 3"},
      {"1 2", "text follows the end of the JSON (trailing) @ 2"},
      {"1x", "text follows the end of the JSON (trailing) @ 1"},
      {"[1] // c", "text follows the end of the JSON (trailing) @ 4"},
      {std::string("{}\0", 3), "JSON syntax error: a NUL byte @ 2"},
      {std::string("[1, \0]", 6), "JSON syntax error: a NUL byte @ 4"},
      {"\xef\xbb\xbf{}", "the JSON begins with a byte order mark (BOM) @ 0"},
      {"\"\xff\"", "the JSON text is not UTF-8 @ 1"},
      {"\"\xed\xa0\x80\"", "the JSON text is not UTF-8 @ 1"},
      {"{\"a\":1,\"\\u0061\":2}", "the key 'a' is there twice (duplicate) @ 7"},
      {"{\"b\\\\\":1, \"x\":{\"b\":0}, \"b\\\\\":2}", "the key 'b\\' is there twice (duplicate) @ 23"},
      {"1e999", "the number 1e999 is out of range (overflow) @ 0"},
      {"[1, -1e999]", "the number -1e999 is out of range (overflow) @ 4"},
      {"[1" + std::string(400, '0') + "]",
       "the number 1000000000000000000000000000000000000000... is out of range"},
  };
  for (const Case& c : cases) EXPECT_TRUE(fault(c.text).starts_with(c.expected)) << fault(c.text);
  for (const char* text : {"[1,]",
                           "[,1]",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "/* c */ 1",
                           "\"abc\n\"",
                           "\"\\x41\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "[-]",
                           "[01]",
                           "[1.]",
                           "[.5]",
                           "[+1]",
                           "[1e]",
                           "[NaN]",
                           "[-Infinity]",
                           "[True]",
                           "[nulL]",
                           "'a'"})
    EXPECT_TRUE(fault(text).starts_with("JSON syntax error at line 1, column "))
        << text << ": " << fault(text);
}

TEST(Json, NamesLineColumnAndByte) {
  EXPECT_EQ(fault("{\n \"a\": 1,\n \"b\": tru}"),
            "JSON syntax error at line 3, column 10: while parsing value - invalid literal @ 20");
  EXPECT_EQ(fault("[1\n2]"),
            "JSON syntax error at line 2, column 2: while parsing array - unexpected number literal; "
            "expected ']' @ 4");
  // The text that was read is not repeated: it may be long.
  EXPECT_LT(fault("\"" + std::string(100000, 'a') + "\n\"").size(), 300u);
}

TEST(Json, FindsDuplicatesAmongManyKeys) {
  for (int count : {8, 9, 16, 17, 1000}) {
    std::string text = "{";
    for (int i = 0; i < count; i++) text += cat("\"key.", i, "\": {\"key.0\": 0}, ");
    EXPECT_EQ(fault(text + "\"other\": 1}"), "");
    for (int i : {0, 7, count - 1})
      EXPECT_EQ(fault(text + cat("\"key.", i, "\": 1}")),
                cat("the key 'key.", i, "' is there twice (duplicate) @ ", std::ssize(text)));
  }
}

TEST(Json, BoundsDepthAndKeys) {
  std::string deep(kMaxJsonDepth, '['), close(kMaxJsonDepth, ']');
  EXPECT_EQ(fault(deep + close), "");
  EXPECT_EQ(fault("[" + deep + close + "]"), "the JSON is nested deeper than the limit of 64 @ 64");
  EXPECT_EQ(fault("[1, " + deep + close + "]"), "the JSON is nested deeper than the limit of 64 @ 67");
  EXPECT_NE(fault(std::string(5'000'000, '[')), "");
  std::string key(kMaxJsonKeyBytes, 'k');
  EXPECT_EQ(fault("{\"" + key + "\": 1}"), "");
  EXPECT_EQ(fault("{\"" + key + "k\": 1}"), "a key of 65537 bytes is over the limit of 65536 @ 1");
}

TEST(Json, KeepsIntegersExact) {
  auto integer = [](std::string_view text) { return parse_json(text).integer("it"); };
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer(" -0 "), 0);
  for (const char* text :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"}) {
    EXPECT_EQ(parse_json(text).number("it"), text);
    EXPECT_TRUE(parse_json(text).is_integer()) << text;
    EXPECT_THROW(integer(text), Error) << text;
  }
  for (const char* text : {"1.0", "2.4e1", "true", "\"1\"", "null"})
    EXPECT_THROW(integer(text), Error) << text;
}

TEST(Json, KeepsTheSpellingOfNumbers) {
  for (const char* text :
       {"0", "-0", "1.50", "1E-2", "-1.25e+3", "0.1000000000000000055511151231257827", "1e-999"})
    for (const char* around : {"", " "}) EXPECT_EQ(parse_json(cat(around, text, around)).number("it"), text);
  JsonValue list = parse_json("[1,-2 ,3.5]");
  EXPECT_EQ(list.array("it")[0].number("it"), "1");
  EXPECT_EQ(list.array("it")[1].number("it"), "-2");
  EXPECT_EQ(list.array("it")[2].number("it"), "3.5");
}

TEST(Json, UnescapesToUtf8) {
  EXPECT_EQ(parse_json("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000z\"").string("it"),
            std::string("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z", 12));
  JsonValue v = parse_json("{\"a\\\"b\\\\\": \"c\\\\\\\"\"}");
  EXPECT_EQ(v.find("a\"b\\")->string("it"), "c\\\"");
}

TEST(Json, TakesPythonsNumbersWhereTheyAreWanted) {
  JsonValue v = parse_json("{\"NaN\": NaN, \"b\": [Infinity,-Infinity], \"c\": \"NaN \\\" NaN\"}",
                           JsonNumbers::kPython);
  EXPECT_EQ(v.find("NaN")->number("it"), "NaN");
  EXPECT_EQ(v.find("b")->array("it")[0].number("it"), "Infinity");
  EXPECT_EQ(v.find("b")->array("it")[1].number("it"), "-Infinity");
  EXPECT_EQ(v.find("b")->array("it")[1].real("it"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(v.find("c")->string("it"), "NaN \" NaN");
  for (const char* text : {"{NaN: 1}", "[1NaN]", "[NaN1]", "[NaNNaN]", "[--Infinity]", "[-NaN]", "[nan]",
                           "[Inf]", "[\"a\"NaN]", "[NaN\"a\"]"})
    EXPECT_NE(fault(text, JsonNumbers::kPython), "") << text;
  EXPECT_EQ(fault("NaN", JsonNumbers::kPython), "");
  EXPECT_NE(fault("{\"a\": NaN, \"a\": NaN}", JsonNumbers::kPython), "");
}

TEST(Json, GivesTheItemsOfALongListAway) {
  std::string seen;
  auto take = [&](JsonListed item) {
    seen += cat(item.name, "=", item.value.summary(), "@", item.offset, " ");
  };
  JsonValue rest = parse_json_list("{\"a\": [7], \"l\": [1, [2, 3], {\"l\": [4]}], \"z\": 8}", "l", take);
  EXPECT_EQ(seen, "=1@17 =an array@20 =an object@28 ");
  EXPECT_EQ(rest.find("a")->array("it").size(), 1u);
  EXPECT_TRUE(rest.find("l")->array("it").empty());
  EXPECT_EQ(rest.find("z")->integer("it"), 8);
  seen.clear();
  rest = parse_json_list("{\"l\": {\"x\": 1, \"y\": \"b\"}, \"m\": {\"l\": [1]}}", "l", take);
  EXPECT_EQ(seen, "x=1@12 y=a string@20 ");
  EXPECT_TRUE(rest.find("l")->object("it").empty());
  EXPECT_EQ(rest.find("m")->find("l")->array("it").size(), 1u);
  EXPECT_EQ(parse_json_list("{\"l\": 5}", "l", take).find("l")->integer("it"), 5);
  EXPECT_THROW(parse_json_list("{\"l\": {\"x\": 1, \"x\": 2}}", "l", take), Error);
}

TEST(JsonValue, KeepsSpellingsAndOrder) {
  JsonValue v = parse_json(R"({"z": 18446744073709551624, "a": [1, 2.5, "x", null, true], "o": {"k": -7}})");
  EXPECT_EQ(v.object("it")[0].name, "z");
  EXPECT_EQ(v.find("a")->array("a").size(), 5u);
  EXPECT_DOUBLE_EQ(v.find("a")->array("a")[1].real("x"), 2.5);
  EXPECT_EQ(v.find("o")->find("k")->integer("k"), -7);
  EXPECT_EQ(v.find("none"), nullptr);
  EXPECT_EQ(v.find("a")->find("k"), nullptr);
}

TEST(JsonValue, NamesTheFieldOfTheWrongType) {
  JsonValue v =
      parse_json(R"({"hidden": 18446744073709551624, "float": 8.5, "flag": true, "small": 1e-999})");
  struct Case {
    const char *key, *expected;
  };
  for (const Case& c :
       {Case{"hidden", "hidden: the integer 18446744073709551624 does not fit 63 bits (overflow)"},
        Case{"float", "float: an integer is expected, not 8.5"},
        Case{"flag", "flag has the wrong type: expected an integer, found true"}}) {
    try {
      v.find(c.key)->integer(c.key);
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), c.expected);
    }
  }
  EXPECT_THROW(v.find("small")->real("small"), Error);
}

TEST(CheckJson, JudgesAsTheParserDoesAndSaysWhatItIs) {
  EXPECT_EQ(check_json("[[1, {}], \"a\"]"), JsonType::kArray);
  EXPECT_EQ(check_json("{\"a\": NaN}", JsonNumbers::kPython), JsonType::kObject);
  EXPECT_EQ(check_json("null"), JsonType::kNull);
  for (const char* text : {"{\"a\": NaN}", "{\"a\": 1, \"a\": 2}", "[1, [2, 3]", "[1] 2", "{1: 2}", ""})
    EXPECT_THROW(check_json(text), Error) << text;
}

TEST(ParseConfig, HasAMostOfValues) {
  auto list = [](i64 count) {
    std::string text = "[";
    for (i64 i = 1; i < count; i++) text += "1,";
    return text + "1]";
  };
  EXPECT_EQ(std::ssize(parse_config(list(kMostConfigValues - 1)).array("it")), kMostConfigValues - 1);
  EXPECT_THROW(parse_config(list(kMostConfigValues)), Error);
  EXPECT_EQ(std::ssize(parse_json(list(kMostConfigValues + 1)).array("it")), kMostConfigValues + 1);
}

TEST(JsonString, EscapesAndReplacesWhatIsNotUtf8) {
  std::string out;
  append_json_string(out, "a\"\\\n\x7f\xc3\xa9\xff");
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u007f\xc3\xa9\xef\xbf\xbd\"");
  EXPECT_EQ(parse_json(out).string("it"), "a\"\\\n\x7f\xc3\xa9\xef\xbf\xbd");
}

}  // namespace
}  // namespace mckpt::impl
