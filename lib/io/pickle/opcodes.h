// The opcodes of pickle, protocols 0 to 5. Each is one byte, followed by its own argument if it has one (a
// length and text, a number, a slot of the memo). Protocols below 2 write numbers and texts as lines of
// ASCII; protocol 4 brought FRAME and MEMOIZE. torch.save writes protocol 2, and torch writes .metadata
// with protocol 4 or 5. Their effects, with the stack's top at the right:
//
//   push a value    NONE NEWTRUE BININT LONG1 BINFLOAT BINUNICODE SHORT_BINBYTES EMPTY_DICT ...
//   MARK            push a mark
//   TUPLE           ( a b c            ->  (a, b, c)        everything above the mark; TUPLE1 to 3 need none
//   APPENDS         [] ( a b           ->  [a, b]           into the list below the mark
//   SETITEMS        {} ( k v k v       ->  {k: v, k: v}     into the dict below the mark
//   GLOBAL          "module\nname\n"   ->  a class or function; STACK_GLOBAL takes both from the stack
//   REDUCE, NEWOBJ  callee (args)      ->  what the call makes
//   BUILD           object state       ->  the object with that state
//   BINPERSID       id                 ->  data outside of the pickle: a tensor's storage
//   BINPUT, MEMOIZE                        the top is stored in a slot of the memo, and stays
//   BINGET          a slot of the memo ->  what is stored there
//   STOP            the top is the result
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

// Names as in Python's pickletools.
enum class Op : u8 {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinbytes = 'B',
  kShortBinbytes = 'C',
  kFloat = 'F',
  kBinfloat = 'G',
  kInt = 'I',
  kBinint = 'J',
  kBinint1 = 'K',
  kLong = 'L',
  kBinint2 = 'M',
  kNone = 'N',
  kPersid = 'P',
  kBinpersid = 'Q',
  kReduce = 'R',
  kString = 'S',
  kBinstring = 'T',
  kShortBinstring = 'U',
  kUnicode = 'V',
  kBinunicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kGet = 'g',
  kBinget = 'h',
  kInst = 'i',
  kLongBinget = 'j',
  kList = 'l',
  kObj = 'o',
  kPut = 'p',
  kBinput = 'q',
  kLongBinput = 'r',
  kSetitem = 's',
  kTuple = 't',
  kSetitems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kNewobj = 0x81,
  kExt1 = 0x82,
  kExt2 = 0x83,
  kExt4 = 0x84,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewtrue = 0x88,
  kNewfalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinunicode = 0x8c,
  kBinunicode8 = 0x8d,
  kBinbytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAdditems = 0x90,
  kFrozenset = 0x91,
  kNewobjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kBytearray8 = 0x96,
  kNextBuffer = 0x97,
  kReadonlyBuffer = 0x98,
};

}  // namespace mckpt::impl
