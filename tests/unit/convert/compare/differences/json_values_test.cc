#include "convert/compare/differences/json_values.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace json_values_test {

std::string told(std::string_view a, std::string_view b, i64 most = 9) {
  JsonDifferences d =
      json_differences(parse_json(a, JsonNumbers::kPython), parse_json(b, JsonNumbers::kPython), most);
  std::string out;
  for (const JsonDifference& one : d.first) out += cat(one.at, " ", one.a, "|", one.b, "\n");
  return d.count > std::ssize(d.first) ? cat(out, d.count, " in all\n") : out;
}

TEST(JsonDifferences, AreOfValuesAndNotOfSpellings) {
  for (auto [a, b] : {std::pair(R"({"a": 1, "b": [1, 2]})", R"({ "b" : [1,2],"a":1 })"),
                      {"1e-6", "0.000001"},
                      {"NaN", "NaN"},
                      {R"("\u00e9")", "\"\xc3\xa9\""},
                      {"[]", " [ ] "}})
    EXPECT_EQ(told(a, b), "") << a;
}

TEST(JsonDifferences, HaveTheirPlacesAndBothValues) {
  const std::vector<std::array<std::string, 3>> cases = {
      {R"({"a": 1})", R"({"a": 2})", ".a 1|2\n"},
      {R"({"a": 1})", R"({"a": 1.0})", ".a 1|1.0\n"},
      {R"({"a": 1})", R"({"b": null})", ".a 1|\n.b |null\n"},
      {R"({"a": {"b": {"c": "x"}}})", R"({"a": {"b": {"c": true}}})", ".a.b.c \"x\"|true\n"},
      {R"({"a": [1, [2, 3]]})", R"({"a": [1, [2, 4]]})", ".a[1][1] 3|4\n"},
      {R"({"a": [1]})", R"({"a": [1, 2]})", ".a [1]|[1, 2]\n"},
      {R"({"a b": 1, "": 2})", R"({"a b": 2, "": 3})", "[\"a b\"] 1|2\n[\"\"] 2|3\n"},
      {"1", "[]", " 1|[]\n"},
      {R"({"a": {"x": 1}})", R"({"a": 5})", ".a {\"x\": 1}|5\n"},
  };
  for (const auto& [a, b, expected] : cases) EXPECT_EQ(told(a, b), expected) << a;
}

TEST(JsonDifferences, CutLongValuesAndLists) {
  const std::string x(200, 'x'), y(200, 'y');
  EXPECT_EQ(told(cat("\"", x, "\""), cat("\"", y, "\"")),
            cat(" \"", x.substr(0, 79), "...|\"", y.substr(0, 79), "...\n"));
  EXPECT_EQ(told(cat("\"", x, "\""), cat("\"", x, "x\"")),
            cat(" a text of 200 bytes: \"", x.substr(0, 79), "...|a text of 201 bytes: \"", x.substr(0, 79),
                "...\n"));
  EXPECT_EQ(told("[1, 2, 3]", "[4, 5, 6]", 2), "[0] 1|4\n[1] 2|5\n3 in all\n");
}

}  // namespace json_values_test
}  // namespace mckpt::impl
