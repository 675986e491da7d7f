// The interpreter behind Pickle: the stream, a stack with marks, a memo, and one function for each opcode.
// Private to io/pickle. Its parts are in machine.cc (stack, memo, errors), ops.cc (opcodes), call.cc
// (classes and calls), records.cc (the quick way for large pickles).
//
//   stream  --opcode-->  ops  --push/pop-->  stack  --PUT/MEMOIZE-->  memo
//                         |                    ^------- GET ----------'
//                         '--> arena (values), classes, notes of the Pickle
#pragma once

#include <cstring>

#include "core/base/name_hash.h"
#include "io/file/bytes.h"
#include "io/pickle/opcodes.h"
#include "io/pickle/pickle.h"
#include "io/pickle/stack.h"

namespace mckpt::impl {

// Runs once over one stream and fills `out`. Everything in the stream is checked: whatever it says, the
// machine throws, it never crashes, and it never allocates from a declared size alone.
class PickleMachine {
 public:
  PickleMachine(Pickle& out, std::span<const u8> bytes, const PickleRules& rules);
  void run();

 private:
  using Kind = PickleValue::Kind;
  using Handler = void (PickleMachine::*)();
  // The table of functions for the rarer opcodes (ops.cc).
  struct Handlers;
  void finish();

  // The stream. take() moves on and throws PickleTruncated at its end.
  std::span<const u8> take(u64 bytes) {
    if (bytes > static_cast<u64>(end_ - at_)) throw_truncated(bytes);
    return {std::exchange(at_, at_ + bytes), static_cast<std::size_t>(bytes)};
  }
  template <typename T>
  T take_int() {
    return load_le<T>(take(sizeof(T)).data());
  }
  // Takes the opcode if it is the next one.
  bool take_if(Op next) {
    if (at_ == end_ || *at_ != static_cast<u8>(next)) return false;
    opcode_ = at_++;
    return true;
  }
  // Whether exactly these opcodes follow, none of which has an argument.
  template <Op... kOps>
  bool next_are() const {
    static constexpr Op kAll[] = {kOps...};
    return end_ - at_ >= std::ssize(kAll) && std::memcmp(at_, kAll, sizeof kAll) == 0;
  }
  // Moves over opcodes that next_are() found.
  void pass(std::ptrdiff_t opcodes) {
    at_ += opcodes;
    opcode_ = at_ - 1;
  }
  std::string_view take_line();
  std::string_view take_name();  // of a module or class: a line in UTF-8
  u64 take_decimal();
  [[noreturn]] void throw_truncated(u64 wanted) const;
  [[noreturn]] void fail(std::string_view message) const;
  i64 opcode_at() const { return opcode_ - bytes_.data(); }

  // The stack. These throw kBadPickle where the stream takes more than is there.
  void push(PickleValue v) { stack_.push(v); }
  PickleValue& top() {
    if (stack_.empty()) throw_empty();
    return stack_.top();
  }
  PickleValue pop() {
    if (stack_.empty()) throw_empty();
    return stack_.pop();
  }
  std::span<const PickleValue> above_mark() const {
    if (!stack_.marked()) throw_unmarked();
    return stack_.above();
  }
  PickleValue& below_mark();
  // Drops everything above the mark, and the mark; an object that is still pending below it is made first.
  void drop_to_mark() {
    if (!stack_.marked()) throw_unmarked();
    if (PickleValue* below = stack_.below_mark(); below != nullptr && PickleArena::is_pending(*below))
      make_record(below);
    stack_.drop_to_mark();
  }
  [[noreturn]] void throw_empty() const;
  [[noreturn]] void throw_unmarked() const;

  // The memo, in pages: picklers number its slots from 0 on. A page is null until one of its slots is
  // written.
  PickleValue* find_slot(u64 index) const {
    std::size_t page = static_cast<std::size_t>(index / kPageSlots);
    return page < memo_.size() && memo_[page] ? &memo_[page][index % kPageSlots] : nullptr;
  }
  PickleValue* make_slot(u64 index);
  PickleValue& slot_at(u64 index) {
    PickleValue* slot = find_slot(index);
    return slot != nullptr ? *slot : *make_slot(index);
  }
  // Counts the slots that were ever written: MEMOIZE writes the next one.
  void write_slot(u64 index, PickleValue v) {
    PickleValue& slot = slot_at(index);
    memo_count_ += slot == PickleArena::hole();
    slot = v;
  }
  // Stores the top of the stack; the value remembers its slot, so that it can be given up (see give_up()).
  void put(u64 index) {
    PickleArena::set_memo(top(), static_cast<u32>(index));
    write_slot(index, top());
  }
  // Pushes what the slot has; from then on two places refer to it.
  void get(u64 index) {
    const PickleValue* slot = find_slot(index);
    if (slot == nullptr || slot->is(Kind::kHole)) slot = make_pending(index);
    PickleArena::share(*slot);
    push(*slot);
  }
  // Takes all GETs that follow: keys and values of records, of which the memo has most, come in a row.
  void take_gets() {
    for (;;) {
      if (take_if(Op::kLongBinget))
        get(take_int<u32>());
      else if (take_if(Op::kBinget))
        get(take_int<u8>());
      else
        return;
    }
  }
  // Pushes a new value, and stores it at once if MEMOIZE follows, as picklers write it.
  void push_new(PickleValue v) {
    push(v);
    if (take_if(Op::kMemoize)) put(memo_count_);
  }
  // Makes the object that is pending in the slot, and returns the slot. Throws if the slot was never
  // written.
  const PickleValue* make_pending(u64 index);
  // Frees a value that only the memo refers to; its slot gets `instead`. Returns false if it is shared: it
  // stays then.
  bool give_up(PickleValue v, PickleValue instead);
  // Marks all of them as referred to from two places.
  static void share_all(std::span<const PickleValue> values);

