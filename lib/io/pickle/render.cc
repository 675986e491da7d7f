// Prints values as a line or as a tree, shortened and escaped. Shared values are printed at each place, a
// cycle ends at the limit of the line or at "(itself, again)" in the tree.
#include "io/pickle/render.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/pickle/classes.h"
#include "io/pickle/known.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

std::string short_name(const PickleClass& c) { return escaped(c.name); }
std::string full_name(const PickleClass& c) { return cat(escaped(c.module), ".", escaped(c.name)); }

// As Python writes it: the shortest digits that give the same number, an exponent only below 1e-4 and from
// 1e16 on.
std::string python_float(double v) {
  char buffer[64];
  double size = std::fabs(v);
  bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  auto [end, ec] = std::to_chars(buffer, buffer + sizeof buffer, v,
                                 plain ? std::chars_format::fixed : std::chars_format::general);
  std::string out(buffer, end);
  return plain && out.find('.') == out.npos ? out + ".0" : out;
}

// None, bools and numbers.
std::string number(PickleValue v) {
  switch (v.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return v.as_bool() ? "True" : "False";
    case Kind::kFloat:
      return python_float(v.as_float());
    case Kind::kBigInt:
      return cat("integer of ", v.size() * 8, " bits");
    default:
      return cat(v.as_int());
  }
}

// Which entries of a dict have a key that comes again: Python keeps the value of the last one alone. Empty where
// none has, and for dicts that are too large to be looked through at each place where they are.
std::vector<bool> replaced_entries(PickleValue dict) {
  constexpr i64 kMostEntries = 4096;  // args have fewer fields
  if (dict.size() > kMostEntries) return {};
  std::vector<bool> replaced;
  NameMap<std::string_view, std::size_t> last;
  bool any = false;
  for (PickleEntry e : dict.entries()) {
    replaced.push_back(false);
    if (!e.key.is(Kind::kText)) continue;
    auto [at, fresh] = last.try_emplace(e.key.text(), replaced.size() - 1);
    if (fresh) continue;
    replaced[at->second] = any = true;
    at->second = replaced.size() - 1;
  }
  return any ? replaced : std::vector<bool>{};
}

// A line that is being written, until it is full.
class Line {
 public:
  explicit Line(std::size_t most_bytes) : most_(most_bytes) {}

  void write(PickleValue v, int depth) {
    if (full()) return;
    if (depth > kMostDepth) return add("...");
    switch (v.kind()) {
      case Kind::kText:
        return add(cat("'", escaped(v.text(), most_), "'"));
      case Kind::kBytes:
        return add(cat("<", v.size(), v.size() == 1 ? " byte>" : " bytes>"));
      case Kind::kTuple:
        return sequence("(", v, v.size() == 1 ? ",)" : ")", depth);
      case Kind::kList:
        return sequence("[", v, "]", depth);
      case Kind::kSet:
        return sequence("{", v, "}", depth);
      case Kind::kDict:
        return entries(v, depth);
      case Kind::kClass:
        return add(full_name(v.as_class()));
      case Kind::kObject:
        return object(v.as_object(), depth);
      case Kind::kStorage:
        return add(cat("<storage ", storage_key(v), ">"));
      case Kind::kRow:
        return add("<record>");
      case Kind::kHole:
        return add("<nothing>");
      default:
        return add(number(v));
    }
  }

  std::string take() { return full() ? out_ + "..." : std::move(out_); }

 private:
  static constexpr int kMostDepth = 20;

  bool full() const { return out_.size() >= most_; }
  void add(std::string_view text) {
    if (!full()) out_ += text;
  }
  static std::string storage_key(PickleValue v) {
    PickleValue key = v.as_object().args.at(2);
    return key.is(Kind::kText) ? escaped(key.text()) : "?";
  }
  void sequence(std::string_view open, PickleValue v, std::string_view close, int depth) {
    add(open);
    bool first = true;
    for (PickleValue item : v.items()) {
      if (full()) break;
      if (!std::exchange(first, false)) add(", ");
      write(item, depth + 1);
    }
    add(close);
  }
  void entries(PickleValue v, int depth) {
    add("{");
    bool first = true;
    constexpr i64 kShortest = 4;  // bytes of an entry; a line that cannot have all is cut
    const bool fits = v.size() * kShortest <= static_cast<i64>(most_);
    const std::vector<bool> replaced = fits ? replaced_entries(v) : std::vector<bool>{};
    std::size_t i = 0;
    for (PickleEntry e : v.entries()) {
      if (full()) break;
      if (const std::size_t n = i++; !replaced.empty() && replaced[n]) continue;
      if (!std::exchange(first, false)) add(", ");
      write(e.key, depth + 1);
      add(": ");
      write(e.value, depth + 1);
    }
    add("}");
    if (!v.attributes().is_none()) add(" + attributes ");
    if (!v.attributes().is_none()) write(v.attributes(), depth + 1);
  }
  // "module.Class(args){state}[items]".
  void object(const PickleObject& o, int depth) {
    if (std::string known = known_object(o); !known.empty()) return add(known);
    add(full_name(*o.type));
    sequence("(", o.args, ")", depth);
    for (PickleValue part : {o.state, o.items})
      if (!part.is_none()) write(part, depth + 1);
  }

