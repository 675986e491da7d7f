// Pickles made of other pickles, read back: values that use the same slots of the memo stay apart.
#include "io/pickle/write/compose.h"

#include <gtest/gtest.h>

#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace compose_test {

// The class once in full and once from the memo.
std::string two_of_class(std::string_view name) {
  PickleWriter w;
  w.op(Op::kMark), w.class_name("argparse", name), w.class_name("argparse", name), w.op(Op::kTuple);
  return w.finish();
}

std::string number(i64 value) {
  PickleWriter w;
  w.integer(value);
  return w.finish();
}

TEST(ComposedPickle, KeepsValuesWithTheSameMemoSlotsApart) {
  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::string made = pickle_dict(Entries{{"a", two_of_class("Namespace")},
                                         {"b", pickle_list(std::vector{number(7), two_of_class("Action")})},
                                         {"c", pickle_numbered(std::vector{number(1), number(2)})}});
  Pickle read({reinterpret_cast<const u8*>(made.data()), made.size()}, {});
  PickleValue root = read.root();
  ASSERT_EQ(root.size(), 3);
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(root.find("a")->at(i).as_class().name, "Namespace");
    PickleValue second = *std::next(root.find("b")->items().begin());
    EXPECT_EQ(second.at(i).as_class().name, "Action");
  }
  EXPECT_EQ((*root.find("b")->items().begin()).as_int(), 7);
  i64 key = 0;
  for (PickleEntry e : root.find("c")->entries()) {
    EXPECT_EQ(e.key.as_int(), key++);
    EXPECT_EQ(e.value.as_int(), key);
  }
  EXPECT_EQ(key, 2);
}

TEST(ComposedPickle, MayBeEmpty) {
  std::string made = pickle_list({});
  Pickle read({reinterpret_cast<const u8*>(made.data()), made.size()}, {});
  EXPECT_TRUE(read.root().is(PickleValue::Kind::kList));
  EXPECT_EQ(read.root().size(), 0);
}

}  // namespace compose_test
}  // namespace mckpt::impl
