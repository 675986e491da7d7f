// Any bytes as a pickle: read plainly, and once more with a visitor that takes nothing, which has to give the
// same values; then with each of two visitors that take what they can. Values that were read are shown.
//
// A reading that could not differ from an earlier one is left out, since each costs as much as all else: storages
// matter from the first BINPERSID on, and what a visitor would take from the first time on that one is asked.
#include <cstring>
#include <memory>
#include <set>

#include "core/base/error.h"
#include "io/pickle/pickle.h"
#include "io/pickle/render.h"
#include "tests/fuzz/mutate/mixed.h"

namespace {

using namespace mckpt::impl;

// Takes every object.
class TakeAll : public PickleVisitor {
 public:
  std::optional<u64> build(const PickleObject& object, PickleValue state) override {
    for (PickleEntry e : state.entries()) seen_ += pickle_line(e.value, 20).size();
    if (const PickleValue* v = object.field("a")) seen_ += pickle_line(*v, 20).size();
    return seen_;
  }

 private:
  u64 seen_ = 0;
};

// Takes every second one before its state is a dict.
class TakeFromStack final : public TakeAll {
 public:
  using TakeAll::build;
  std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) override {
    if (turn_++ % 2 == 0) return std::nullopt;
    u64 seen = type.name.size();
    for (PickleValue v : state) seen += pickle_line(v, 20).size();
    return seen;
  }

 private:
  u64 turn_ = 0;
};

// Takes nothing, so that what is not made for a visitor has to be made after all.
class TakeNothing final : public PickleVisitor {
 public:
  std::optional<u64> build(const PickleObject&, PickleValue) override { return nothing(); }
  std::optional<u64> build(const PickleClass&, std::span<const PickleValue>) override { return nothing(); }
  bool asked() const { return asked_; }

 private:
  std::optional<u64> nothing() {
    asked_ = true;
    return std::nullopt;
  }

  bool asked_ = false;
};

// Whether two readings of one pickle have the same values in the same order. A pair of values that stand in
// several places is walked through once, so that cycles end.
class Comparison {
 public:
  bool same(PickleValue a, PickleValue b) {
    if (a.kind() != b.kind() || a.is_second_type() != b.is_second_type() || a.size() != b.size())
      return false;
    if (a.container() && a.container()->shared && !seen_.insert({a.container(), b.container()}).second)
      return true;
    switch (a.kind()) {
      case PickleValue::Kind::kNone:
        return true;
      case PickleValue::Kind::kBool:
        return a.as_bool() == b.as_bool();
      case PickleValue::Kind::kInt:
      case PickleValue::Kind::kWideInt:
        return a.as_int() == b.as_int();
      case PickleValue::Kind::kFloat:
        return std::bit_cast<u64>(a.as_float()) == std::bit_cast<u64>(b.as_float());
      case PickleValue::Kind::kText:
      case PickleValue::Kind::kBytes:
      case PickleValue::Kind::kBigInt:
        return std::ranges::equal(a.bytes(), b.bytes());
      case PickleValue::Kind::kClass:
        return same_class(&a.as_class(), &b.as_class());
      case PickleValue::Kind::kTuple:
      case PickleValue::Kind::kList:
      case PickleValue::Kind::kSet:
        return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                          [&](PickleValue x, PickleValue y) { return same(x, y); });
      case PickleValue::Kind::kDict:
        return same_entries(a, b) && same(a.attributes(), b.attributes());
      case PickleValue::Kind::kObject:
      case PickleValue::Kind::kStorage:
        return same_object(a.as_object(), b.as_object());
      case PickleValue::Kind::kRow:   // nothing was taken
      case PickleValue::Kind::kHole:  // no value
        return false;
    }
    return false;
  }

 private:
  static bool same_class(const PickleClass* a, const PickleClass* b) {
    return a && b ? a->module == b->module && a->name == b->name : a == b;
  }
  bool same_entries(PickleValue a, PickleValue b) {
    auto other = b.entries().begin();
    for (PickleEntry e : a.entries()) {
      if (!same(e.key, (*other).key) || !same(e.value, (*other).value)) return false;
      ++other;
    }
    return true;
  }
  bool same_object(const PickleObject& a, const PickleObject& b) {
    return same_class(a.type, b.type) && a.is_member() == b.is_member() && same(a.args, b.args) &&
           same(a.state, b.state) && same(a.items, b.items);
  }

  std::set<std::pair<const PickleNode*, const PickleNode*>> seen_;
};

// Null where it cannot be read.
std::unique_ptr<Pickle> read(std::span<const u8> bytes, const PickleRules& rules) {
  try {
    return std::make_unique<Pickle>(bytes, rules);
  } catch (const Error&) {
    return nullptr;
  }
}

void show(const std::unique_ptr<Pickle>& pickle) {
  if (!pickle) return;
  pickle_summary(pickle->root());
  pickle_line(pickle->root(), 2000);
  render_pickle(pickle->root(), {.lines = 100}, [](std::string_view) {});
  pickle->notes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const u8> bytes(data, size);
  std::unique_ptr<Pickle> plain = read(bytes, {});
  show(plain);
  if (size > 0 && std::memchr(data, 'Q', size)) show(read(bytes, {.storages = true}));
  TakeNothing nothing;
  std::unique_ptr<Pickle> untaken = read(bytes, {.visitor = &nothing});
  if (plain && untaken && !Comparison().same(plain->root(), untaken->root())) __builtin_trap();
  if (nothing.asked()) {
    TakeAll visitor;
    show(read(bytes, {.visitor = &visitor}));
    TakeFromStack from_stack;
    show(read(bytes, {.visitor = &from_stack}));
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::pickle)
