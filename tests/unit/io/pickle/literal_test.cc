#include "io/pickle/literal.h"

#include <gtest/gtest.h>

#include "io/pickle/pickle.h"

namespace mckpt::impl {
namespace pickle_literal_test {

using namespace std::string_literals;

std::string literal(const std::string& pickle) {
  auto parsed = Pickle::own({pickle.begin(), pickle.end()}, {.storages = true});
  return pickle_literal(parsed->root()).value_or("none");
}

TEST(PickleLiteral, IsWhatPythonReadsBack) {
  const std::pair<std::string, std::string> cases[] = {
      {"\x80\x02N."s, "None"},
      {"\x80\x02\x88."s, "True"},
      {"\x80\x02J\xff\xff\xff\xff."s, "-1"},
      {"\x80\x02G\x3f\xe0\x00\x00\x00\x00\x00\x00."s, "0.5"},
      {"\x80\x02G\x40\x00\x00\x00\x00\x00\x00\x00."s, "2.0"},
      {"\x80\x02G\x7f\xf0\x00\x00\x00\x00\x00\x00."s, "1e999"},
      {"\x80\x02G\x7f\xf8\x00\x00\x00\x00\x00\x00."s, "nan"},
      {"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f."s, "0x7fffffffffffffffff"},
      {"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\xff."s, "-0x010000000000000000"},
      {"\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x80."s, "-0x800000000000000000"},
      {"\x80\x02X\x03\x00\x00\x00"
       "a\xc3\xa9."s,
       "'a\xc3\xa9'"},
      {"\x80\x02X\x04\x00\x00\x00'\\\n\x00."s, "'\\x27\\x5c\\x0a\\x00'"},
      {"\x80\x04"
       "C\x03\x00\x7f\xff."s,
       "b'\\x00\\x7f\\xff'"},
      {"\x80\x02K\x01\x85."s, "(1,)"},
      {"\x80\x02)."s, "()"},
      {"\x80\x02](K\x01NX\x01\x00\x00\x00xe."s, "[1, None, 'x']"},
      {"\x80\x02}X\x01\x00\x00\x00"
       "aK\x01s."s,
       "{'a': 1}"},
      {"\x80\x04\x8f(K\x01K\x02\x90."s, "{1, 2}"},
  };
  for (const auto& [pickle, text] : cases) EXPECT_EQ(literal(pickle), text);
}

TEST(PickleLiteral, OtherValuesHaveNone) {
  const std::string pickles[] = {
      "\x80\x04\x8f."s,  // an empty set
      "\x80\x02"
      "ctorch\nbfloat16\n."s,
      "\x80\x02]cargparse\nNamespace\n)\x81}X\x01\x00\x00\x00xK\x05sba."s,  // in a list
      "\x80\x02]q\x00h\x00"
      "a."s,  // a list that is in itself
  };
  for (const std::string& pickle : pickles) EXPECT_EQ(literal(pickle), "none");
}

}  // namespace pickle_literal_test
}  // namespace mckpt::impl
