// Mutation of pickles: opcodes that come, go, change places and arguments; and whole values that are copied,
// dropped, exchanged, or changed wherever they stand, so that what fitted together still does.
#include <algorithm>
#include <array>
#include <map>

#include "tests/fuzz/mutate/mutator.h"
#include "tests/fuzz/mutate/pickle_parts.h"

namespace mckpt::impl::mutate {
namespace {

using Ops = std::vector<PickleOp>;
constexpr std::size_t kMostOps = 20'000;

i64 highest_memo(const Ops& ops) {
  i64 highest = -1;
  for (const PickleOp& op : ops)
    if (is_put(op.code)) highest = std::max(highest, integer_of(op).value_or(-1));
  return highest;
}

// A stretch of opcodes that may stand beside the one that it is copied from: its PUTs get numbers from
// `first` on, and its GETs of these follow.
Ops renumbered(Ops stretch, i64 first) {
  std::map<i64, i64> numbers;
  for (PickleOp& op : stretch) {
    std::optional<i64> n = is_put(op.code) || is_get(op.code) ? integer_of(op) : std::nullopt;
    if (!n) continue;
    if (is_put(op.code)) {
      numbers[*n] = first;
      op = memo_op(true, first++);
    } else if (auto it = numbers.find(*n); it != numbers.end()) {
      op = memo_op(false, it->second);
    }
  }
  return stretch;
}

Ops part(const Ops& ops, std::size_t begin, std::size_t end) {
  return {ops.begin() + static_cast<i64>(begin), ops.begin() + static_cast<i64>(end)};
}

void put_in_place(Ops& ops, std::size_t begin, std::size_t end, const Ops& with) {
  ops.erase(ops.begin() + static_cast<i64>(begin), ops.begin() + static_cast<i64>(end));
  ops.insert(ops.begin() + static_cast<i64>(begin), with.begin(), with.end());
}

void change_number(PickleOp& op, i64 v) {
  if (is_put(op.code) || is_get(op.code))
    op = memo_op(is_put(op.code), v);
  else if (op.code == 'I' || op.code == 'L')
    op.argument = std::to_string(v) + "\n";
  else
    op = integer_op(v);
}

// --- Opcodes by themselves. ---

const PickleOp* any_text(const Ops& ops, Choice& choice) {
  for (int tries = 0; tries < 20 && !ops.empty(); tries++)
    if (const PickleOp& op = choice.of(ops); is_text(op.code)) return &op;
  return nullptr;
}

void change_argument(Ops& ops, PickleOp& op, Choice& choice) {
  if (std::optional<i64> n = integer_of(op)) {
    if (is_put(op.code) || is_get(op.code))
      change_number(op, choice.below(highest_memo(ops) + 3));
    else
      change_number(op, choice.border_near(*n));
  } else if (!op.argument.empty()) {
    const PickleOp* other = any_text(ops, choice);
    std::size_t size = op.argument.size();
    op.argument = text_near(op.argument, other ? other->argument : "", choice);
    ArgumentForm form = argument_form(op.code).value_or(ArgumentForm{});
    if (form.fixed) op.argument.resize(size);
    if (form.lines && !op.argument.ends_with('\n')) op.argument += '\n';
    if (form.length_bytes == 1 && op.argument.size() > 255) op.argument.resize(255);
  }
}

PickleOp any_op(const Ops& ops, Choice& choice) {
  if (choice.one_in(2) && !ops.empty()) return choice.of(ops);
  PickleOp op{static_cast<u8>(choice.of(all_opcodes())), ""};
  ArgumentForm form = argument_form(op.code).value_or(ArgumentForm{});
  for (int i = 0; i < form.fixed; i++) op.argument += static_cast<char>(choice.one_in(3) ? choice.next() : 0);
  for (int i = 0; i < form.lines; i++) op.argument += choice.one_in(2) ? "1\n" : "collections\n";
  if (form.length_bytes) op.argument.assign(static_cast<std::size_t>(choice.below(5)), 'a');
  return op;
}

void change_opcodes(Ops& ops, Choice& choice) {
  std::size_t at = static_cast<std::size_t>(choice.below(std::ssize(ops)));
  auto it = ops.begin() + static_cast<i64>(at);
  switch (choice.below(7)) {
    case 0:
      ops.insert(it, any_op(ops, choice));
      break;
    case 1:
      ops.erase(it);
      break;
    case 2: {
      PickleOp again = *it;
      ops.insert(it, again);
      break;
    }
    case 3:
      std::swap(*it, choice.of(ops));
      break;
    case 4: {  // the protocol
      PickleOp protocol{0x80, std::string(1, static_cast<char>(choice.below(7)))};
      ops.front().code == 0x80 ? void(ops.front() = protocol) : void(ops.insert(ops.begin(), protocol));
      break;
    }
    default:
      for (int tries = 0; tries < 8 && it->argument.empty(); tries++)
        it = ops.begin() + choice.below(std::ssize(ops));
      change_argument(ops, *it, choice);
  }
}

// --- Values. ---

Ops plain_value(Choice& choice) {
  static const std::array<std::string, 8> kValues = {"N", "\x88", "\x89", "]", "}", ")", "(t", "(l"};
  if (choice.one_in(3)) return {integer_op(choice.border_near(choice.below(100)))};
  Ops out;
  for (char code : choice.of(kValues)) out.push_back({static_cast<u8>(code), ""});
  return out;
}

// The number or text of one opcode, and of all that have the same, becomes another one: a tensor is renamed
// everywhere, a chunk's end moves together with the next one's begin.
bool change_everywhere(Ops& ops, Choice& choice) {
  auto counts = [](const PickleOp& op) {
    return is_text(op.code) || (integer_of(op) && !is_put(op.code) && !is_get(op.code));
  };
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < ops.size(); i++)
    if (counts(ops[i])) places.push_back(i);
  if (places.empty()) return false;
  PickleOp from = ops[choice.of(places)], to = from, other = ops[choice.of(places)];
  if (std::optional<i64> n = integer_of(from))
    change_number(to, choice.one_in(2) ? integer_of(other).value_or(*n) : choice.border_near(*n));
  else
    change_argument(ops, to, choice);
  bool all = choice.one_in(2);
  std::size_t only = choice.of(places);
  for (std::size_t i : places)
    if (ops[i].code == from.code && ops[i].argument == from.argument && (all || i >= only)) {
      ops[i] = to;
      if (!all) break;
    }
  return true;
}

// An item of a list, or an entry of a dict (a key and the value behind it), once more or not at all.
void change_entries(Ops& ops, const std::vector<PickleStretch>& values, Choice& choice) {
  const PickleStretch* last = nullptr;
  for (int tries = 0; tries < 20 && !last; tries++)
    if (const PickleStretch& v = choice.of(values);
        std::string_view("ue\x90t").find(static_cast<char>(v.user)) != std::string_view::npos)
      last = &v;
  if (!last) return;
  std::size_t begin = last->begin, end = last->end;
  if (last->user == 'u') {  // values have even places, the key before it is the next one
    for (const PickleStretch& v : values)
      if (last->place % 2 == 0 ? v.end == begin && v.user == 'u' : v.begin == end && v.user == 'u') {
        begin = std::min(begin, v.begin), end = std::max(end, v.end);
        break;
      }
  }
  if (choice.one_in(2)) {
    put_in_place(ops, begin, end, {});
    return;
  }
  Ops again = renumbered(part(ops, begin, end), highest_memo(ops) + 1);
  if (choice.one_in(2)) change_everywhere(again, choice);
  put_in_place(ops, end, end, again);
}

void change_values(Ops& ops, const std::vector<PickleStretch>& values, const Ops* others, Choice& choice) {
  PickleStretch a = choice.of(values), b = choice.of(values);
  switch (choice.below(6)) {
    case 0:
      put_in_place(ops, a.begin, a.end, plain_value(choice));
      break;
    case 1: {  // wrapped
      static constexpr std::array<u8, 3> kAround = {0x85, 'Q', '2'};
      put_in_place(ops, a.end, a.end, {{choice.of(kAround), ""}});
      break;
    }
    case 2:
      if (a.end <= b.begin) {
        Ops first = part(ops, a.begin, a.end), second = part(ops, b.begin, b.end);
        put_in_place(ops, b.begin, b.end, first);
        put_in_place(ops, a.begin, a.end, second);
        break;
      }
      [[fallthrough]];
    case 3: {  // in place of another value, or of a value of the other input
      const Ops& source = others ? *others : ops;
      std::vector<PickleStretch> there = others ? pickle_values(source) : values;
      if (there.empty()) break;
      PickleStretch from = choice.of(there);
      put_in_place(ops, a.begin, a.end,
                   renumbered(part(source, from.begin, from.end), highest_memo(ops) + 1));
      break;
    }
    default:
      change_entries(ops, values, choice);
  }
}

void change(Ops& ops, const Ops* others, Choice& choice) {
  if (ops.empty()) return;
  if (!others && choice.one_in(3)) return change_opcodes(ops, choice);
  if (!others && choice.one_in(2) && change_everywhere(ops, choice)) return;
  std::vector<PickleStretch> values = pickle_values(ops);
  if (values.empty()) return change_opcodes(ops, choice);
  change_values(ops, values, others, choice);
}

}  // namespace

bool pickle(std::string& input, const std::string* other, Choice& choice) {
  std::optional<PickleParts> parts = pickle_parts(input);
  if (!parts || parts->ops.size() > kMostOps) return false;
  std::optional<PickleParts> others = other ? pickle_parts(*other) : std::nullopt;
  if (other && !others) return false;
  for (i64 n = choice.one_in(2) ? 1 : 1 + choice.below(4); n > 0; n--)
    change(parts->ops, others ? &others->ops : nullptr, choice);
  input = parts->bytes() + input.substr(parts->end);
  return true;
}

bool pickles(std::string& input, const std::string* other, Choice& choice) {
  std::vector<std::size_t> begins = {0};
  while (std::optional<PickleParts> parts = pickle_parts(input, begins.back())) begins.push_back(parts->end);
  if (begins.size() == 1) return false;
  begins.pop_back();
  std::size_t begin = choice.of(begins);
  std::string rest = input.substr(begin);
  if (!pickle(rest, other, choice)) return false;
  input = input.substr(0, begin) + rest;
  return true;
}

}  // namespace mckpt::impl::mutate
