// Walks two values together and reports where they differ. A pair of containers is compared once, so shared
// values cost nothing more and cycles end.
#include "io/pickle/differences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/pickle/arena.h"
#include "io/pickle/classes.h"
#include "io/pickle/keys.h"
#include "io/pickle/render.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kShown = 80;
// The depth that the interpreter knows does not bound the walk: values can be put into containers that are in
// others already.
constexpr int kMostDepth = 2 * PickleArena::kMostDepth;

// The step of a path: ".lr", "[3]".
std::string step_to(PickleValue key) {
  return key.is(Kind::kText) ? cat(".", escaped(key.text())) : cat("[", key_name(key), "]");
}

bool same_class(const PickleClass* a, const PickleClass* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->module == b->module && a->name == b->name;
}

// The recursion; at_ is the path to the current values.
class Walk {
 public:
  Walk(i64 most, const std::function<bool(PickleValue, PickleValue)>& same_storage)
      : most_(most), same_storage_(same_storage) {}

  void compare(PickleValue a, PickleValue b) {
    if (a.is_int() && b.is_int() ? a.as_int() != b.as_int() : a.kind() != b.kind()) return differ(a, b);
    // Their values are compared, too: a dict and an OrderedDict may hold other ones.
    if (a.is_second_type() != b.is_second_type()) differ_in_type(a, b);
    if (a.is_second_type() != b.is_second_type() && !a.container()) return;
    if (depth_ == kMostDepth) return add(pickle_line(a, kShown), "not compared: it is nested too deep");
    depth_++;
    compare_parts(a, b);
    depth_--;
  }

  PickleDifferences take() { return std::move(out_); }

 private:
  // pre: both are of one kind and type
  void compare_parts(PickleValue a, PickleValue b) {
    // A shared difference is reported once, and a cycle ends here.
    if (a.container() && !seen_.insert({a.container(), b.container()}).second) return;
    switch (a.kind()) {
      case Kind::kNone:
      case Kind::kInt:
      case Kind::kWideInt:
      case Kind::kHole:
        return;
      case Kind::kBool:
        return expect(a.as_bool() == b.as_bool(), a, b);
      case Kind::kFloat:
        return expect(std::bit_cast<u64>(a.as_float()) == std::bit_cast<u64>(b.as_float()), a, b);
      case Kind::kText:
      case Kind::kBytes:
      case Kind::kBigInt:
        return expect(std::ranges::equal(a.bytes(), b.bytes()), a, b);
      case Kind::kClass:
        return expect(same_class(&a.as_class(), &b.as_class()), a, b);
      case Kind::kRow:  // numbers of two pickles
        return add(pickle_line(a, kShown), "not compared: it was taken out of the pickle");
      case Kind::kTuple:
      case Kind::kList:
        return sequence(a, b);
      case Kind::kSet:
        return set(a, b);
      case Kind::kDict:
        return dict(a, b);
      case Kind::kObject:
        return object(a, b);
      case Kind::kStorage:
        return storage(a, b);
    }
  }

  void add(std::string expected, std::string found) {
    if (out_.count++ < most_) out_.first.push_back({at_, std::move(expected), std::move(found)});
  }
  // Two long values may look alike once they are cut: then their summaries are shown.
  void differ(PickleValue a, PickleValue b) {
    std::string expected = pickle_line(a, kShown), found = pickle_line(b, kShown);
    if (expected == found) expected = pickle_summary(a), found = pickle_summary(b);
    add(std::move(expected), expected == found ? "another value of this kind" : std::move(found));
  }
  // Both may look alike.
  void differ_in_type(PickleValue a, PickleValue b) {
    add(cat(python_type(a), " ", pickle_line(a, kShown)), cat(python_type(b), " ", pickle_line(b, kShown)));
  }
  void expect(bool same, PickleValue a, PickleValue b) {
    if (!same) differ(a, b);
  }
  template <typename Compare>
  // Runs `compare` with the step appended to the path.
  void inside(const std::string& step, Compare compare) {
    std::size_t length = at_.size();
    at_ += step;
    compare();
    at_.resize(length);
  }
  void compare_at(const std::string& step, PickleValue a, PickleValue b) {
    inside(step, [&] { compare(a, b); });
  }

