// Allocates values in blocks and stops at the limits of memory, number and nesting. Blocks begin at 4 KiB
// and double up to 256 KiB: a DCP folder has thousands of objects, each a pickle of a few hundred bytes.
#include "io/pickle/arena.h"
#include "core/base/error.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostBlockBytes = std::size_t{256} << 10;

u64 address(const void* p) { return reinterpret_cast<u64>(p); }

[[noreturn]] void throw_limit(std::string message, i64 most) {
  throw Error(Code::kPickleLimit, std::move(message)).expected(cat("at most ", most));
}

}  // namespace

void PickleArena::account(i64 bytes) {
  used_ += bytes;
  if (used_ > budget_) throw_limit("the pickle needs more memory than its size justifies", budget_);
}

// The rest of the last block is lost; large pieces get a block of their own, so that the loss stays small.
void* PickleArena::take_from_new_block(std::size_t bytes) {
  // The rest of the block is lost; large pieces get a block of their own, so that it never is much.
  std::size_t block = bytes > block_bytes_ / 4 ? bytes : block_bytes_;
  account(static_cast<i64>(block));
  blocks_.push_back(std::make_unique_for_overwrite<u8[]>(block));
  u8* begin = blocks_.back().get();
  if (block != bytes) {
    at_ = begin + bytes, end_ = begin + block;
    block_bytes_ = std::min(2 * block, kMostBlockBytes);
  }
  return begin;
}

// Pieces above 512 bytes are not reused: records are small.
void PickleArena::give_back(void* p, std::size_t bytes) {
  std::size_t list = (bytes + kGrain - 1) / kGrain;
  if (list >= kFreeLists) return;
  std::memcpy(p, &free_[list], sizeof(void*));
  free_[list] = p;
}

void PickleArena::throw_too_many_nodes() { throw_limit("the pickle has too many values", kMostNodes); }
void PickleArena::throw_too_deep() { throw_limit("the pickle's structure is nested too deep", kMostDepth); }

PickleValue PickleArena::wide_integer(i64 v) {
  auto* n = take_node<PickleNumber>();
  n->bits = static_cast<u64>(v);
  return {Kind::kWideInt, address(n)};
}

PickleValue PickleArena::real(double v) {
  auto* n = take_node<PickleNumber>();
  n->bits = std::bit_cast<u64>(v);
  return {Kind::kFloat, address(n)};
}

// The count has 28 bits, and kMostBytes is less.
PickleValue PickleArena::bytes(Kind kind, std::span<const u8> data) {
  auto* n = take_node<PickleBytes>();
  n->count = data.size() & ((u64{1} << 28) - 1);  // kMostBytes is less
  n->data = data.data();
  return {kind, address(n)};
}

std::span<u8> PickleArena::copy(std::span<const u8> data) {
  if (data.empty()) return {};
  u8* p = static_cast<u8*>(take(data.size()));
  std::memcpy(p, data.data(), data.size());
  return {p, data.size()};
}

PickleValue PickleArena::empty_tuple() {
  if (empty_tuple_.is_none()) {
    auto* n = take_node<PickleNode>();
    n->depth = 1;
    share(empty_tuple_ = {Kind::kTuple, address(n)});
  }
  return empty_tuple_;
}

PickleChunk& PickleArena::room(PickleList& list, std::size_t wanted) {
  if (list.last != nullptr && list.last->count < list.last->capacity) return *list.last;
  // One batch of a pickler fills a chunk exactly; single items get room for their followers.
  std::size_t grown = std::clamp<std::size_t>(list.count, 2, 1024) & ~std::size_t{1};
  std::size_t capacity = std::max(wanted, wanted <= 2 ? grown : 0);
  auto* chunk = static_cast<PickleChunk*>(take(sizeof(PickleChunk) + capacity * sizeof(PickleValue)));
  chunk->next = nullptr;
  chunk->count = 0;
  chunk->capacity = static_cast<u32>(capacity);
  (list.last != nullptr ? list.last->next : list.first) = chunk;
  list.last = chunk;
  return *chunk;
}

// A batch is copied chunk by chunk.
void PickleArena::append(PickleValue to, std::span<const PickleValue> items) {
  auto& list = *to.pointer<PickleList>();
  for (PickleValue v : items) deepen(list, v);
  u64 count = list.count + items.size() / (to.is(Kind::kDict) ? 2 : 1);
  if (count > static_cast<u64>(kMostNodes))
    throw_limit("a container of the pickle has too many items", kMostNodes);
  while (!items.empty()) {
    PickleChunk& chunk = room(list, items.size());
    std::size_t n = std::min<std::size_t>(items.size(), chunk.capacity - chunk.count);
    std::copy_n(items.begin(), n, chunk.values() + chunk.count);
    chunk.count += static_cast<u32>(n);
    items = items.subspan(n);
  }
  list.count = count & ((u64{1} << 28) - 1);
}

void PickleArena::set_attributes(PickleValue dict, PickleValue attributes) {
  auto& d = *dict.pointer<PickleDict>();
  deepen(d, attributes);
  d.attributes = attributes;
}

void PickleArena::set_state(PickleValue object, PickleValue state) {
  auto& o = *object.pointer<PickleObject>();
  deepen(o, state);
  o.state = state;
}

void PickleArena::set_items(PickleValue object, PickleValue items) {
  auto& o = *object.pointer<PickleObject>();
  deepen(o, items);
  o.items = items;
}

void PickleArena::release(PickleValue v) {
  switch (v.kind()) {
    case Kind::kTuple:
      return give_back(v.pointer<void>(), sizeof(PickleNode) + v.node()->count * sizeof(PickleValue));
    case Kind::kObject:
    case Kind::kStorage:
      return give_back(v.pointer<void>(), sizeof(PickleObject));
    default:
      break;
  }
  for (PickleChunk* c = v.pointer<PickleList>()->first; c != nullptr;) {
    PickleChunk* next = c->next;
    give_back(c, sizeof(PickleChunk) + c->capacity * sizeof(PickleValue));
    c = next;
  }
  give_back(v.pointer<void>(), v.is(Kind::kDict) ? sizeof(PickleDict) : sizeof(PickleList));
}

}  // namespace mckpt::impl