  // The opcodes (ops.cc).
  void op_unknown();
  void op_proto();
  void op_frame();
  void op_unsupported_id();
  void op_unsupported_extension();
  void op_unsupported_buffer();
  void op_pop();
  void op_dup();
  template <auto kValue>
  void op_constant();
  template <typename T>
  void op_integer() {
    push(arena_.integer(static_cast<T>(take_int<std::make_unsigned_t<T>>())));
  }
  void op_long1();
  void op_long4();
  void op_float();
  void op_binfloat();
  void op_int();
  void op_long();
  template <typename T>
  void op_unicode();
  template <typename T>
  void op_raw_text();
  template <typename T>
  void op_bytes();
  void op_bytearray();
  void op_string();
  void op_unicode_text();
  template <std::size_t kItems>
  void op_tuple_of() {
    std::span<const PickleValue> above = stack_.above();
    if (above.size() < kItems) fail("a tuple has fewer items than it should");
    PickleValue v = arena_.tuple(above.last(kItems));
    stack_.drop(kItems);
    push_new(v);
  }
  void op_tuple();
  template <PickleValue::Kind kKind>
  void op_empty();
  template <PickleValue::Kind kKind>
  void op_from_mark();
  template <PickleValue::Kind kKind>
  void op_fill();
  void op_append();
  void op_setitem();
  void op_global();
  void op_stack_global();
  void op_call();
  void op_newobj_ex();
  void op_inst();
  void op_obj();
  void op_build();
  void op_binpersid();
  template <typename T>
  void op_put();
  void op_put_text();
  void op_get_text();
  void push_long(std::span<const u8> little_endian);
  void push_decimal(std::string_view digits);
  void push_decoded(const std::optional<std::string>& text);

  // Classes and what they would make (call.cc).
  PickleValue find_class(std::string_view module, std::string_view name);
  PickleValue call(PickleValue callee, PickleValue args);
  PickleValue construct(PickleClass& c, PickleValue args);
  PickleValue make_sequence(Known known, PickleValue args);
  PickleValue make_dict(PickleValue args);
  PickleValue make_bytes(PickleValue args);
  PickleValue make_object(PickleClass& maker, PickleValue args);
  PickleValue encode(PickleValue args);
  PickleValue get_member(PickleClass& getattr, PickleValue args);
  void build(PickleValue state);
  void give_up_parts(PickleValue state);
  bool take_size();  // in records.cc, as it serves the same pickles
  void replace(PickleValue& target, u64 row);
  void set_entries(PickleValue target, std::span<const PickleValue> keys_and_values);
  void add_items(PickleValue target, std::span<const PickleValue> items, Kind kind);
  PickleValue items_of(PickleValue target, Kind kind);
  void check_key(PickleValue key) const;
  bool check_hash(PickleValue v, std::string_view what, int depth, int& left) const;
  PickleValue storage(PickleValue id);

  // Objects that are not made before somebody asks for them (records.cc).
  bool open_record();
  bool close_record();
  void make_record(PickleValue* below_mark);
  void replace_pending(PickleValue* below_mark, PickleValue object, PickleValue dict);

  // Slots of one page of the memo, and the most slots there are: PickleNode::memo holds the number plus
  // one. Most pickles have a few hundred bytes and use one page, so that filling larger ones would be much of
  // their time.
  static constexpr std::size_t kPageSlots = 128;
  static constexpr u64 kMostSlots = (u64{1} << 26) - kPageSlots;

  Pickle& out_;
  PickleArena& arena_;
  const PickleRules& rules_;
  std::span<const u8> bytes_;
  const u8 *at_, *end_;
  const u8* opcode_;  // that runs
  PickleStack stack_;
  std::vector<std::unique_ptr<PickleValue[]>> memo_;
  u64 memo_count_ = 0;                                   // slots ever written
  NameMap<std::string_view, PickleValue> class_values_;  // by "module\nname"
};

}  // namespace mckpt::impl