  void sequence(PickleValue a, PickleValue b) {
    if (a.size() != b.size()) return add(pickle_summary(a), pickle_summary(b));
    auto other = b.items().begin();
    i64 n = 0;
    for (PickleValue item : a.items()) compare_at(cat("[", n++, "]"), item, *other++);
  }

  using Entries = std::map<std::string, PickleEntry>;

  // By the code of the key. A dict keeps the first of the keys that are equal to Python, with the last value. The
  // items of a set are keys alone.
  Entries by_code(PickleValue v) {
    Entries joined, out;
    for (PickleValue item : v.items()) joined.try_emplace(python_.of(item), PickleEntry{item, {}});
    for (PickleEntry e : v.entries()) {
      auto [at, is_new] = joined.try_emplace(python_.of(e.key), e);
      if (!is_new) at->second.value = e.value;
    }
    for (const auto& one : joined) out.emplace(codes_.of(one.second.key), one.second);
    return out;
  }

  // Nothing, and a difference, where a key has no code.
  std::optional<std::pair<Entries, Entries>> both_by_code(PickleValue a, PickleValue b) {
    try {
      return std::pair{by_code(a), by_code(b)};
    } catch (const Error& e) {
      add(pickle_line(a, kShown), cat("not compared: ", e.message()));
      return std::nullopt;
    }
  }

  void set(PickleValue a, PickleValue b) {
    auto both = both_by_code(a, b);
    if (!both) return;
    auto same_code = [](const auto& one, const auto& other) { return one.first == other.first; };
    expect(std::ranges::equal(both->first, both->second, same_code), a, b);
  }

  void dict(PickleValue a, PickleValue b) {
    if (auto both = both_by_code(a, b)) entries(both->first, both->second);
    compare_at("(attributes)", a.attributes(), b.attributes());
  }

  // Joins the two by key.
  void entries(const Entries& mine, Entries& rest) {
    for (const auto& one : mine) {
      const PickleEntry& e = one.second;
      auto at = rest.find(one.first);
      if (at == rest.end()) {
        inside(step_to(e.key), [&] { add(pickle_line(e.value, kShown), "nothing"); });
        continue;
      }
      compare_at(step_to(e.key), e.value, at->second.value);
      rest.erase(at);
    }
    for (const auto& one : rest)
      inside(step_to(one.second.key), [&] { add("nothing", pickle_line(one.second.value, kShown)); });
  }

  void object(PickleValue a, PickleValue b) {
    const PickleObject &x = a.as_object(), &y = b.as_object();
    if (!same_class(x.type, y.type) || x.is_member() != y.is_member()) return differ(a, b);
    compare_at("(args)", x.args, y.args);
    compare_at("", x.state, y.state);
    compare_at("", x.items, y.items);
  }

  // The id is ('storage', class, key, device, items). Keys only number the storages of one file, and the
  // device is the writer's own: neither is compared.
  void storage(PickleValue a, PickleValue b) {
    PickleValue x = a.as_object().args, y = b.as_object().args;
    compare_at("(type)", x.at(1), y.at(1));
    compare_at("(items)", x.at(4), y.at(4));
    PickleValue items = x.at(4), others = y.at(4);
    bool alike = items.is_int() && others.is_int() && items.as_int() == others.as_int();
    if (alike && !same_storage_(a, b)) add("its bytes", "other bytes");
  }

  i64 most_;
  const std::function<bool(PickleValue, PickleValue)>& same_storage_;
  std::string at_;
  int depth_ = 0;
  PickleCodes codes_, python_{PickleCodes::Equal::kToPython};
  std::set<std::pair<const PickleNode*, const PickleNode*>> seen_;
  PickleDifferences out_;
};

}  // namespace

PickleDifferences pickle_differences(
    PickleValue expected, PickleValue found, i64 most,
    const std::function<bool(PickleValue expected, PickleValue found)>& same_storage) {
  Walk walk(most, same_storage);
  walk.compare(expected, found);
  return walk.take();
}

}  // namespace mckpt::impl
