// One function for each opcode of the pickle protocols 0 to 5, and the loop that calls them.
#include <algorithm>
#include <array>
#include <bit>

#include "core/base/error.h"
#include "io/json/json.h"
#include "io/pickle/machine.h"
#include "io/pickle/text.h"

namespace mckpt::impl {

// By opcode, the function that runs it. Opcodes of the loop in run() are missing here.
struct PickleMachine::Handlers {
  std::array<Handler, 256> by_opcode;

  constexpr Handlers() : by_opcode() {
    using M = PickleMachine;
    by_opcode.fill(&M::op_unknown);
    auto set = [this](Op op, Handler h) { by_opcode[static_cast<u8>(op)] = h; };
    set(Op::kProto, &M::op_proto);
    set(Op::kFrame, &M::op_frame);
    set(Op::kPersid, &M::op_unsupported_id);
    for (Op op : {Op::kExt1, Op::kExt2, Op::kExt4}) set(op, &M::op_unsupported_extension);
    for (Op op : {Op::kNextBuffer, Op::kReadonlyBuffer}) set(op, &M::op_unsupported_buffer);
    set(Op::kPop, &M::op_pop);
    set(Op::kPopMark, &M::drop_to_mark);
    set(Op::kDup, &M::op_dup);

    set(Op::kNone, &M::op_constant<nullptr>);
    set(Op::kNewtrue, &M::op_constant<true>);
    set(Op::kNewfalse, &M::op_constant<false>);
    set(Op::kBinint, &M::op_integer<i32>);
    set(Op::kLong1, &M::op_long1);
    set(Op::kLong4, &M::op_long4);
    set(Op::kInt, &M::op_int);
    set(Op::kLong, &M::op_long);
    set(Op::kFloat, &M::op_float);
    set(Op::kBinfloat, &M::op_binfloat);

    set(Op::kBinunicode, &M::op_unicode<u32>);
    set(Op::kBinunicode8, &M::op_unicode<u64>);
    set(Op::kShortBinstring, &M::op_raw_text<u8>);
    set(Op::kBinstring, &M::op_raw_text<u32>);
    set(Op::kShortBinbytes, &M::op_bytes<u8>);
    set(Op::kBinbytes, &M::op_bytes<u32>);
    set(Op::kBinbytes8, &M::op_bytes<u64>);
    set(Op::kBytearray8, &M::op_bytearray);
    set(Op::kString, &M::op_string);
    set(Op::kUnicode, &M::op_unicode_text);

    set(Op::kTuple3, &M::op_tuple_of<3>);
    set(Op::kTuple, &M::op_tuple);
    set(Op::kEmptyList, &M::op_empty<Kind::kList>);
    set(Op::kEmptySet, &M::op_empty<Kind::kSet>);
    set(Op::kList, &M::op_from_mark<Kind::kList>);
    set(Op::kDict, &M::op_from_mark<Kind::kDict>);
    set(Op::kFrozenset, &M::op_from_mark<Kind::kSet>);
    set(Op::kAppends, &M::op_fill<Kind::kList>);
    set(Op::kAdditems, &M::op_fill<Kind::kSet>);
    set(Op::kAppend, &M::op_append);
    set(Op::kSetitem, &M::op_setitem);

    set(Op::kGlobal, &M::op_global);
    set(Op::kStackGlobal, &M::op_stack_global);
    set(Op::kNewobjEx, &M::op_newobj_ex);
    set(Op::kInst, &M::op_inst);
    set(Op::kObj, &M::op_obj);
    set(Op::kBuild, &M::op_build);
    set(Op::kBinpersid, &M::op_binpersid);

    set(Op::kBinput, &M::op_put<u8>);
    set(Op::kLongBinput, &M::op_put<u32>);
    set(Op::kPut, &M::op_put_text);
    set(Op::kGet, &M::op_get_text);
  }
};

void PickleMachine::run() {
  static constexpr Handlers kHandlers;
  // The opcodes that large checkpoints consist of are inlined here; a call takes longer than most of them.
  // They stand in the order in which picklers write an object, and each takes its usual follower with it: the
  // jump to the next opcode is what takes longest.
  for (;;) {
    opcode_ = at_;
    u8 opcode = take_int<u8>();
    switch (static_cast<Op>(opcode)) {
      case Op::kMemoize:
        put(memo_count_);
        break;
      case Op::kBinint1:
        op_integer<u8>();
        break;
      case Op::kBinint2:
        op_integer<u16>();
        break;
      case Op::kBinget:
        get(take_int<u8>());
        take_gets();
        break;
      case Op::kLongBinget:
        get(take_int<u32>());
        take_gets();
        break;
      case Op::kEmptyTuple:
        if (open_record()) {
          take_gets();
          break;
        }
        op_tuple_of<0>();
        if (!take_if(Op::kNewobj)) break;
        [[fallthrough]];
      case Op::kReduce:
      case Op::kNewobj:
        op_call();
        break;
      case Op::kEmptyDict:
        op_empty<Kind::kDict>();
        if (!take_if(Op::kMark)) break;
        [[fallthrough]];
      case Op::kMark:
        stack_.mark();
        break;
      case Op::kTuple1:
        if (!take_size()) op_tuple_of<1>();
        break;
      case Op::kTuple2:
        op_tuple_of<2>();
        break;
      case Op::kShortBinunicode:
        op_unicode<u8>();
        break;
      case Op::kSetitems:
        if (!close_record()) op_fill<Kind::kDict>();
        break;
      case Op::kStop:
        return finish();
      default:
        (this->*kHandlers.by_opcode[opcode])();
    }
  }
}

// Like Python's reader, it does not look at what is below the last value.
void PickleMachine::finish() {
  i64 open = 0;
  for (; stack_.marked(); stack_.drop_to_mark()) open++;
  if (open > 0) fail(cat("it ends with ", open, " open marks on its stack"));
  // Values below the last one are ignored, as Python does.
  out_.root_ = pop();
  out_.bytes_ = at_ - bytes_.data();
}

// ---- About the stream itself

void PickleMachine::op_unknown() { fail(cat("there is no opcode ", at_[-1])); }

void PickleMachine::op_proto() {
  out_.protocol_ = take_int<u8>();
  if (out_.protocol_ > 5)
    throw Error(Code::kUnsupportedPickle, cat("the pickle's protocol ", out_.protocol_, " is unsupported"))
        .offset(opcode_at())
        .expected("protocol 0 to 5");
}

// A frame is a hint for reading; its length must be possible.
void PickleMachine::op_frame() {
  if (u64 bytes = take_int<u64>(); bytes > static_cast<u64>(end_ - at_)) throw_truncated(bytes);
}

void PickleMachine::op_unsupported_id() {
  throw Error(Code::kUnsupportedPickle,
              "the pickle has a persistent id in text form (opcode PERSID), unsupported")
      .offset(opcode_at());
}

void PickleMachine::op_unsupported_extension() {
  throw Error(Code::kUnsupportedPickle,
              "the pickle names classes by extension codes (opcode EXT), unsupported")
      .offset(opcode_at());
}

void PickleMachine::op_unsupported_buffer() {
  throw Error(Code::kUnsupportedPickle,
              "the pickle keeps data outside of itself (opcode NEXT_BUFFER), unsupported")
      .offset(opcode_at());
}

// Removes a value, or the mark when nothing is above it.
void PickleMachine::op_pop() {
  if (stack_.empty() && stack_.marked())
    drop_to_mark();
  else
    pop();
}

void PickleMachine::op_dup() {
  PickleArena::share(top());
  push(top());
}

// ---- Numbers

template <auto kValue>
void PickleMachine::op_constant() {
  if constexpr (std::is_same_v<decltype(kValue), bool>)
    push(PickleArena::boolean(kValue));
  else
    push({});
}

// An integer of any length, little-endian two's complement.
void PickleMachine::push_long(std::span<const u8> b) {
  // Bytes that repeat the sign say nothing: equal integers have equal bytes.
  while (b.size() > 8 && b.back() == (b[b.size() - 2] >= 0x80 ? 0xff : 0)) b = b.first(b.size() - 1);
  if (b.size() > 8) return push(arena_.bytes(Kind::kBigInt, b));
  u64 v = !b.empty() && b.back() >= 0x80 ? ~u64{0} : 0;
  for (std::size_t i = b.size(); i-- > 0;) v = v << 8 | b[i];
  push(arena_.integer(static_cast<i64>(v)));
}

void PickleMachine::op_long1() { push_long(take(take_int<u8>())); }

void PickleMachine::op_long4() {
  u32 bytes = take_int<u32>();
  if (bytes > INT32_MAX) fail("an integer has a negative size");
  push_long(take(bytes));
}

void PickleMachine::push_decimal(std::string_view digits) {
  if (std::optional<i64> v = decimal(digits)) return push(arena_.integer(*v));
  std::optional<std::vector<u8>> wide = decimal_wide(digits);
  if (!wide) fail("an integer is malformed");
  push_long(arena_.copy(*wide));
}

// INT of 00 and 01 are how protocol 0 writes bools.
void PickleMachine::op_int() {
  std::string_view line = take_line();
  if (line == "00" || line == "01") return push(PickleArena::boolean(line == "01"));
  push_decimal(line);
}

void PickleMachine::op_long() {
  std::string_view line = take_line();
  if (line.ends_with('L')) line.remove_suffix(1);
  push_decimal(line);
}

void PickleMachine::op_float() {
  std::optional<double> v = decimal_float(take_line());
  if (!v) fail("a float is malformed");
  push(arena_.real(*v));
}

void PickleMachine::op_binfloat() { push(arena_.real(std::bit_cast<double>(load_be<u64>(take(8).data())))); }

// ---- Texts and bytes

template <typename T>
void PickleMachine::op_unicode() {
  std::span<const u8> text = take(take_int<T>());
  if (!is_python_utf8({reinterpret_cast<const char*>(text.data()), text.size()}))
    fail("a string is not UTF-8");
  push_new(arena_.bytes(Kind::kText, text));
}

// Python 2's str: text to those that wrote it, in whatever encoding.
template <typename T>
void PickleMachine::op_raw_text() {
  push(arena_.bytes(Kind::kText, take(take_int<T>())));
}

template <typename T>
void PickleMachine::op_bytes() {
  push(arena_.bytes(Kind::kBytes, take(take_int<T>())));
}

void PickleMachine::op_bytearray() {
  push(PickleArena::of_second_type(arena_.bytes(Kind::kBytes, take(take_int<u64>()))));
}

void PickleMachine::push_decoded(const std::optional<std::string>& text) {
  if (!text) fail("a quoted string is malformed");
  push(arena_.bytes(Kind::kText, arena_.copy({reinterpret_cast<const u8*>(text->data()), text->size()})));
}

void PickleMachine::op_string() { push_decoded(unquoted(take_line())); }
void PickleMachine::op_unicode_text() { push_decoded(raw_unicode_unescaped(take_line())); }

// ---- Containers

void PickleMachine::op_tuple() {
  PickleValue v = arena_.tuple(above_mark());
  drop_to_mark();
  push_new(v);
}

template <PickleValue::Kind kKind>
void PickleMachine::op_empty() {
  push_new(arena_.container(kKind));
}

template <PickleValue::Kind kKind>
void PickleMachine::op_from_mark() {
  PickleValue v = arena_.container(kKind);
  kKind == Kind::kDict ? set_entries(v, above_mark()) : add_items(v, above_mark(), kKind);
  drop_to_mark();
  push(kKind == Kind::kSet ? PickleArena::of_second_type(v) : v);  // the opcode of sets is of frozen ones
}

template <PickleValue::Kind kKind>
void PickleMachine::op_fill() {
  kKind == Kind::kDict ? set_entries(below_mark(), above_mark())
                       : add_items(below_mark(), above_mark(), kKind);
  drop_to_mark();
}

void PickleMachine::op_append() {
  PickleValue item = pop();
  add_items(top(), {&item, 1}, Kind::kList);
}

void PickleMachine::op_setitem() {
  PickleValue value = pop(), key = pop();
  set_entries(top(), std::array{key, value});
}

// ---- Classes and objects

// Python decodes the line, and refuses the pickle where it cannot.
std::string_view PickleMachine::take_name() {
  std::string_view name = take_line();
  if (!is_utf8(name)) fail("the name of a class is not UTF-8");
  return name;
}

void PickleMachine::op_global() {
  std::string_view module = take_name();
  push(find_class(module, take_name()));
}

void PickleMachine::op_stack_global() {
  PickleValue name = pop(), module = pop();
  push(find_class(module.to_text("the module of a class"), name.to_text("the name of a class")));
}

// REDUCE calls a function, NEWOBJ a class: for a reader that calls neither they are the same.
void PickleMachine::op_call() {
  PickleValue args = pop(), callee = pop();
  push_new(call(callee, args));
}

void PickleMachine::op_newobj_ex() {
  PickleValue kwargs = pop(), args = pop(), callee = pop();
  if (!args.is(Kind::kTuple) || !kwargs.is(Kind::kDict))
    fail("NEWOBJ_EX finds no tuple and dict of arguments");
  std::vector<PickleValue> all(args.tuple().begin(), args.tuple().end());
  share_all(all);
  if (kwargs.size() > 0) all.push_back(kwargs);
  push(call(callee, arena_.tuple(all)));
}

void PickleMachine::op_inst() {
  std::string_view module = take_name();
  PickleValue callee = find_class(module, take_name());
  PickleValue args = arena_.tuple(above_mark());
  drop_to_mark();
  push(call(callee, args));
}

void PickleMachine::op_obj() {
  std::span<const PickleValue> items = above_mark();
  if (items.empty()) fail("OBJ finds no class");
  PickleValue callee = items[0], args = arena_.tuple(items.subspan(1));
  drop_to_mark();
  push(call(callee, args));
}

void PickleMachine::op_build() { build(pop()); }
void PickleMachine::op_binpersid() { push(storage(pop())); }

// ---- The memo

template <typename T>
void PickleMachine::op_put() {
  put(take_int<T>());
}

void PickleMachine::op_put_text() { put(take_decimal()); }
void PickleMachine::op_get_text() { get(take_decimal()); }

}  // namespace mckpt::impl
