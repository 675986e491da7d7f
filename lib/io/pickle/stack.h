// The interpreter's stack. MARK (opcode `(`) begins a group that a later opcode takes as a whole:
// everything above the mark becomes a tuple, or the entries of a dict below it. Nothing below the last mark
// can be reached. A mark is an entry itself, which contains the place of the mark before it.
//
//   a  b  [0]  c  d        [0]: no other mark below; floor_ points to c, top_ behind d
//                          above(): c d; below_mark(): b
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>

#include "io/pickle/arena.h"

namespace mckpt::impl {

// Bounds are checked by PickleMachine, not here: each pre is about what the stream did.
class PickleStack {
 public:
  explicit PickleStack(PickleArena& arena) : arena_(arena) {}

  bool empty() const { return top_ == floor_; }  // above the last mark
  std::span<const PickleValue> above() const { return {floor_, top_}; }
  PickleValue& top() { return top_[-1]; }            // pre: not empty
  PickleValue pop() { return *--top_; }              // pre: not empty
  void drop(std::size_t values) { top_ -= values; }  // pre: so many are above the mark
  void push(PickleValue v) {
    if (top_ == end_) grow();
    *top_++ = v;
  }

  bool marked() const { return floor_ != bottom(); }
  void mark() {
    push(PickleArena::row(static_cast<u64>(floor_ - bottom())));
    floor_ = top_;
  }
  // Drops everything above the mark, and the mark. pre: marked()
  void drop_to_mark() {
    top_ = floor_ - 1;
    floor_ = bottom() + *top_->row();
  }
  // The value directly below the mark; null if there is none. pre: marked()
  PickleValue* below_mark() {
    u64 below = *floor_[-1].row();
    return static_cast<u64>(floor_ - 1 - bottom()) > below ? floor_ - 2 : nullptr;
  }
  // A value's place counted from the bottom: it stays the same when the stack grows, which its address does
  // not.
  u64 place_of(const PickleValue* value) const { return static_cast<u64>(value - bottom()); }
  PickleValue* at(u64 place) { return bottom() + place; }

 private:
  struct Free {
    void operator()(PickleValue* p) const { std::free(p); }
  };
  static_assert(std::is_trivially_copyable_v<PickleValue>);
  PickleValue* bottom() const { return values_.get(); }
  void grow();

  PickleArena& arena_;  // its budget counts the stack
  std::unique_ptr<PickleValue, Free> values_;
  PickleValue *floor_ = nullptr, *top_ = nullptr, *end_ = nullptr;
};

}  // namespace mckpt::impl
