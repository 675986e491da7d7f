// Memory of a pickle's values: allocation by moving a pointer through blocks, within a budget that is
// proportional to the stream, with free lists for what a visitor has taken. Nothing is destroyed one by
// one: the blocks go all at once, so no nesting, however deep, can overflow the call stack.
//
//   block   [tuple][object][text][list][chunk ...........][dict]|at_ ........ |end_
//   free_   by size: 3 words -> [given back] -> [given back]
//
// The limits answer pickles made to exhaust memory: a few bytes can describe a billion values.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Makes all values of one Pickle, and owns what is behind them. Throws kPickleLimit at each limit.
class PickleArena {
 public:
  // The deepest nesting of containers, the most values, and the largest stream (and so the longest text).
  static constexpr int kMostDepth = 511;  // of containers in each other
  static constexpr i64 kMostNodes = 50'000'000;
  static constexpr i64 kMostBytes = i64{256} << 20;  // of a stream, and so of a text

  // `stored_bytes`: what the pickle takes up in its file, which sets the budget. With the stream itself and
  // the tables made of it, looking at a file takes at most 64 MiB and four times that.
  explicit PickleArena(i64 stored_bytes) : budget_((i64{32} << 20) + 3 * stored_bytes) {}

  using Kind = PickleValue::Kind;
  // Not values: a slot that was never written; one whose value a visitor took; and an object that is made
  // only when somebody asks for it, with its place on the stack.
  static PickleValue hole() { return {Kind::kHole, 0}; }      // never written
  static PickleValue given_up() { return {Kind::kHole, 1}; }  // no more
  static PickleValue pending(u64 number) { return {Kind::kHole, 2 + number}; }
  static bool is_pending(PickleValue v) { return v.is(Kind::kHole) && v.payload() >= 2; }
  static u64 pending_number(PickleValue v) { return v.payload() - 2; }  // pre: is_pending()
  // Values without a node.
  static PickleValue boolean(bool v) { return {Kind::kBool, v}; }
  static PickleValue row(u64 number) { return {Kind::kRow, number}; }
  static PickleValue class_value(PickleClass& c) { return {Kind::kClass, reinterpret_cast<u64>(&c)}; }
  static PickleClass& class_of(PickleValue v) { return *v.pointer<PickleClass>(); }  // pre: kClass
  // The same value as one of the second type of its kind. pre: kBytes to kDict
  static PickleValue of_second_type(PickleValue v) { return {v.kind(), v.payload() | PickleValue::kSecond}; }
  PickleValue integer(i64 v) {
    return i64{-1} << 55 <= v && v < i64{1} << 55 ? PickleValue(Kind::kInt, static_cast<u64>(v))
                                                  : wide_integer(v);
  }
  PickleValue real(double v);
  // kText, kBytes or kBigInt. The bytes are not copied: use copy() first for bytes that go away.
  PickleValue bytes(Kind kind, std::span<const u8> data);
  std::span<u8> copy(std::span<const u8> data);
  PickleValue tuple(std::span<const PickleValue> items) {
    if (items.empty()) return empty_tuple();
    auto* n = take_node<PickleNode>(items.size_bytes());
    n->count = items.size() & ((u64{1} << 28) - 1);
    n->depth = 1;
    // Most have one item or two: a call that copies them takes longer than a loop.
    auto* to = reinterpret_cast<PickleValue*>(n + 1);
    for (PickleValue v : items) {
      deepen(*n, v);
      *to++ = v;
    }
    return {Kind::kTuple, reinterpret_cast<u64>(n)};
  }
  PickleValue empty_tuple();          // one for all
  PickleValue container(Kind kind) {  // an empty kList, kSet or kDict
    PickleNode* n = kind == Kind::kDict ? take_node<PickleDict>() : take_node<PickleList>();
    n->depth = 1;
    return {kind, reinterpret_cast<u64>(n)};
  }
  PickleValue object(Kind kind, const PickleClass* type, PickleValue args) {  // kObject or kStorage
    auto* n = take_node<PickleObject>();
    n->type = type;
    n->args = args;
    n->depth = 1;
    deepen(*n, args);
    return {kind, reinterpret_cast<u64>(n)};
  }

