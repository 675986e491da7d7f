// Any bytes as a pickle: read plainly, and once more with each of two visitors that take what they can, then
// shown; with one that takes nothing, it has to be what it is plainly.
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
  std::optional<u64> build(const PickleObject&, PickleValue) override { return std::nullopt; }
  std::optional<u64> build(const PickleClass&, std::span<const PickleValue>) override { return std::nullopt; }
};

// Nothing where it cannot be read.
std::optional<std::string> text_of(std::span<const u8> bytes, const PickleRules& rules) {
  try {
    return pickle_line(Pickle(bytes, rules).root(), 100'000);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void read(std::span<const u8> bytes, const PickleRules& rules) {
  try {
    Pickle pickle(bytes, rules);
    pickle_summary(pickle.root());
    pickle_line(pickle.root(), 2000);
    render_pickle(pickle.root(), {.lines = 100}, [](std::string_view) {});
    pickle.notes();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TakeAll visitor;
  read({data, size}, {.storages = true});
  read({data, size}, {.visitor = &visitor});
  TakeFromStack from_stack;
  read({data, size}, {.visitor = &from_stack});
  TakeNothing nothing;
  std::optional<std::string> plain = text_of({data, size}, {}),
                             with = text_of({data, size}, {.visitor = &nothing});
  if (plain && with && *plain != *with) __builtin_trap();
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::pickle)
