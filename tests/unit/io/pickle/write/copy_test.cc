#include "io/pickle/write/copy.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"

namespace mckpt::impl {
namespace pickle_copy_test {

std::shared_ptr<const Pickle> parsed(const std::string& bytes) {
  return Pickle::own({bytes.begin(), bytes.end()}, {.storages = true});
}

std::string text(const std::string& bytes) { return pickle_line(parsed(bytes)->root(), 10000); }

TEST(PickleCopy, KeepsValuesOfEveryKind) {
  using namespace std::string_literals;
  const std::string pickles[] = {
      "\x80\x02N."s,
      "\x80\x02\x88."s,
      "\x80\x02K\x07."s,
      "\x80\x02J\xff\xff\xff\xff."s,
      "\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x7f."s,
      "\x80\x02G\x3f\xe0\x00\x00\x00\x00\x00\x00."s,
      "\x80\x02X\x03\x00\x00\x00"
      "a\xc3\xa9."s,
      "\x80\x04"
      "C\x03\x00\x7f\xff."s,
      "\x80\x02K\x01K\x02\x86."s,
      "\x80\x02)."s,
      "\x80\x02](K\x01NX\x01\x00\x00\x00xe."s,
      "\x80\x02}(X\x01\x00\x00\x00"
      "aK\x01X\x01\x00\x00\x00"
      "bK\x02u."s,
      "\x80\x04\x8f(K\x01K\x02\x90."s,
      "\x80\x02"
      "ctorch\nbfloat16\n."s,
      "\x80\x02"
      "cargparse\nNamespace\n)\x81}X\x01\x00\x00\x00xK\x05sb."s,
      "\x80\x02"
      "cmegatron.core\nBackend\nK\x03\x85R."s,
      "\x80\x02"
      "ccollections\ndefaultdict\ncbuiltins\nlist\n\x85RX\x01\x00\x00\x00x]s."s,
  };
  for (const std::string& pickle : pickles)
    EXPECT_EQ(text(copy_pickle(parsed(pickle)->root())), text(pickle));
}

TEST(PickleCopy, KeepsWhatIsSharedAndWhatHoldsItself) {
  using namespace std::string_literals;
  auto twice = parsed(copy_pickle(parsed("\x80\x02](]q\x01h\x01"
                                         "e."s)
                                      ->root()));
  PickleValue::Items::Iterator it = twice->root().items().begin();
  PickleValue first = *it++;
  EXPECT_EQ(first.node(), it->node());
  auto cycle = parsed(copy_pickle(parsed("\x80\x02]q\x00h\x00"
                                         "a."s)
                                      ->root()));
  EXPECT_EQ(cycle->root().items().begin()->node(), cycle->root().node());
}

// Python takes Color('RED') for the member whose value is 'RED'.
TEST(PickleCopy, KeepsHowAMemberOfAnEnumIsReached) {
  using namespace std::string_literals;
  std::string copy = copy_pickle(parsed("\x80\x02"
                                        "c__builtin__\ngetattr\ncx\nColor\nX\x03\x00\x00\x00RED\x86R."s)
                                     ->root());
  EXPECT_NE(copy.find("getattr"), std::string::npos);
  EXPECT_EQ(text(copy), "x.Color('RED')");
  EXPECT_TRUE(parsed(copy)->root().as_object().is_member());
  EXPECT_FALSE(parsed("\x80\x02"
                      "cx\nColor\nX\x03\x00\x00\x00RED\x85R."s)
                   ->root()
                   .as_object()
                   .is_member());
}

TEST(PickleCopy, KeepsStringsOfPython2) {
  using namespace std::string_literals;
  auto copy = parsed(copy_pickle(parsed("\x80\x02U\x02\xff\x00."s)->root()));
  EXPECT_EQ(copy->root().text(), "\xff\x00"s);
  EXPECT_TRUE(copy->notes().empty());
}

TEST(PickleCopy, RefusesASetThatHoldsItself) {
  using namespace std::string_literals;
  // As an argument of an item.
  auto set = parsed("\x80\x04\x8fq\x00(cm\nC\nh\x00\x85R\x90."s);
  EXPECT_THROW(copy_pickle(set->root()), Error);
}

TEST(PickleCopy, RefusesATensor) {
  using namespace std::string_literals;
  auto storage = parsed(
      "\x80\x02(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00"
      "0X\x03\x00\x00\x00"
      "cpuK\x03tQ."s);
  EXPECT_THROW(copy_pickle(storage->root()), Error);
}

}  // namespace pickle_copy_test
}  // namespace mckpt::impl