  std::size_t most_;
  std::string out_;
};

// The class and how much is in it.
std::string object_summary(PickleValue v) {
  const PickleObject& o = v.as_object();
  if (std::string known = known_object(o); !known.empty()) return known;
  if (o.state.is(Kind::kDict)) {
    const std::vector<bool> replaced = replaced_entries(o.state);
    return cat(short_name(*o.type), ", ", o.state.size() - std::ranges::count(replaced, true), " fields");
  }
  if (!o.items.is_none()) return cat(short_name(*o.type), " of ", o.items.size());
  return pickle_line(v, 80);
}

// Writes lines until limits.lines of them are out. path_ has the containers around the current one, to see
// a cycle.
class Tree {
 public:
  Tree(const PickleTreeLimits& limits, const std::function<void(std::string_view)>& line)
      : limits_(limits), line_(line), left_(limits.lines) {}

  void write(std::string_view label, PickleValue v, int depth) {
    std::string head(static_cast<std::size_t>(depth) * 2, ' ');
    if (!label.empty()) head += cat(label, ": ");
    const PickleNode* node = v.node();
    bool opens = node != nullptr && node->depth > 1 && !is_plain(v);
    if (!opens) return emit(head + pickle_line(v, limits_.line_bytes));
    if (std::find(path_.begin(), path_.end(), node) != path_.end()) return emit(head + "(itself, again)");
    if (depth >= limits_.depth) return emit(cat(head, pickle_summary(v), " ..."));
    emit(head + pickle_summary(v));
    path_.push_back(node);
    children(v, depth + 1);
    path_.pop_back();
  }

 private:
  // Whether the value fits on a line; dicts and objects with a state are always opened.
  bool is_plain(PickleValue v) const {
    if (v.is(Kind::kDict) && v.size() > 0) return false;
    if (v.is(Kind::kObject) && !v.as_object().state.is_none() && v.as_object().state.size() > 0) return false;
    return pickle_line(v, limits_.line_bytes).size() < limits_.line_bytes;
  }
  void emit(std::string_view text) {
    if (left_-- > 0) line_(text);
    if (left_ == 0) line_("... and more");
  }
  bool done() const { return left_ <= 0; }
  // The items, entries, arguments and state of a container, one level deeper.
  void children(PickleValue v, int depth) {
    i64 n = 0;
    for (PickleValue item : v.items()) {
      if (done()) return;
      if (n == limits_.items)
        return emit(
            cat(std::string(static_cast<std::size_t>(depth) * 2, ' '), "... and ", v.size() - n, " more"));
      write(cat("[", n++, "]"), item, depth);
    }
    const std::vector<bool> replaced = replaced_entries(v);
    std::size_t i = 0;
    for (PickleEntry e : v.entries()) {
      if (done()) return;
      if (const std::size_t k = i++; !replaced.empty() && replaced[k]) continue;
      write(e.key.is(Kind::kText) ? escaped(e.key.text()) : pickle_line(e.key, 60), e.value, depth);
    }
    if (!v.is(Kind::kObject)) return;
    const PickleObject& o = v.as_object();
    if (o.args.size() > 0) write("(args)", o.args, depth);
    if (o.state.is(Kind::kDict)) {
      children(o.state, depth);
    } else if (!o.state.is_none()) {
      write("(state)", o.state, depth);
    }
    if (!o.items.is_none()) children(o.items, depth);
  }

  const PickleTreeLimits& limits_;
  const std::function<void(std::string_view)>& line_;
  i64 left_;
  std::vector<const PickleNode*> path_;
};

}  // namespace

std::string pickle_line(PickleValue v, std::size_t most_bytes) {
  Line line(most_bytes);
  line.write(v, 0);
  return line.take();
}

std::string pickle_summary(PickleValue v) {
  switch (v.kind()) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return cat("bool ", number(v));
    case Kind::kInt:
    case Kind::kWideInt:
      return cat("int ", number(v));
    case Kind::kBigInt:
      return number(v);
    case Kind::kFloat:
      return cat("float ", number(v));
    case Kind::kText:
      return cat("str ", pickle_line(v, 80));
    case Kind::kBytes:
      return cat(v.size(), v.size() == 1 ? " byte" : " bytes");
    case Kind::kTuple:
      return v.size() <= 8 ? cat("tuple ", pickle_line(v, 80)) : cat("tuple of ", v.size());
    case Kind::kList:
      return cat("list of ", v.size());
    case Kind::kSet:
      return cat("set of ", v.size());
    case Kind::kDict:
      return cat("dict of ", v.size());
    case Kind::kObject:
      return object_summary(v);
    default:
      return pickle_line(v, 80);
  }
}

void render_pickle(PickleValue v, const PickleTreeLimits& limits,
                   const std::function<void(std::string_view)>& line) {
  Tree(limits, line).write("", v, 0);
}

}  // namespace mckpt::impl
