// Writes one value of a pickle as a new pickle. Each container is written once and stored in the memo; any
// other reference to it is written as its slot.
#include "io/pickle/write/copy.h"

#include <unordered_map>

#include "core/base/error.h"
#include "io/pickle/arena.h"
#include "io/pickle/classes.h"
#include "io/pickle/text.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr int kMostDepth = 2 * PickleArena::kMostDepth;

// The recursion over a value; used once.
class Copy {
 public:
  std::string run(PickleValue value) {
    write(value);
    return p_.finish();
  }

 private:
  void write(PickleValue v);
  void write_container(PickleValue v);
  void write_new(PickleValue v);
  void write_tuple(PickleValue v);
  void write_object(PickleValue v);
  void write_member(PickleValue v);
  void write_items(PickleValue v);  // into the list or dict on top of the stack
  // Stores what was written last under the value's node; a tuple and a torch.Size may share one.
  void keep(PickleValue v) { slots_[v.is_second_type()].emplace(v.node(), p_.memoize()); }

  PickleWriter p_;
  std::unordered_map<const PickleNode*, u32> slots_[2];  // of values in the memo
  int depth_ = 0;
};

void Copy::write(PickleValue v) {
  switch (v.kind()) {
    case Kind::kNone:
      return p_.op(Op::kNone);
    case Kind::kBool:
      return p_.boolean(v.as_bool());
    case Kind::kInt:
    case Kind::kWideInt:
      return p_.integer(v.as_int());
    case Kind::kBigInt:
      return p_.big_integer(v.bytes());
    case Kind::kFloat:
      return p_.real(v.as_float());
    case Kind::kText:
      // Python 2 wrote bytes as its kind of text.
      return is_python_utf8(v.text()) ? p_.text(v.text()) : p_.raw_text(v.text());
    case Kind::kBytes:
      if (!v.is_second_type()) return p_.bytes(v.bytes());
      p_.class_name("builtins", "bytearray");
      p_.bytes(v.bytes());
      return p_.op(Op::kTuple1), p_.op(Op::kReduce);
    case Kind::kClass:
      return p_.class_name(v.as_class().module, v.as_class().name);
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kSet:
    case Kind::kDict:
    case Kind::kObject:
      return write_container(v);
    case Kind::kRow:
    case Kind::kHole:
    case Kind::kStorage:
      break;
  }
  throw Error(Code::kUnsupportedPickle, "a value contains a tensor, whose bytes are not part of a pickle");
}

// Sets and tuples enter the memo when they are complete, so one that contains itself would be written for
// ever: the depth ends it.
void Copy::write_container(PickleValue v) {
  auto& slots = slots_[v.is_second_type()];
  if (auto known = slots.find(v.node()); known != slots.end()) return p_.known(known->second);
  // Sets and tuples stand in the memo when they are whole, so one that holds itself would never be.
  if (depth_ >= kMostDepth) throw Error(Code::kPickleLimit, "a value of a pickle is nested too deeply");
  depth_++;
  write_new(v);
  depth_--;
}

// Lists and dicts enter the memo before their items, which may refer to them.
void Copy::write_new(PickleValue v) {
  if (v.is(Kind::kObject)) return write_object(v);
  if (v.is(Kind::kTuple) && !v.is_second_type()) return write_tuple(v);
  if (v.is(Kind::kTuple)) {
    p_.class_name("torch", "Size");
    write(v.as_first_type());
    p_.op(Op::kTuple1), p_.op(Op::kReduce);
    return keep(v);
  }
  if (v.is(Kind::kSet)) {
    // Protocol 2 has no opcode for sets: set([...]).
    p_.class_name("builtins", python_type(v));
    p_.op(Op::kEmptyList), write_items(v);
    p_.op(Op::kTuple1), p_.op(Op::kReduce);
    return keep(v);
  }
  if (v.is_second_type()) {  // OrderedDict, deque
    p_.class_name("collections", python_type(v));
    p_.call_without_arguments();
  } else {
    p_.op(v.is(Kind::kList) ? Op::kEmptyList : Op::kEmptyDict);
  }
  keep(v);
  write_items(v);
  if (v.attributes().is_none()) return;
  write(v.attributes());
  p_.op(Op::kBuild);
}

void Copy::write_tuple(PickleValue v) {
  if (v.size() == 0) return p_.op(Op::kEmptyTuple);
  p_.op(Op::kMark);
  for (PickleValue item : v.tuple()) write(item);
  p_.op(Op::kTuple);
  keep(v);
}

// Fills the list or dict on top of the stack; keys and values in turn.
void Copy::write_items(PickleValue v) {
  if (v.size() == 0) return;
  p_.op(Op::kMark);
  for (PickleValue item : v.items()) write(item);
  for (PickleEntry e : v.entries()) write(e.key), write(e.value);
  p_.op(v.is(Kind::kDict) ? Op::kSetitems : Op::kAppends);
}

// getattr(type, "NAME"): enums' members cannot be made of their names otherwise.
void Copy::write_member(PickleValue v) {
  const PickleObject& o = v.as_object();
  p_.class_name("builtins", "getattr");
  p_.class_name(o.type->module, o.type->name);
  write(o.args.at(0));
  p_.op(Op::kTuple2), p_.op(Op::kReduce);
  keep(v);
}

// Objects with a state and no arguments are made without their constructor (NEWOBJ), which may want
// arguments.
void Copy::write_object(PickleValue v) {
  const PickleObject& o = v.as_object();
  if (o.is_member()) return write_member(v);
  p_.class_name(o.type->module, o.type->name);
  write(o.args);
  p_.op(o.args.size() == 0 && !o.state.is_none() ? Op::kNewobj : Op::kReduce);
  keep(v);
  if (!o.items.is_none()) write_items(o.items);
  if (o.state.is_none()) return;
  write(o.state);
  p_.op(Op::kBuild);
}

}  // namespace

std::string copy_pickle(PickleValue value) { return Copy().run(value); }

}  // namespace mckpt::impl
