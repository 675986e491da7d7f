// The state of the interpreter: stack, marks, memo, and the errors about them. Every error about an opcode
// names its byte.
#include "io/pickle/machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/error.h"
#include "io/pickle/text.h"

namespace mckpt::impl {

PickleMachine::PickleMachine(Pickle& out, std::span<const u8> bytes, const PickleRules& rules)
    : out_(out),
      arena_(out.arena_),
      rules_(rules),
      bytes_(bytes),
      at_(bytes.data()),
      end_(bytes.data() + bytes.size()),
      opcode_(at_),
      stack_(arena_) {
  if (static_cast<i64>(bytes.size()) > PickleArena::kMostBytes)
    throw Error(Code::kPickleLimit, "the pickle is too large")
        .expected(cat("at most ", PickleArena::kMostBytes, " bytes"))
        .found(bytes.size());
}

// Throws kBadPickle.
void PickleMachine::fail(std::string_view message) const {
  throw Error(Code::kBadPickle, cat("the pickle is damaged: ", message)).offset(opcode_at());
}

void PickleMachine::throw_truncated(u64 wanted) const {
  PickleTruncated e(Code::kBadPickle, "the pickle is truncated");
  e.offset(opcode_at()).expected(cat(wanted, " bytes more")).found(end_ - at_);
  throw e;
}

// The text up to the next newline, which is taken too: how protocol 0 writes arguments.
std::string_view PickleMachine::take_line() {
  u64 left = static_cast<u64>(end_ - at_);
  const void* newline = left == 0 ? nullptr : std::memchr(at_, '\n', left);
  if (newline == nullptr) throw_truncated(left + 1);
  std::span<const u8> line = take(static_cast<u64>(static_cast<const u8*>(newline) - at_));
  at_++;
  return {reinterpret_cast<const char*>(line.data()), line.size()};
}

// The number of a slot, in decimal digits.
u64 PickleMachine::take_decimal() {
  std::optional<i64> v = decimal(take_line());
  if (!v || *v < 0) fail("the number of a memo slot is malformed");
  return static_cast<u64>(*v);
}

// ---- The stack

// The list, set or dict that an opcode fills with what is above the mark; a pending object is made first.
PickleValue& PickleMachine::below_mark() {
  if (!stack_.marked()) throw_unmarked();
  PickleValue* v = stack_.below_mark();
  if (v == nullptr) fail("an opcode finds nothing to fill below its mark");
  if (PickleArena::is_pending(*v)) make_record(v);
  return *v;
}

void PickleMachine::throw_empty() const { fail("an opcode finds the stack empty"); }
void PickleMachine::throw_unmarked() const { fail("an opcode needs a mark on the stack, but there is none"); }

// Doubles the stack. realloc() moves the pages of a large stack, so that there are never two copies of it.
void PickleStack::grow() {
  std::size_t floor = static_cast<std::size_t>(floor_ - bottom()),
              used = static_cast<std::size_t>(end_ - bottom());
  std::size_t more = std::max<std::size_t>(used, 256);
  arena_.account(static_cast<i64>(more * sizeof(PickleValue)));
  void* grown = std::realloc(bottom(), (used + more) * sizeof(PickleValue));
  if (grown == nullptr) throw std::bad_alloc();
  static_cast<void>(values_.release());
  values_.reset(static_cast<PickleValue*>(grown));
  floor_ = bottom() + floor;
  top_ = bottom() + used;
  end_ = top_ + more;
}

// ---- The memo

// Makes the page of a slot, and returns the slot. pre: find_slot() returned null.
PickleValue* PickleMachine::make_slot(u64 index) {
  // Each slot is written by at least one byte of the pickle, so there are no more slots than bytes.
  if (index > bytes_.size() || index >= kMostSlots)
    throw Error(Code::kPickleLimit, "the pickle's memo is too large")
        .offset(opcode_at())
        .expected(cat("at most ", bytes_.size(), " slots"))
        .found(index);
  std::size_t page = static_cast<std::size_t>(index / kPageSlots);
  if (page >= memo_.size()) memo_.resize(page + 1);
  arena_.account(static_cast<i64>(kPageSlots * sizeof(PickleValue)));
  memo_[page] = std::make_unique_for_overwrite<PickleValue[]>(kPageSlots);
  std::fill_n(memo_[page].get(), kPageSlots, PickleArena::hole());
  return find_slot(index);
}

const PickleValue* PickleMachine::make_pending(u64 index) {
  const PickleValue* slot = find_slot(index);
  if (slot != nullptr && PickleArena::is_pending(*slot)) {
    make_record(stack_.at(PickleArena::pending_number(*slot)));
    return slot;
  }
  bool gone = slot != nullptr && *slot == PickleArena::given_up();
  fail(cat("slot ", index, " of the memo is read ",
           gone ? "after its value was taken out" : "but was never written"));
}

// The node has the number of its slot. A slot that was written again since keeps its new value.
bool PickleMachine::give_up(PickleValue v, PickleValue instead) {
  const PickleNode* node = v.container();
  if (node == nullptr || node->shared) return false;
  u64 memo = node->memo;
  arena_.release(v);
  if (memo != 0)
    if (PickleValue* slot = find_slot(memo - 1); *slot == v) *slot = instead;
  return true;
}

// Values that are copied from one container to another have two owners from then on.
void PickleMachine::share_all(std::span<const PickleValue> values) {
  for (PickleValue v : values) PickleArena::share(v);
}

}  // namespace mckpt::impl
