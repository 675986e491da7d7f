#include "convert/facts/args_patch.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/pickle/classes.h"
#include "io/pickle/pickle.h"

namespace mckpt::impl {
namespace args_patch_test {

// The value of the pickle's dictionary under the key: "12", "'x'", "True" or "None".
std::string value_of(const std::string& pickle, std::string_view name) {
  std::vector<u8> bytes(pickle.begin(), pickle.end());
  Pickle read(bytes);
  EXPECT_EQ(read.bytes(), std::ssize(bytes));
  const PickleValue* v = read.root().find(name);
  if (!v) return "nothing";
  if (v->is(PickleValue::Kind::kText)) return cat("'", v->text(), "'");
  if (v->is(PickleValue::Kind::kClass)) return cat(v->as_class().module, ".", v->as_class().name);
  if (v->is(PickleValue::Kind::kBool)) return v->as_bool() ? "True" : "False";
  return v->is_int() ? cat(v->as_int()) : "None";
}

std::string key(std::string_view name, char memo) {
  return std::string("X") + static_cast<char>(name.size()) + std::string(3, '\0') + std::string(name) + "q" +
         memo;
}

// {"layers": VALUE, "other": 1} by protocol 2, with the value as its opcodes.
std::string two_entries(std::string_view value) {
  return "\x80\x02}q\x01(" + key("layers", 2) + std::string(value) + key("other", 3) + "K\x01u.";
}

TEST(ArgsPatch, PutsAnyValueBehindAnyPlainOne) {
  const std::string olds[] = {"N",
                              "\x88",
                              "K\x07",
                              std::string("M\x01\x02"),
                              std::string("J\x01\x00\x00\x00", 5),
                              std::string("X\x02\x00\x00\x00*-q\x04", 9),
                              std::string("\x8c\x02*-q\x04"),
                              "ctorch\nbfloat16\nq\x04"};
  const std::pair<ArgValue, std::string> news[] = {{std::monostate(), "None"},
                                                   {true, "True"},
                                                   {i64{300}, "300"},
                                                   {std::string("[*-]"), "'[*-]'"},
                                                   {DType::kF16, "torch.float16"}};
  for (const std::string& old : olds)
    for (const auto& [value, text] : news) {
      std::string pickle = two_entries(old);
      ASSERT_TRUE(put_value(pickle, "layers", value));
      EXPECT_EQ(value_of(pickle, "layers"), text);
      EXPECT_EQ(value_of(pickle, "other"), "1");
      std::string once = pickle;
      ASSERT_TRUE(put_value(pickle, "layers", value));
      EXPECT_EQ(pickle, once);  // what was put there gives way to the next
    }
}

TEST(ArgsPatch, BecomesWhatItWasWhereTheFirstValueIsWantedAgain) {
  for (const std::string& old :
       {std::string("N"), std::string("K\x07"), std::string("X\x02\x00\x00\x00*-q\x04", 9)}) {
    std::string pickle = two_entries(old);
    const std::string before = pickle;
    const std::string first = value_of(pickle, "layers");
    ASSERT_TRUE(put_value(pickle, "layers", std::string("M")));
    ArgValue again = std::monostate();
    if (first == "7") again = i64{7};
    if (first == "'*-'") again = std::string("*-");
    ASSERT_TRUE(put_value(pickle, "layers", again));
    EXPECT_EQ(pickle, before) << first;
  }
}

// The last one of two entries counts, so the first is not the place for a new number.
TEST(ArgsPatch, ReplacesNoIntegerInFrontOfAnotherEntry) {
  std::string pickle = two_entries("K\x07");
  ASSERT_TRUE(put_value(pickle, "layers", std::monostate()));
  EXPECT_FALSE(replace_integer(pickle, "layers", 2));
  ASSERT_TRUE(put_value(pickle, "layers", i64{2}));
  EXPECT_EQ(value_of(pickle, "layers"), "2");
}

TEST(ArgsPatch, KnowsAnEntryThatIsSetAlone) {
  std::string pickle = "\x80\x02}q\x01" + key("layers", 2) + "Ns.";
  for (i64 n : {5, 6}) {
    ASSERT_TRUE(put_value(pickle, "layers", n));
    EXPECT_EQ(value_of(pickle, "layers"), cat(n));
  }
}

TEST(ArgsPatch, PutsAKeyThatIsNotThereBesideAnother) {
  for (std::string pickle : {two_entries("K\x07"), "\x80\x02}q\x01" + key("layers", 2) + "Ns."}) {
    EXPECT_FALSE(put_value(pickle, "pattern", std::string("*-"), "nothing"));
    for (const char* text : {"*-", "[*-]"}) {
      ASSERT_TRUE(put_value(pickle, "layers", i64{2}));
      ASSERT_TRUE(put_value(pickle, "pattern", std::string(text), "layers"));
      EXPECT_EQ(value_of(pickle, "layers"), "2");
      EXPECT_EQ(value_of(pickle, "pattern"), cat("'", text, "'"));
    }
  }
}

TEST(ArgsPatch, WidensTheOneFrame) {
  std::string body = "}\x94(\x8c\x06layers\x94N\x8c\x05other\x94K\x01u.";
  auto framed = [](std::string_view frame, std::size_t bytes) {
    return "\x80\x04\x95" + std::string(1, static_cast<char>(bytes)) + std::string(7, '\0') +
           std::string(frame);
  };
  std::string pickle = framed(body, body.size());
  ASSERT_TRUE(put_value(pickle, "layers", std::string("M")));
  EXPECT_EQ(value_of(pickle, "layers"), "'M'");
  EXPECT_EQ(static_cast<u8>(pickle[3]), pickle.size() - 11);
  std::string two = framed(body.substr(0, 5), 5) + body.substr(5), before = two;
  EXPECT_FALSE(put_value(two, "layers", std::string("M")));
  EXPECT_EQ(two, before);
}

TEST(ArgsPatch, LeavesWhatItCannotTell) {
  std::string once = key("layers", 2) + "N";
  const std::string pickles[] = {
      "\x80\x02}q\x01(" + key("other", 2) + "Nu.",
      "\x80\x02}q\x01(" + key("layers", 2) + "]u.",                                // a list
      "\x80\x02}q\x01(" + once + key("other", 3) + "N" + once + "u.",              // twice, apart
      "\x80\x02}q\x01(" + key("a", 5) + "}(" + once + "u" + once + "u.",           // in two dictionaries
      "\x80\x02}q\x01(" + key("layers", 2) + std::string("X\xff\x00\x00\x00", 5),  // beyond the end
      "\x80\x02}q\x01(" + key("layers", 2) + "Nr\x01",
  };
  for (std::string pickle : pickles) {
    std::string before = pickle;
    EXPECT_FALSE(put_value(pickle, "layers", i64{1}));
    EXPECT_EQ(pickle, before);
  }
}

}  // namespace args_patch_test
}  // namespace mckpt::impl
