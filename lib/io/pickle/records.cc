// Most values of large pickles: objects made without arguments, whose state is a dict of their own. Where
// there is a visitor, neither is made before the state is complete, since it mostly takes the two then: they
// are pending.
//
//   class ) NEWOBJ MEMOIZE } MEMOIZE (   key value key value   SETITEMS BUILD
//   \_______ open_record() _________/                          \close_record()/
//
//   stack: class, the number of the object's slot in the memo, mark       the dict's slot is the next one
//   memo:  in both slots the place of that number on the stack
//
// Whoever comes upon one of these before, by reading a slot, dropping the mark or filling the dict below it,
// has the two made first.
#include "io/pickle/machine.h"

namespace mckpt::impl {
namespace {

// Whether construct() makes an object of this class that is complete without a state, whatever the
// arguments.
bool makes_plain_objects(Known k) {
  return k == Known::kNothing || k == Known::kData || (k >= Known::kMetadata && k <= Known::kStorageMeta);
}

}  // namespace

// Takes the opcodes that begin a record, if all of them follow. Returns false, with nothing done,
// otherwise.
bool PickleMachine::open_record() {
  if (!next_are<Op::kNewobj, Op::kMemoize, Op::kEmptyDict, Op::kMemoize, Op::kMark>()) return false;
  if (rules_.visitor == nullptr || stack_.empty() || !stack_.top().is(Kind::kClass)) return false;
  PickleClass& c = PickleArena::class_of(stack_.top());
  if (!makes_plain_objects(c.known)) return false;
  u64 slot = memo_count_;
  PickleValue &object = slot_at(slot), &dict = slot_at(slot + 1);
  if (object != PickleArena::hole() || dict != PickleArena::hole()) return false;
  push(PickleArena::pending(slot));
  object = dict = PickleArena::pending(stack_.place_of(&stack_.top()));
  memo_count_ += 2;
  stack_.mark();
  c.calls++;
  pass(5);
  return true;
}

// Offers the record to the visitor and, if it takes it, ends it. Returns false, with nothing done, where
// anything about it is unusual; the ordinary opcodes go on from there.
bool PickleMachine::close_record() {
  if (!stack_.marked() || !next_are<Op::kBuild>()) return false;
  PickleValue* below = stack_.below_mark();
  if (below == nullptr || !PickleArena::is_pending(*below)) return false;
  std::span<const PickleValue> state = stack_.above();
  if (state.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < state.size(); i += 2) {
    if (!state[i].is(Kind::kText) || is_special_field(state[i].text())) return false;
    if (!PickleArena::may_be_nested(state[i + 1])) return false;
  }
  std::optional<u64> number = rules_.visitor->build(below[-1].as_class(), state);
  if (!number) return false;
  replace_pending(below, PickleArena::row(*number), PickleArena::given_up());
  pass(1);
  stack_.drop_to_mark();
  stack_.drop(1);
  return true;
}

// Makes the object and its dict after all. `below`: the pending value below the mark.
void PickleMachine::make_record(PickleValue* below) {
  PickleValue object = arena_.object(Kind::kObject, &below[-1].as_class(), arena_.empty_tuple());
  replace_pending(below, object, arena_.container(Kind::kDict));
}

// Puts the two into the slots and the stack where they are pending. A slot that was written again in the
// meantime keeps its value.
void PickleMachine::replace_pending(PickleValue* below, PickleValue object, PickleValue dict) {
  PickleValue pending = PickleArena::pending(stack_.place_of(below));
  u64 slot = PickleArena::pending_number(*below);
  below[-1] = object;
  below[0] = dict;
  for (PickleValue v : {object, dict}) {
    if (PickleValue& here = slot_at(slot); here == pending) {
      here = v;
      PickleArena::set_memo(v, static_cast<u32>(slot));
    }
    slot++;
  }
}

// torch.Size((2, 3)) is that tuple, so the tuple of its arguments need not be made. Returns false, with
// nothing done, where it is something else.
//
//   class tuple TUPLE1 MEMOIZE REDUCE MEMOIZE
bool PickleMachine::take_size() {
  if (!next_are<Op::kMemoize, Op::kReduce, Op::kMemoize>()) return false;
  std::span<const PickleValue> above = stack_.above();
  if (above.size() < 2) return false;
  PickleValue tuple = above.back(), callee = above[above.size() - 2];
  if (!tuple.is(Kind::kTuple) || !callee.is(Kind::kClass)) return false;
  PickleClass& c = PickleArena::class_of(callee);
  if (c.known != Known::kTuple) return false;
  c.calls++;
  write_slot(memo_count_, PickleArena::given_up());
  stack_.drop(1);
  stack_.top() = c.is_second_type() ? PickleArena::of_second_type(tuple) : tuple.as_first_type();
  pass(3);
  put(memo_count_);
  return true;
}

}  // namespace mckpt::impl
