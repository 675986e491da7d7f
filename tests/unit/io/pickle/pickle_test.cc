#include "io/pickle/pickle.h"

#include <gtest/gtest.h>

#include "core/base/text.h"
#include "io/pickle/render.h"
#include "tests/support/throws.h"
#include "tests/support/zip_builder.h"

namespace mckpt::impl {
namespace {

using namespace std::string_literals;

// The value as one line, or what reading it throws.
std::string read(const std::string& bytes, const PickleRules& rules = {}) {
  std::string line;
  std::string error = thrown_by([&] { line = pickle_line(Pickle(as_bytes(bytes), rules).root(), 1000); });
  return error == "nothing" ? line : error;
}

struct Case {
  const char* name;
  std::string pickle, expected;
};

void check(std::span<const Case> cases, const PickleRules& rules = {}) {
  for (const Case& c : cases) EXPECT_EQ(read(c.pickle, rules), c.expected) << c.name;
}

TEST(Pickle, ReadsNumbersOfEveryOpcode) {
  const Case kCases[] = {
      {"NONE", "N.", "None"},
      {"NEWTRUE", "\x88.", "True"},
      {"NEWFALSE", "\x89.", "False"},
      {"INT true", "I01\n.", "True"},
      {"INT false", "I00\n.", "False"},
      {"INT", "I-12\n.", "-12"},
      {"INT one", "I1\n.", "1"},
      {"LONG", "L123456789012L\n.", "123456789012"},
      {"LONG wide", "L119547037146038801333356L\n.", "integer of 80 bits"},
      {"BININT", "J\xff\xff\xff\xff.", "-1"},
      {"BININT1", "K\xff.", "255"},
      {"BININT2", "M\xff\xff.", "65535"},
      {"LONG1 empty", "\x8a\0."s, "0"},
      {"LONG1", "\x8a\x02\x00\x80."s, "-32768"},
      {"LONG1 of 64 bits", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", "9223372036854775807"},
      {"LONG1 lowest", "\x8a\x08\0\0\0\0\0\0\0\x80."s, "-9223372036854775808"},
      {"LONG1 wide", "\x8a\x09\0\0\0\0\0\0\0\x80\0."s, "integer of 72 bits"},
      {"LONG1 longer than it need be", "\x8a\x0b\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff."s, "-1"},
      {"LONG1 with a sign byte too many", "\x8a\x0b\0\0\0\0\0\0\0\x80\0\0\0."s, "integer of 72 bits"},
      {"LONG4", "\x8b\x02\0\0\0\x34\x12."s, "4660"},
      {"FLOAT", "F1.5\n.", "1.5"},
      {"FLOAT nan", "Fnan\n.", "nan"},
      {"BINFLOAT", "G\x3f\xf8\0\0\0\0\0\0."s, "1.5"},
  };
  check(kCases);
}

TEST(Pickle, ReadsTextsOfEveryOpcode) {
  const Case kCases[] = {
      {"STRING", "S'a\\n\\x41\\'\\101'\n.", "'a\\x0aA'A'"},
      {"UNICODE", "Va\\u00e9\xe9\n.", "'a\xc3\xa9\xc3\xa9'"},
      {"UNICODE long", "Vdecoder.layers.0.\\u00e9\\u006d\xe9lp.weight\n.",
       "'decoder.layers.0.\xc3\xa9m\xc3\xa9lp.weight'"},
      {"BINSTRING", "T\x03\0\0\0abc."s, "'abc'"},
      {"SHORT_BINSTRING", "U\x03"s + "abc.", "'abc'"},
      {"BINUNICODE", "X\x03\0\0\0abc."s, "'abc'"},
      {"SHORT_BINUNICODE", "\x8c\x03"s + "abc.", "'abc'"},
      {"BINUNICODE8", "\x8d\x03\0\0\0\0\0\0\0abc."s, "'abc'"},
      {"BINUNICODE surrogate", "X\x03\0\0\0\xed\xa0\x80."s, "'\\xed\\xa0\\x80'"},
      {"BINBYTES", "B\x03\0\0\0abc."s, "<3 bytes>"},
      {"SHORT_BINBYTES", "C\x03"s + "abc.", "<3 bytes>"},
      {"BINBYTES8", "\x8e\x03\0\0\0\0\0\0\0abc."s, "<3 bytes>"},
      {"BYTEARRAY8", "\x96\x03\0\0\0\0\0\0\0abc."s, "<3 bytes>"},
  };
  check(kCases);
}

TEST(Pickle, ReadsContainersOfEveryOpcode) {
  const Case kCases[] = {
      {"TUPLE", "(K\1K\2t."s, "(1, 2)"},
      {"EMPTY_TUPLE", ").", "()"},
      {"TUPLE1", "K\1\x85.", "(1,)"},
      {"TUPLE2", "K\1K\2\x86.", "(1, 2)"},
      {"TUPLE3", "K\1K\2K\3\x87.", "(1, 2, 3)"},
      {"LIST", "(K\1K\2l.", "[1, 2]"},
      {"EMPTY_LIST", "].", "[]"},
      {"APPEND", "]K\1aK\2a.", "[1, 2]"},
      {"APPENDS", "](K\1K\2e(K\3e.", "[1, 2, 3]"},
      {"DICT", "(K\1K\2d.", "{1: 2}"},
      {"EMPTY_DICT", "}.", "{}"},
      {"SETITEM", "}K\1K\2s.", "{1: 2}"},
      {"SETITEMS", "}(K\1K\2K\3K\4u.", "{1: 2, 3: 4}"},
      {"EMPTY_SET", "\x8f.", "{}"},
      {"ADDITEMS", "\x8f(K\1K\2\x90.", "{1, 2}"},
      {"FROZENSET", "(K\1\x91.", "{1}"},
      {"POP",
       "K\1K\2"
       "0.",
       "1"},
      {"POP of a mark", "K\1(0.", "1"},
      {"POP_MARK",
       "K\1(K\2K\3"
       "1.",
       "1"},
      {"DUP",
       "K\1"
       "2\x86.",
       "(1, 1)"},
      {"PUT and GET", "]p0\n0g0\n.", "[]"},
      {"BINPUT and BINGET",
       "K\1q\5"
       "0h\5.",
       "1"},
      {"LONG_BINPUT and LONG_BINGET",
       "K\1r\5\0\0\0"
       "0j\5\0\0\0."s,
       "1"},
      {"MEMOIZE",
       "K\7\x94K\x08\x94"
       "00h\1.",
       "8"},
      {"PROTO and FRAME", "\x80\4\x95\2\0\0\0\0\0\0\0N."s, "None"},
  };
  check(kCases);
}

TEST(Pickle, KeepsClassesAndCallsAsRecords) {
  const Case kCases[] = {
      {"GLOBAL", "ctorch\nfloat32\n.", "torch.float32"},
      {"STACK_GLOBAL", "\x8c\5torch\x8c\4Size\x93.", "torch.Size"},
      {"REDUCE", "ctorch\ndevice\nX\3\0\0\0cpu\x85R."s, "torch.device('cpu')"},
      {"NEWOBJ and BUILD", "cargparse\nNamespace\n)\x81}X\1\0\0\0aK\1sb."s, "argparse.Namespace(){'a': 1}"},
      {"NEWOBJ_EX", "cargparse\nNamespace\n)}X\1\0\0\0aK\1s\x92."s, "argparse.Namespace({'a': 1})"},
      {"INST", "(K\1iargparse\nNamespace\n.", "argparse.Namespace(1)"},
      {"OBJ", "(cargparse\nNamespace\nK\1o.", "argparse.Namespace(1)"},
      {"copyreg", "ccopy_reg\n_reconstructor\n(cx\nY\nc__builtin__\nobject\nNtR.",
       "x.Y(builtins.object, None)"},
      {"enum by value", "cmegatron.core.enums\nModelType\nK\1\x85R.", "megatron.core.enums.ModelType(1)"},
      {"enum by name", "c__builtin__\ngetattr\ncx\nColor\nX\3\0\0\0RED\x86R."s, "x.Color('RED')"},
      {"subclass of dict", "cx\nMyDict\n)\x81K\1K\2s.", "x.MyDict(){1: 2}"},
      {"subclass of list", "cx\nMyList\n)\x81K\1a.", "x.MyList()[1]"},
  };
  check(kCases);
}

TEST(Pickle, ShowsWellKnownObjectsAsTheyPrintThemselves) {
  std::string dtype =
      "cnumpy\ndtype\nX\2\0\0\0f8\x89\x88\x87R(K\3X\1\0\0\0<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"s;
  const Case kCases[] = {
      {"path", "cpathlib\nPosixPath\n(X\1\0\0\0/X\1\0\0\0aX\1\0\0\0btR."s, "PosixPath('/a/b')"},
      {"numpy scalar", "cnumpy.core.multiarray\nscalar\n" + dtype + "C\x08\0\0\0\0\0\0\xe0\x3f\x86R."s,
       "float64(0.5)"},
      {"numpy array",
       "cnumpy._core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
       "C\1b\x87R(K\1K\2\x85"s +
           dtype + "\x89" + "C\x10" + std::string(16, 'x') + "tb.",
       "ndarray float64 (2,)"},
      {"numpy scalar of garbage", "cnumpy.core.multiarray\nscalar\n)R.", "?(...)"},
      {"numpy dtype", "cnumpy\ndtype\nX\2\0\0\0f8\x85R."s, "dtype('f8')"},
      {"numpy dtype that holds itself", "]q\0cnumpy\ndtype\nh\0\x85Ra."s, "[dtype(...)]"},
      {"numpy array whose shape holds it",
       "]q\0cnumpy._core.multiarray\n_reconstruct\n)R(K\1h\0"s + dtype + "\x89Ntba.",
       "[ndarray float64 ...]"},
  };
  check(kCases);
}

TEST(Pickle, BuildsPlainValuesThatPythonCallsConstructorsFor) {
  const Case kCases[] = {
      {"OrderedDict", "ccollections\nOrderedDict\n)R(K\1K\2u.", "{1: 2}"},
      {"OrderedDict of pairs", "ccollections\nOrderedDict\n](](K\1K\2ee\x85R.", "{1: 2}"},
      {"OrderedDict with attributes", "ccollections\nOrderedDict\n)R}X\1\0\0\0mK\1sb."s,
       "{} + attributes {'m': 1}"},
      {"torch.Size", "ctorch\nSize\nK\2K\3\x86\x85R.", "(2, 3)"},
      {"set", "c__builtin__\nset\n](K\1e\x85R.", "{1}"},
      {"frozenset", "cbuiltins\nfrozenset\n]\x85R.", "{}"},
      {"deque", "ccollections\ndeque\n](K\1e\x85R.", "[1]"},
      {"deque with a greatest length", "ccollections\ndeque\n)K\5\x86R(K\1e.", "collections.deque((), 5)[1]"},
      {"bytes of protocol 2", "c_codecs\nencode\nX\4\0\0\0\xc3\xbf\xc2\x80X\6\0\0\0latin1\x86R."s,
       "<2 bytes>"},
      {"no bytes of protocol 2", "c__builtin__\nbytes\n)R.", "<0 bytes>"},
      {"bytearray", "cbuiltins\nbytearray\nC\2ab\x85R.", "<2 bytes>"},
  };
  check(kCases);
}

TEST(Pickle, RefusesWhatDoesNotFitTogether) {
  const std::string kDamaged = "MC1210 the pickle is damaged: ";
  const Case kCases[] = {
      {"no value", ".", kDamaged + "an opcode finds the stack empty"},
      {"open mark", "N(.", kDamaged + "it ends with 1 open marks on its stack"},
      {"opcode", "\xff.", kDamaged + "there is no opcode 255"},
      {"POP", "0.", kDamaged + "an opcode finds the stack empty"},
      {"APPEND over a mark", "](a.", kDamaged + "an opcode finds the stack empty"},
      {"TUPLE without mark", "Nt.", kDamaged + "an opcode needs a mark on the stack, but there is none"},
      {"TUPLE2 of one", "N\x86.", kDamaged + "a tuple has fewer items than it should"},
      {"TUPLE2 over a mark", "N(N\x86.", kDamaged + "a tuple has fewer items than it should"},
      {"APPENDS to nothing", "(K\1e.", kDamaged + "an opcode finds nothing to fill below its mark"},
      {"APPEND to a dict", "}K\1a.",
       kDamaged + "an opcode that fills a list (SETITEM, APPEND, ADDITEMS) finds a dict"},
      {"SETITEM on a list", "]K\1K\2s.",
       kDamaged + "an opcode that fills a dict (SETITEM, APPEND, ADDITEMS) finds a list"},
      {"SETITEM on a tensor", "ctorch._utils\n_rebuild_tensor_v2\n)RK\1K\2s.",
       kDamaged + "an opcode that fills a dict (SETITEM, APPEND, ADDITEMS) finds an object"},
      {"SETITEMS without value", "}(K\1u.", kDamaged + "a dict is filled with a key that has no value"},
      {"list as key", "}]K\1s.", kDamaged + "a dictionary key is a list"},
      {"list inside a key", "}]\x85K\1s.", kDamaged + "a dictionary key is a list"},
      {"set as key", "}\x8fK\1s.", kDamaged + "a dictionary key is a set"},
      {"bytearray as key", "}cbuiltins\nbytearray\n)RK\1s.", kDamaged + "a dictionary key is a bytearray"},
      {"Counter inside a key", "}ccollections\nCounter\n)R\x85K\1s.",
       kDamaged + "a dictionary key is a Counter"},
      {"list in a set", "\x8f(]\x90.", kDamaged + "an item of a set is a list"},
      {"dict in set([...])", "cbuiltins\nset\n](}e\x85R.", kDamaged + "an item of a set is a dict"},
      {"list in a frozenset", "(]\x85\x91.", kDamaged + "an item of a set is a list"},
      {"set counted",
       "ccollections\nCounter\n](\x8f"
       "e\x85R.",
       kDamaged + "a dictionary key is a set"},
      {"memo not written", "h\7.", kDamaged + "slot 7 of the memo is read but was never written"},
      {"BINPUT of nothing", "q\1.", kDamaged + "an opcode finds the stack empty"},
      {"REDUCE of a number", "K\1)R.", kDamaged + "it calls an integer, not a class or function"},
      {"REDUCE of no tuple", "ctorch\nSize\nK\1R.",
       kDamaged + "the arguments of a call are an integer, not a tuple"},
      {"REDUCE of a dtype", "ctorch\nfloat32\n)R.",
       kDamaged + "it calls torch.float32, not a class or function"},
      {"REDUCE of a storage class", "ctorch\nFloatStorage\n)R.",
       kDamaged + "it calls torch.FloatStorage, not a class or function"},
      {"NEWOBJ of a layout", "ctorch\nstrided\n)\x81.",
       kDamaged + "it calls torch.strided, not a class or function"},
      {"BUILD of a plain dict", "}}b.",
       kDamaged + "BUILD gives attributes to a dict that is not an OrderedDict"},
      {"BUILD of a dict with a number", "ccollections\nOrderedDict\n)RK\1b.",
       kDamaged + "BUILD gives a dict attributes that are no dict: an integer"},
      {"BUILD of a dict with pairs", "ccollections\nOrderedDict\n)R(K\1tb.",
       kDamaged + "BUILD gives a dict attributes that are no dict: a tuple"},
      {"BUILD of a list", "]}b.", kDamaged + "BUILD gives a state to a list"},
      {"BUILD twice", "cx\nY\n)\x81}b}b.", kDamaged + "BUILD gives an object its state twice"},
      {"BUILD of a record with a list", "ctorch.distributed.checkpoint.planner\nWriteItem\n)\x81](K\1eb.",
       kDamaged + "BUILD gives WriteItem a state that is no dict: a list"},
      {"BUILD of a tensor", "ctorch._utils\n_rebuild_tensor_v2\n)R}b.",
       kDamaged + "BUILD gives a state to a tensor"},
      {"string", "X\1\0\0\0\xff."s, kDamaged + "a string is not UTF-8"},
      {"module", "cm\xe9\nC\n.", kDamaged + "the name of a class is not UTF-8"},
      {"class of INST", "(im\nC\x80\n.", kDamaged + "the name of a class is not UTF-8"},
      {"float", "F1x\n.", kDamaged + "a float is malformed"},
      {"integer", "Iabc\n.", kDamaged + "an integer is malformed"},
      {"quotes", "Sabc\n.", kDamaged + "a quoted string is malformed"},
      {"persistent id outside of a torch file", "K\1Q.",
       kDamaged + "it has a persistent id, which only tensors of torch files have"},
      {"persistent id as text", "P0\n.",
       "MC1212 the pickle has a persistent id in text form (opcode PERSID), unsupported"},
      {"extension", "\x82\1.",
       "MC1212 the pickle names classes by extension codes (opcode EXT), unsupported"},
      {"buffer", "\x97.", "MC1212 the pickle keeps data outside of itself (opcode NEXT_BUFFER), unsupported"},
      {"protocol", "\x80\6N.", "MC1212 the pickle's protocol 6 is unsupported: expected protocol 0 to 5"},
      {"codec", "c_codecs\nencode\nX\1\0\0\0aX\5\0\0\0rot13\x86R."s,
       "MC1212 the pickle encodes text by a codec other than latin1, unsupported: found rot13"},
      {"bytearray of a size", "c__builtin__\nbytearray\n\x8a\5\0\0\0\0\x40\x85R."s,
       "MC1211 bytes are made from a number alone, which could demand any amount of memory: found "
       "274877906944"},
  };
  check(kCases);
}

TEST(Pickle, TakesPersistentIdsOfStoragesInTorchFiles) {
  PickleRules torch{.storages = true};
  EXPECT_EQ(read("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                 "7X\3\0\0\0cpuK\4tQ."s,
                 torch),
            "<storage 7>");
  EXPECT_EQ(read("(X\6\0\0\0moduleK\1tQ."s, torch),
            "MC1212 a persistent id names a 'module', not a storage: unsupported");
  EXPECT_EQ(read("NQ.", torch), "MC1212 a persistent id does not name a storage: unsupported");
}

TEST(Pickle, SeesEveryTruncation) {
  std::string whole =
      "\x80\4\x95\x20\0\0\0\0\0\0\0}\x94(\x8c\1a\x94K\1\x8c\1b\x94G\x3f\xf8\0\0\0\0\0\0\x8c\1c\x94]\x94(K\1K\2eu."s;
  whole[3] = static_cast<char>(whole.size() - 11);
  ASSERT_EQ(read(whole), "{'a': 1, 'b': 1.5, 'c': [1, 2]}");
  for (std::size_t n = 0; n < whole.size(); n++)
    EXPECT_THROW(Pickle(as_bytes(whole).first(n)), PickleTruncated) << n;
}

TEST(Pickle, TakesTheLastValueAsPythonDoes) { EXPECT_EQ(read("K\1K\2."), "2"); }

TEST(Pickle, StopsAtStop) {
  std::string bytes = "K\1.garbage";
  Pickle pickle(as_bytes(bytes));
  EXPECT_EQ(pickle.bytes(), 3);
}

// More than the stack first has room for, with values between the marks.
TEST(Pickle, ReachesTheMarksOfAFullStackAgain) {
  std::string pickle, want;
  for (int i = 0; i < 400; i++) pickle += "(N";
  for (int i = 0; i < 400; i++) pickle += "t", want += "(None, ";
  EXPECT_EQ(read(pickle + ".").substr(0, 60), want.substr(0, 60));
  EXPECT_EQ(read(pickle + "t."),
            "MC1210 the pickle is damaged: an opcode needs a mark on the stack, but there is none");
}

TEST(Pickle, RefusesDeepNesting) {
  auto nested = [](int depth) { return std::string(depth, ']') + std::string(depth - 1, 'a') + "."; };
  EXPECT_EQ(read(nested(511)).substr(0, 10), "[[[[[[[[[[");
  EXPECT_EQ(read(nested(512)), "MC1211 the pickle's structure is nested too deep: expected at most 511");
  EXPECT_EQ(read(nested(100'000)), "MC1211 the pickle's structure is nested too deep: expected at most 511");
  std::string tuples = ")";
  tuples.append(600, '\x85').append(".");
  EXPECT_EQ(read(tuples), "MC1211 the pickle's structure is nested too deep: expected at most 511");
}

TEST(Pickle, RefusesKeysThatTakeForEverToHash) {
  std::string bomb = "})";
  for (int i = 0; i < 40; i++) bomb += "2\x86";
  EXPECT_EQ(read(bomb + "Ns."), "MC1211 a dictionary key of the pickle is nested too deep");
}

TEST(Pickle, ShowsCyclesWithoutFollowingThem) {
  EXPECT_EQ(read("]q\0h\0a."s).substr(0, 22), "[[[[[[[[[[[[[[[[[[[[[." + ""s);
  std::string out;
  std::string cyclic = "}q\0X\1\0\0\0ah\0s."s;
  Pickle pickle(as_bytes(cyclic));
  render_pickle(pickle.root(), {}, [&](std::string_view line) { out += cat(line, "\n"); });
  EXPECT_EQ(out, "dict of 1\n  a: (itself, again)\n");
}

TEST(Pickle, ShowsDoubledStructuresUpToALimit) {
  std::string bomb = "]K\1a";
  for (int i = 0; i < 100; i++) bomb += "2\x86";
  Pickle pickle(as_bytes(bomb += "."));
  i64 lines = 0;
  render_pickle(pickle.root(), {.depth = 100}, [&](std::string_view) { lines++; });
  EXPECT_LE(lines, 2001);
  EXPECT_LE(pickle_line(pickle.root(), 500).size(), 700u);
}

TEST(Pickle, KeepsMemoryInProportionToTheStream) {
  std::string lists(8'000'000, ']');
  EXPECT_NE(read(lists).find("needs more memory than its size justifies"), std::string::npos);
  EXPECT_EQ(read("N" + "r\xff\xff\xff\x0f."s),
            "MC1211 the pickle's memo is too large: expected at most 7 slots, found 268435455");
  std::string sparse = "N";  // slots far apart, each of which would take a page
  for (u32 i = 0; i < 1'000'000; i++) {
    u32 n = i * 5;
    sparse += 'r';
    for (int b = 0; b < 4; b++) sparse += static_cast<char>(n >> 8 * b);
  }
  EXPECT_EQ(read(sparse + "."), "None");
}

std::string notes(const std::string& pickle) {
  std::string out;
  for (const PickleNote& n : Pickle(as_bytes(pickle)).notes())
    out += cat(n.warning ? "warning " : "", code_name(n.code), " ", n.message, "\n");
  return out;
}

TEST(Pickle, SaysWhatWouldRun) {
  std::string called = " and calls it, which is not allowed: a loader that runs pickles would run it\n";
  std::string named = ", which is not allowed: a loader that runs pickles would run it\n";
  EXPECT_EQ(notes("cos\nsystem\nX\2\0\0\0ls\x85R."s),
            "MC1213 the pickle names the global os.system" + called);
  EXPECT_EQ(notes("c__builtin__\neval\n."s), "MC1213 the pickle names the global builtins.eval" + named);
  EXPECT_EQ(notes("(iposix\nsystem\n."s), "MC1213 the pickle names the global posix.system" + called);
  EXPECT_EQ(notes("ctorch.hub\nload\n)R."s), "MC1213 the pickle names the global torch.hub.load" + called);
  EXPECT_EQ(notes("\x8c\5torch\x8c\x0ahub.system\x93."),
            "MC1213 the pickle names the global torch.hub.system" + named);
  EXPECT_EQ(notes("ctorch.nn.functional\ngelu\n."),
            "warning MC1214 mckpt does not know these classes and shows their objects as records: "
            "torch.nn.functional.gelu\n");
  EXPECT_EQ(notes("ctorch.hub\nload\n."), "MC1213 the pickle names the global torch.hub.load" + named);
  EXPECT_EQ(notes("cmy.model\nConfig\n)\x81."),
            "warning MC1214 mckpt does not know these classes and shows their objects as records: "
            "my.model.Config\n");
  EXPECT_EQ(notes("cargparse\nNamespace\n)\x81}b."), "");
  EXPECT_NE(notes("cbuiltins\ngetattr\ncx\nos\nX\6\0\0\0system\x86R."s).find("getattr names something"),
            std::string::npos);
  EXPECT_NE(notes("cx\nY\n)\x81}X\x0c\0\0\0__setstate__cos\nsystem\nsb."s).find("holds __setstate__"),
            std::string::npos);
}

// Takes the states of "m.Row" objects.
class Taker : public PickleVisitor {
 public:
  std::optional<u64> build(const PickleObject& object, PickleValue state) override {
    if (object.type->name != "Row") return std::nullopt;
    seen += cat(pickle_line(state), "\n");
    return rows++;
  }
  u64 rows = 0;
  std::string seen;
};

TEST(Pickle, HandsRecordsToAVisitor) {
  Taker taker;
  PickleRules rules{.visitor = &taker};
  EXPECT_EQ(read("}(cm\nRow\n)\x81}K\1K\2sbK\7cm\nOther\n)\x81}K\3K\4sbK\5u.", rules),
            "{<record>: 7, m.Other(){3: 4}: 5}");
  EXPECT_EQ(taker.seen, "{1: 2}\n");
}

TEST(Pickle, DropsWhatAVisitorTook) {
  // Many rows, each with a dict, a tuple and memo slots of its own.
  std::string bytes = "}";
  for (int i = 0; i < 200'000; i++) bytes += "cm\nRow\n)\x81\x94}\x94(K\1K\2K\3\x86\x94ub0";
  bytes += ".";
  class Counter : public PickleVisitor {
   public:
    std::optional<u64> build(const PickleObject&, PickleValue) override { return 1; }
  } counter;
  PickleRules rules{.visitor = &counter};
  Pickle pickle(as_bytes(bytes), rules);
  EXPECT_EQ(pickle.root().size(), 0);
  EXPECT_LT(pickle.memory_bytes(), i64{3} * static_cast<i64>(bytes.size()));
}

// Takes them before they become dicts, too.
class StackTaker : public Taker {
 public:
  using Taker::build;
  std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) override {
    if (type.name != "Row") return std::nullopt;
    for (PickleValue v : state) from_stack += cat(pickle_line(v), " ");
    return rows++;
  }
  std::string from_stack;
};

TEST(Pickle, HandsStatesToAVisitorBeforeTheyAreDicts) {
  StackTaker taker;
  PickleRules rules{.visitor = &taker};
  const std::string row = "cm\nRow\n)\x81\x94}\x94(X\1\0\0\0aK\1X\1\0\0\0bK\2u"s;
  EXPECT_EQ(read("](" + row + "bcm\nOther\n)\x81\x94}\x94(X\1\0\0\0aK\5ubh\0e."s, rules),
            "[<record>, m.Other(){'a': 5}, <record>]");
  EXPECT_EQ(taker.from_stack, "'a' 1 'b' 2 ");
  EXPECT_EQ(taker.seen, "");
  EXPECT_NE(read(row + "bh\1\x86.", rules).find("is read after its value was taken out"), std::string::npos);
}

// A record that is odd, or may still be referred to, is made as it is where an empty frame is between the
// opcodes that begin it.
TEST(Pickle, MakesOddRecordsBeforeTheyAreTaken) {
  const std::string begin = "cm\nRow\n)\x81\x94}\x94(", key = "X\1\0\0\0a"s, frame = "\x95\0\0\0\0\0\0\0\0"s;
  const std::string special = "X\x0c\0\0\0__setstate__"s, after_class = begin.substr(7);
  for (const std::string& bytes :
       {begin + "K\1K\2ub.",                                              // a key that is not a text
        begin + special + "K\2ub.",                                       // one that is special
        begin + key + "K\1u(" + key + "K\2ub.",                           // a dict that is filled twice
        begin + key + "h\0ub."s,                                          // an object in its own state
        begin + key + "h\1ub."s,                                          // a dict in itself
        begin + "h\1" + key + "h\1K\2s0t0b."s,                            // one that is filled beforehand
        begin + key + "ub.",                                              // a key without a value
        begin + key + "K\2u.",                                            // no BUILD
        begin + key + "K\2u",                                             // no end
        begin + "u.",                                                     // no state
        begin + "1b.",                                                    // a mark that is dropped
        begin + "0b.",                                                    //
        begin + "t0b.",                                                   //
        begin + "(lb.",                                                   // one that is not
        begin + key + "K\2.",                                             //
        begin + key + "cm\nOther\n" + after_class + key + "K\1ubub.",     // a record in a record
        begin + key + "cm\nOther\n" + after_class + key + "h\0ub1h\0."s,  // that has the outer one
        begin + key + "K\7q\0ubh\0\x86."s,                                // slots that are written anew
        begin + key + "K\7q\1ubh\1\x86."s,                                //
        "Nq\1" + begin + key + "K\2ubh\1\x86.",                           // that were written before
        "N" + after_class + key + "K\2ub.",                               // no class
        after_class + key + "K\2ub.",                                     // nothing
        "ctorch\nSize\n" + after_class + key + "K\2ub.",                  // a class that makes no objects
        "ccollections\nOrderedDict\n" + after_class + key + "K\2ub.",     //
        "ctorch._utils\n_rebuild_tensor_v2\n" + after_class + key + "K\2ub.",
        begin + key + std::string(600, ']') + std::string(599, 'a') + "ub."}) {
    std::string long_way = bytes;
    long_way.insert(bytes.find(after_class) + 3, frame);
    for (bool from_stack : {false, true}) {
      Taker of_dicts, of_dicts_too;
      StackTaker taker, taker_too;
      EXPECT_EQ(read(frame + bytes, {.visitor = from_stack ? &taker : &of_dicts}),
                read(long_way, {.visitor = from_stack ? &taker_too : &of_dicts_too}))
          << bytes;
      EXPECT_EQ(of_dicts.seen, of_dicts_too.seen) << bytes;
      EXPECT_EQ(taker.rows, taker_too.rows) << bytes;
    }
    EXPECT_EQ(read(frame + bytes), read(long_way)) << bytes;
  }
}

TEST(Pickle, TakesASizeForTheTupleThatItIs) {
  const std::string size = "ctorch\nSize\n(K\1K\2t\x94\x85\x94R\x94";
  EXPECT_EQ(read("](" + size + "h\0h\2e."s), "[(1, 2), (1, 2), (1, 2)]");
  EXPECT_NE(read(size + "h\1\x86.").find("is read after its value was taken out"), std::string::npos);
  EXPECT_EQ(read("ctorch\nSize\n](K\1K\2e\x94\x85\x94R\x94."), "(1, 2)");
  EXPECT_EQ(read("cm\nMine\nK\1\x85\x94\x85\x94R\x94."), "m.Mine((1,))");
  EXPECT_NE(read("K\1\x85\x94\x85\x94R\x94.").find("finds the stack empty"), std::string::npos);
}

TEST(Pickle, ShowsWhatAVisitorTookAsItsNumber) {
  Taker taker;
  PickleRules rules{.visitor = &taker};
  std::string row = "cm\nRow\n)\x81q\0}q\1(K\1K\2q\2ub"s;
  EXPECT_EQ(read(row + "h\0\x86."s, rules), "(<record>, <record>)");
  EXPECT_EQ(read(row + "h\2\x86.", rules), "(<record>, 2)");
  EXPECT_NE(read(row + "h\1\x86.", rules).find("is read after its value was taken out"), std::string::npos);
  // A record that was referred to before it was complete stays an object, and its state a dict.
  EXPECT_EQ(read("](cm\nRow\n)\x81q\0h\0}q\1h\1"
                 "0bh\1e."s,
                 rules),
            "[m.Row()<record>, m.Row()<record>, {}]");
}

}  // namespace
}  // namespace mckpt::impl
