#include "tests/fuzz/mutate/pickle_parts.h"

#include <array>
#include <charconv>

namespace mckpt::impl::mutate {
namespace {

constexpr u8 kFrame = 0x95, kMemoize = 0x94;

struct Form {
  std::string_view codes;
  ArgumentForm form;
};
constexpr std::array<Form, 10> kForms = {{
    {"(.012NR)abd}eslt]uoQ\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x93\x94\x97\x98", {}},
    {"Khq\x80\x82", {.fixed = 1}},
    {"M\x83", {.fixed = 2}},
    {"Jjr\x84", {.fixed = 4}},
    {"G\x95", {.fixed = 8}},
    {"FILPSVgp", {.lines = 1}},
    {"ci", {.lines = 2}},
    {"UC\x8a\x8c", {.length_bytes = 1}},
    {"TXB\x8b", {.length_bytes = 4}},
    {"\x8d\x8e\x96", {.length_bytes = 8}},
}};

std::array<std::optional<ArgumentForm>, 256> make_table() {
  std::array<std::optional<ArgumentForm>, 256> table;
  for (const Form& row : kForms)
    for (char code : row.codes) table[static_cast<u8>(code)] = row.form;
  return table;
}

u64 little_endian_at(const std::string& bytes, std::size_t at, int width) {
  u64 v = 0;
  for (int i = 0; i < width; i++) v |= u64{static_cast<u8>(bytes[at + static_cast<std::size_t>(i)])} << 8 * i;
  return v;
}

void put_little_endian(std::string& out, u64 v, int width) {
  for (int i = 0; i < width; i++) out += static_cast<char>(v >> 8 * i);
}

// Where the argument at `at` ends; npos where the bytes end before. `at` moves behind a length.
std::size_t argument_end(const std::string& bytes, std::size_t& at, const ArgumentForm& form) {
  std::size_t left = bytes.size() - at;
  if (form.length_bytes) {
    if (left < static_cast<std::size_t>(form.length_bytes)) return bytes.npos;
    u64 length = little_endian_at(bytes, at, form.length_bytes);
    at += static_cast<std::size_t>(form.length_bytes);
    return length > bytes.size() - at ? bytes.npos : at + length;
  }
  std::size_t end = at;
  for (int i = 0; i < form.lines; i++) {
    end = bytes.find('\n', end);
    if (end == bytes.npos) return end;
    end++;
  }
  if (form.lines) return end;
  return left < static_cast<std::size_t>(form.fixed) ? bytes.npos : at + static_cast<std::size_t>(form.fixed);
}

// How many values an opcode takes from the stack; -1: all down to a mark. The ones of kStays leave the value
// below those that they take where it is.
int taken_by(u8 code) {
  if (std::string_view("tldeu\x90\x91o1i").find(static_cast<char>(code)) != std::string_view::npos) return -1;
  if (std::string_view("0\x85Qba").find(static_cast<char>(code)) != std::string_view::npos) return 1;
  if (std::string_view("\x86R\x81s\x93").find(static_cast<char>(code)) != std::string_view::npos) return 2;
  return code == 0x87 || code == 0x92 ? 3 : 0;
}
bool stays(u8 code) {
  return std::string_view("eusab\x90").find(static_cast<char>(code)) != std::string_view::npos;
}

}  // namespace

std::optional<ArgumentForm> argument_form(u8 code) {
  static const auto kTable = make_table();
  return kTable[code];
}

const std::string& all_opcodes() {
  static const std::string kAll = [] {
    std::string all;
    for (const Form& row : kForms) all += row.codes;
    return all;
  }();
  return kAll;
}

std::string PickleParts::bytes() const {
  std::string out;
  for (const PickleOp& op : ops) {
    out += static_cast<char>(op.code);
    ArgumentForm form = argument_form(op.code).value_or(ArgumentForm{});
    if (form.length_bytes) put_little_endian(out, op.argument.size(), form.length_bytes);
    out += op.argument;
  }
  return out;
}

std::optional<PickleParts> pickle_parts(const std::string& bytes, std::size_t begin) {
  PickleParts out;
  out.ops.reserve(64);
  i64 memoized = 0;
  for (std::size_t at = begin; at < bytes.size();) {
    u8 code = static_cast<u8>(bytes[at++]);
    std::optional<ArgumentForm> form = argument_form(code);
    if (!form) return std::nullopt;
    std::size_t end = argument_end(bytes, at, *form);
    if (end == bytes.npos) return std::nullopt;
    if (code == kMemoize)
      out.ops.push_back(memo_op(true, memoized++));
    else if (code != kFrame)
      out.ops.push_back({code, bytes.substr(at, end - at)});
    if (is_put(code)) memoized++;
    at = end;
    if (code == '.') {
      out.end = at;
      return out;
    }
  }
  return std::nullopt;
}

std::vector<PickleStretch> pickle_values(const std::vector<PickleOp>& ops) {
  struct Entry {
    std::size_t begin;
    bool mark;
  };
  std::vector<Entry> stack;
  std::vector<PickleStretch> out;
  stack.reserve(64), out.reserve(ops.size());
  for (std::size_t i = 0; i < ops.size(); i++) {
    u8 code = ops[i].code;
    if (is_put(code) || code == 0x80) continue;
    std::size_t begin = i, end = i, place = 0;
    auto take = [&] {
      out.push_back({stack.back().begin, end, code, place++});
      begin = end = stack.back().begin;
      stack.pop_back();
    };
    if (code == '.' || code == '0') {
      if (stack.empty() || stack.back().mark) return out;
      take();
      continue;
    }
    int taken = taken_by(code);
    if (taken < 0) {
      while (!stack.empty() && !stack.back().mark) take();
      if (stack.empty()) return out;
      begin = stack.back().begin;
      stack.pop_back();
    }
    for (; taken > 0; taken--) {
      if (stack.empty() || stack.back().mark) return out;
      take();
    }
    if (code != '1' && !stays(code)) stack.push_back({begin, code == '('});
  }
  return out;
}

std::optional<i64> integer_of(const PickleOp& op) {
  const std::string& a = op.argument;
  switch (op.code) {
    case 'K':
    case 'M':
    case 'h':
    case 'q':
    case 'j':
    case 'r':
      return static_cast<i64>(little_endian_at(a, 0, static_cast<int>(a.size())));
    case 'J':
      return static_cast<i32>(little_endian_at(a, 0, 4));
    case 0x8a: {
      if (a.empty() || a.size() > 8) return std::nullopt;
      int unused = 64 - 8 * static_cast<int>(a.size());
      return static_cast<i64>(little_endian_at(a, 0, static_cast<int>(a.size())) << unused) >> unused;
    }
    case 'I':
    case 'L':
    case 'g':
    case 'p': {
      i64 v = 0;
      if (std::from_chars(a.data(), a.data() + a.size(), v).ec != std::errc()) return std::nullopt;
      return v;
    }
    default:
      return std::nullopt;
  }
}

PickleOp integer_op(i64 value) {
  PickleOp op;
  u64 u = static_cast<u64>(value);
  int width = 8;
  if (value >= 0 && value < 256) {
    op.code = 'K', width = 1;
  } else if (value >= 0 && value < 65536) {
    op.code = 'M', width = 2;
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    op.code = 'J', width = 4;
  } else {
    op.code = 0x8a;
  }
  put_little_endian(op.argument, u, width);
  return op;
}

bool is_put(u8 code) { return code == 'q' || code == 'r' || code == 'p' || code == kMemoize; }
bool is_get(u8 code) { return code == 'h' || code == 'j' || code == 'g'; }
bool is_text(u8 code) {
  return std::string_view("XUTSV\x8c\x8d").find(static_cast<char>(code)) != std::string_view::npos;
}

PickleOp memo_op(bool put, i64 number) {
  bool small = number >= 0 && number < 256;
  PickleOp op{static_cast<u8>(put ? (small ? 'q' : 'r') : (small ? 'h' : 'j')), ""};
  put_little_endian(op.argument, static_cast<u64>(number), small ? 1 : 4);
  return op;
}

}  // namespace mckpt::impl::mutate
