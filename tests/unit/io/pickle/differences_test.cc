#include "io/pickle/differences.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/base/text.h"
#include "io/pickle/keys.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/copy.h"
#include "tests/support/torch_builder.h"
#include "tests/support/zip_builder.h"

namespace mckpt::impl::differences_test {
namespace {

using namespace std::string_literals;

// "at: expected | found" of all differences; storages are equal. Both orders find as many.
std::string told(const std::string& expected, const std::string& found) {
  const PickleRules rules{.storages = true};
  const Pickle a(as_bytes(expected), rules), b(as_bytes(found), rules);
  auto same_storage = [](PickleValue, PickleValue) { return true; };
  const PickleDifferences there = pickle_differences(a.root(), b.root(), 10, same_storage);
  const PickleDifferences back = pickle_differences(b.root(), a.root(), 10, same_storage);
  EXPECT_EQ(there.count, back.count);
  std::string out;
  for (const PickleDifference& d : there.first)
    out += cat(out.empty() ? "" : "; ", d.at, ": ", d.expected, " | ", d.found);
  return out.empty() ? "equal" : out;
}

struct Case {
  const char* name;
  std::string expected, found, told;
};

TEST(PickleDifferences, AreOfValuesAndTypesAndNotOfLines) {
  const Case kCases[] = {
      {"keys of bytes", "}C\3abcK\1s.", "}C\3xyzK\1s.", "[b'abc']: 1 | nothing; [b'xyz']: nothing | 1"},
      {"a text and bytes as keys", "}X\3\0\0\0abcK\1s."s, "}C\3abcK\1s.",
       ".abc: 1 | nothing; [b'abc']: nothing | 1"},
      {"items of bytes", "\x8f(C\3abc\x90.", "\x8f(C\3xyz\x90.", ": set of 1 | another value of this kind"},
      {"the order of a set", "\x8f(K\1C\1aK\3\x90.", "\x8f(C\1aK\3K\1\x90.", "equal"},
      {"long integers", "}\x8a\x09\0\0\0\0\0\0\0\0\1K\1s."s, "}\x8a\x0a\0\0\0\0\0\0\0\0\1\0K\1s."s, "equal"},
      {"an integer and a longer spelling of it", "\x8a\x09\1\0\0\0\0\0\0\0\0."s, "K\1.", "equal"},
      {"set and frozenset", "\x8f(K\1\x90.", "(K\1\x91.", ": set {1} | frozenset {1}"},
      {"frozenset of two protocols", "cbuiltins\nfrozenset\n](K\1e\x85R.", "(K\1\x91.", "equal"},
      {"tuple and Size", "K\1K\2\x86.", "ctorch\nSize\nK\1K\2\x86\x85R.",
       ": tuple (1, 2) | torch.Size (1, 2)"},
      {"tuple and Size of one node", "K\1K\2\x86q\0ctorch\nSize\nh\0\x85R\x86."s, "K\1K\2\x86q\0h\0\x86."s,
       "[1]: torch.Size (1, 2) | tuple (1, 2)"},
      {"a tuple of a Size", "cbuiltins\ntuple\nctorch\nSize\nK\1K\2\x86\x85R\x85R.", "K\1K\2\x86.", "equal"},
      {"bytes and bytearray", "C\1a.", "cbuiltins\nbytearray\nC\1a\x85R.",
       ": bytes <1 byte> | bytearray <1 byte>"},
      {"bytearray of two protocols", "\x96\1\0\0\0\0\0\0\0a."s, "cbuiltins\nbytearray\nC\1a\x85R.", "equal"},
      {"dict and OrderedDict", "}.", "ccollections\nOrderedDict\n)R.", ": dict {} | OrderedDict {}"},
      {"list and deque", "].", "ccollections\ndeque\n)R.", ": list [] | deque []"},
      {"deques of two lengths", "ccollections\ndeque\n)K\5\x86R.", "ccollections\ndeque\n)K\6\x86R.",
       "(args)[1]: 5 | 6"},
      {"a deque without a length", "ccollections\ndeque\n)N\x86R.", "ccollections\ndeque\n)R.", "equal"},
      {"attributes", "ccollections\nOrderedDict\n)R}X\1\0\0\0mK\1sb."s,
       "ccollections\nOrderedDict\n)R}X\1\0\0\0mK\2sb."s, "(attributes).m: 1 | 2"},
      {"attributes of one side", "ccollections\nOrderedDict\n)R}X\1\0\0\0mK\1sb."s,
       "ccollections\nOrderedDict\n)R.", "(attributes): {'m': 1} | None"},
      {"a key that comes twice", "}(K\1K\5K\1K\6u.", "}K\1K\6s.", "equal"},
      {"a key that comes twice to Python", "}(K\1K\5\x88K\6u.", "}K\1K\6s.", "equal"},
      {"the same the other way round", "}(K\1K\5\x88K\6u.", "}(\x88K\5K\1K\6u.",
       "[1]: 6 | nothing; [True]: nothing | 6"},
      {"an item that comes twice to Python", "\x8f(K\1\x88\x90.", "\x8f(K\1\x90.", "equal"},
      {"objects as items", "\x8f(cm\nC\nK\1\x85R\x90.", "\x8f(cm\nC\nK\2\x85R\x90.", ": {m.C(1)} | {m.C(2)}"},
  };
  for (const Case& c : kCases) EXPECT_EQ(told(c.expected, c.found), c.told) << c.name;
}

TEST(PickleDifferences, FindWhatIsBeyondAnyLengthAndDepth) {
  const std::string doubled = "2\x86";  // a tuple of the value twice
  std::string one = "\x8f(K\1", other = "\x8f(K\2";
  for (int n = 0; n < 400; n++) one += doubled, other += doubled;
  one += "\x90.", other += "\x90.";
  EXPECT_EQ(told(one, one), "equal");
  EXPECT_NE(told(one, other), "equal");
  std::string long_one = "\x8f(", long_other = "\x8f(";
  for (int n = 0; n < 3000; n++) {
    long_one += "M" + little_endian(static_cast<u64>(n), 2);
    long_other += "M" + little_endian(static_cast<u64>(n + (n == 2999)), 2);
  }
  long_one += "\x90.", long_other += "\x90.";
  EXPECT_EQ(told(long_one, long_one), "equal");
  EXPECT_NE(told(long_one, long_other), "equal");
}

// Lists that are put into each other when both are there already have a depth that no node knows.
TEST(PickleDifferences, EndBelowWhatNoPicklerWrites) {
  constexpr u64 kLists = 100'000;
  std::string pickle;
  for (u64 n = 0; n < kLists; n++) pickle += "]r" + little_endian(n, 4);
  for (u64 n = 0; n + 1 < kLists; n++)
    pickle += "j" + little_endian(n, 4) + "j" + little_endian(n + 1, 4) + "a0";
  pickle += "j" + little_endian(0, 4);
  EXPECT_NE(told(pickle + ".", pickle + ".").find("not compared: it is nested too deep"), std::string::npos);
  const std::string in_a_set = pickle + "\x8f(cm\nC\nj" + little_endian(0, 4) + "\x85R\x90.";
  EXPECT_NE(
      told(in_a_set, in_a_set).find("not compared: a key of a dict or an item of a set is nested too deep"),
      std::string::npos);
}

TEST(PickleDifferences, SayWhatIsNotCompared) {
  const std::string itself = "\x8f(cm\nC\n]q\0h\0a\x85R\x90."s,
                    storage = "\x8f(" + pickled_storage({}) + "\x90.";
  EXPECT_NE(told(itself, itself).find("not compared: "), std::string::npos);
  EXPECT_NE(told(storage, storage).find("not compared: "), std::string::npos);
  EXPECT_EQ(told("]q\0h\0a."s, "]q\0h\0a."s), "equal");  // a list that contains itself is one that does
}

TEST(PickleKeys, HaveNamesOfTheirOwn) {
  auto name = [](const std::string& key) { return key_name(Pickle(as_bytes(key)).root()); };
  EXPECT_EQ(name("X\1\0\0\0a."s), "a");
  EXPECT_EQ(name("K\7."), "7");
  EXPECT_EQ(name("K\1X\1\0\0\0a\x86."s), "(1, 'a')");
  EXPECT_EQ(name("C\4a'\\\xff."), "b'a\\'\\\\\\xff'");
  // The name has a digest where a line shortens the key.
  EXPECT_NE(name("X\1\0\0\0aC\1b\x86."s), name("X\1\0\0\0aC\1c\x86."s));
  EXPECT_EQ(name("X\1\0\0\0aC\1b\x86."s), name("X\1\0\0\0aC\1b\x86."s));
  EXPECT_TRUE(name("X\1\0\0\0aC\1b\x86."s).starts_with("('a', <1 byte>)~"));
  EXPECT_NE(name("\x8a\x09\1\0\0\0\0\0\0\0\1."s), name("\x8a\x09\2\0\0\0\0\0\0\0\1."s));
  // ("a', 'b", "c") and ("a", "b', 'c")
  EXPECT_NE(name("X\6\0\0\0a', 'bX\1\0\0\0c\x86."s), name("X\1\0\0\0aX\6\0\0\0b', 'c\x86."s));
}

// A copy has the type that was read.
TEST(PickleCopies, KeepTypesAndAttributes) {
  const std::string kValues[] = {"(K\1\x91.",
                                 "\x8f(K\1\x90.",
                                 "ctorch\nSize\nK\1K\2\x86\x85R.",
                                 "K\1K\2\x86q\0ctorch\nSize\nh\0\x85R\x86."s,
                                 "cbuiltins\nbytearray\nC\1a\x85R.",
                                 "C\1a.",
                                 "ccollections\ndeque\n)R(K\1K\2e.",
                                 "ccollections\ndeque\n)K\5\x86R(K\1K\2e.",
                                 "ccollections\nOrderedDict\n)RK\1K\2s.",
                                 "ccollections\nOrderedDict\n)R}X\1\0\0\0mK\1sb."s};
  for (const std::string& value : kValues)
    EXPECT_EQ(told(value, copy_pickle(Pickle(as_bytes(value)).root())), "equal") << value;
}

}  // namespace
}  // namespace mckpt::impl::differences_test
