// A parser by recursion, a function for each kind of value.
#include "tests/support/golden_json.h"

#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace mckpt::impl {

class GoldenParser {
 public:
  explicit GoldenParser(std::string_view text) : text_(text) {}

  GoldenJson document() {
    GoldenJson v = value();
    space();
    if (at_ != text_.size()) fail("the end");
    return v;
  }

 private:
  using Kind = GoldenJson::Kind;

  [[noreturn]] void fail(std::string_view wanted) const {
    throw std::runtime_error("golden JSON: expected " + std::string(wanted) + " at byte " +
                             std::to_string(at_));
  }
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  bool take_after_space(char c) {
    space();
    return take({&c, 1});
  }

  GoldenJson value() {
    GoldenJson v;
    space();
    if (take("[")) {
      v.kind_ = Kind::kArray;
      sequence(']', [&] { v.items_.push_back(value()); });
    } else if (take("{")) {
      v.kind_ = Kind::kObject;
      sequence('}', [&] { v.members_.push_back(member()); });
    } else if (take("\"")) {
      v.kind_ = Kind::kString;
      v.string_ = string();
    } else if (bool yes = take("true"); yes || take("false")) {
      v.kind_ = Kind::kBool;
      v.boolean_ = yes;
    } else if (!take("null")) {
      number(v);
    }
    return v;
  }

  template <typename Fn>
  void sequence(char close, Fn&& element) {
    if (take_after_space(close)) return;
    do element();
    while (take_after_space(','));
    if (!take_after_space(close)) fail({&close, 1});
  }

  std::pair<std::string, GoldenJson> member() {
    if (!take_after_space('"')) fail("a key");
    std::string key = string();
    if (!take_after_space(':')) fail(":");
    return {std::move(key), value()};
  }

  void number(GoldenJson& v) {
    const char *begin = text_.data() + at_, *limit = text_.data() + text_.size();
    auto [end, ec] = std::from_chars(begin, limit, v.real_);
    if (ec != std::errc{} || end[-1] > '9')
      fail("a value");  // from_chars knows "inf" and "nan", JSON does not
    bool whole = std::from_chars(begin, end, v.integer_).ptr == end;
    v.kind_ = whole ? Kind::kInteger : Kind::kReal;
    at_ += static_cast<std::size_t>(end - begin);
  }

  std::string string() {
    std::string out;
    while (!take("\"")) {
      if (at_ >= text_.size()) fail("a closing quote");
      out += take("\\") ? escape() : std::string(1, text_[at_++]);
    }
    return out;
  }

  std::string escape() {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
    if (take("u")) return utf8(hex4());
    std::size_t i = at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
    if (i == std::string_view::npos) fail("an escape");
    at_++;
    return std::string(1, kBytes[i]);
  }

  unsigned hex4() {
    unsigned code = 0;
    std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr != digits.data() + 4)
      fail("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  std::string utf8(unsigned c) {
    if (c >= 0xd800 && c < 0xdc00 && take("\\u")) c = 0x10000 + ((c - 0xd800) << 10) + (hex4() - 0xdc00);
    auto byte = [](unsigned b) { return static_cast<char>(b); };
    if (c < 0x80) return {byte(c)};
    if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 63))};
    if (c < 0x10000) return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
    return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
            byte(0x80 | (c & 63))};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

GoldenJson GoldenJson::parse(std::string_view text) { return GoldenParser(text).document(); }

void GoldenJson::expect(Kind kind) const {
  static constexpr const char* kNames[] = {"null", "bool", "integer", "real", "string", "array", "object"};
  if (kind_ != kind)
    throw std::runtime_error(std::string("golden JSON: expected ") + kNames[static_cast<int>(kind)] +
                             ", found " + kNames[static_cast<int>(kind_)]);
}

bool GoldenJson::boolean() const { return expect(Kind::kBool), boolean_; }
std::int64_t GoldenJson::integer() const { return expect(Kind::kInteger), integer_; }
double GoldenJson::real() const { return kind_ == Kind::kInteger ? real_ : (expect(Kind::kReal), real_); }
const std::string& GoldenJson::string() const { return expect(Kind::kString), string_; }
const std::vector<GoldenJson>& GoldenJson::items() const { return expect(Kind::kArray), items_; }

const std::vector<std::pair<std::string, GoldenJson>>& GoldenJson::members() const {
  return expect(Kind::kObject), members_;
}

const GoldenJson* GoldenJson::find(std::string_view key) const {
  for (const auto& [name, v] : members())
    if (name == key) return &v;
  return nullptr;
}

const GoldenJson& GoldenJson::operator[](std::string_view key) const {
  if (const GoldenJson* v = find(key)) return *v;
  throw std::runtime_error("golden JSON: there is no member " + std::string(key));
}

std::vector<std::int64_t> GoldenJson::integers() const {
  std::vector<std::int64_t> out;
  for (const GoldenJson& v : items()) out.push_back(v.integer());
  return out;
}

std::vector<std::string> GoldenJson::strings() const {
  std::vector<std::string> out;
  for (const GoldenJson& v : items()) out.push_back(v.string());
  return out;
}

GoldenJson read_golden(const std::string& path) {
  std::ifstream file(MCKPT_TEST_DATA "/" + path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.view().empty()) throw std::runtime_error("cannot read test_data/" + path);
  return GoldenJson::parse(text.view());
}

}  // namespace mckpt::impl