  // The member of an enum, by name.
  PickleValue member(const PickleClass* type, PickleValue name) {
    PickleValue v = object(Kind::kObject, type, tuple({&name, 1}));
    v.pointer<PickleObject>()->count = 1;
    return v;
  }

  // Adds items to a list or set, or keys and values in turn to a dict.
  void append(PickleValue to, std::span<const PickleValue> items);
  void set_attributes(PickleValue dict, PickleValue attributes);
  void set_state(PickleValue object, PickleValue state);
  void set_items(PickleValue object, PickleValue items);

  // Whether one more container around it is allowed.
  static bool may_be_nested(PickleValue v) {
    return v.container() == nullptr || v.container()->depth < kMostDepth;
  }
  // Marks a container as referred to from two places; release() needs one that is not.
  static void share(PickleValue v) {
    if (v.container() != nullptr) v.pointer<PickleNode>()->shared = 1;
  }
  // Gives back the memory of a container to which nothing refers any more; not the memory of the values in
  // it. pre: it is a container, and not shared.
  void release(PickleValue v);

  // Counts memory that is held elsewhere for the pickle, such as stack and memo. Throws kPickleLimit.
  void account(i64 bytes);
  i64 used_bytes() const { return used_; }
  // Notes the memo's slot of a container; a second slot marks it as shared.
  static void set_memo(PickleValue v, u32 slot) {
    if (v.container() == nullptr) return;
    auto& node = *v.pointer<PickleNode>();
    if (node.memo != 0)
      node.shared = 1;
    else
      node.memo = (slot + 1u) & ((1u << 26) - 1);
  }

 private:
  static constexpr std::size_t kGrain = 8, kFreeLists = 64;
  PickleValue wide_integer(i64 v);
  // A new node, followed by `extra_bytes`, for items.
  template <typename T>
  T* take_node(std::size_t extra_bytes = 0) {
    if (++nodes_ > kMostNodes) throw_too_many_nodes();
    return new (take(sizeof(T) + extra_bytes)) T{};
  }
  // Memory of that size: from the free list of the size, otherwise the next of the block.
  void* take(std::size_t bytes) {
    bytes = (bytes + kGrain - 1) & ~(kGrain - 1);
    std::size_t list = bytes / kGrain;
    if (list < kFreeLists && free_[list] != nullptr) {
      void* p = free_[list];
      std::memcpy(&free_[list], p, sizeof(void*));
      return p;
    }
    if (bytes > static_cast<std::size_t>(end_ - at_)) return take_from_new_block(bytes);
    return std::exchange(at_, at_ + bytes);
  }
  void* take_from_new_block(std::size_t bytes);
  void give_back(void* p, std::size_t bytes);
  // Keeps the depth of a container that gets a child: one more than its deepest child.
  static void deepen(PickleNode& node, PickleValue child) {
    const PickleNode* below = child.container();
    if (below == nullptr || below->depth < node.depth) return;
    if (below->depth == kMostDepth) throw_too_deep();
    node.depth = (below->depth + 1u) & 511u;
  }
  [[noreturn]] static void throw_too_many_nodes();
  [[noreturn]] static void throw_too_deep();
  // The list's chunk with room for more, new where the last one is full.
  PickleChunk& room(PickleList& list, std::size_t wanted);

  i64 budget_, used_ = 0, nodes_ = 0;
  std::vector<std::unique_ptr<u8[]>> blocks_;
  std::size_t block_bytes_ = std::size_t{4} << 10;  // of the next one
  u8 *at_ = nullptr, *end_ = nullptr;
  std::array<void*, kFreeLists> free_{};  // by size in grains
  PickleValue empty_tuple_;
};

}  // namespace mckpt::impl
