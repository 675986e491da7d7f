// Makes trees of nlohmann/json's events. Its parser judges the grammar; depth, keys and the bytes of the text
// as a whole are judged here.
//
// The events carry no positions, so the parser reads through an iterator that says how far it got (Reached).
// The subject of an event ends there: behind a closing quote or bracket, or one byte before it for a number.
//
// NaN, Infinity and -Infinity are not JSON. Where they are wanted, they are parsed as strings of the same
// length ("N" for NaN), and are numbers again where the text has no quote at that place.
#include "io/json/json.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/json/json_keys.h"

namespace mckpt::impl {
namespace {

// How far the parser has read, and whether it has asked for more than there is.
struct Reached {
  std::size_t at = 0;
  bool end = false;
};

class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* byte, Reached* reached) : byte_(byte), reached_(reached) {}

  const char& operator*() const { return *byte_; }
  Cursor& operator++() {
    byte_++;
    reached_->at++;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) {
    if (a.byte_ == b.byte_) a.reached_->end = true;
    return a.byte_ == b.byte_;
  }
  friend bool operator!=(const Cursor& a, const Cursor& b) { return !(a == b); }

 private:
  const char* byte_;
  Reached* reached_;
};

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool in_number(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

// The text with NaN, Infinity and -Infinity outside of strings written as strings of as many bytes.
std::string with_quoted_words(std::string_view text) {
  std::string out(text);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (quoted && text[i] == '\\') {
      i++;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      for (std::string_view word : {"NaN", "Infinity", "-Infinity"})
        if (text.substr(i).starts_with(word)) {
          out[i] = out[i + word.size() - 1] = '"';
          i += word.size() - 1;
          break;
        }
    }
  }
  return out;
}

// "line 2, column 5" for the byte.
std::string line_and_column(std::string_view text, std::size_t byte) {
  std::string_view before = text.substr(0, byte);
  std::size_t begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return cat("line ", std::count(before.begin(), before.end(), '\n') + 1, ", column ", byte - begin + 1);
}

// nlohmann's "[...] parse error at line 1, column 2: syntax error while parsing value - invalid literal; last
// read: 'x'; expected ..." without its place and what it read, which may be long.
std::string reason(std::string_view what) {
  if (std::size_t at = what.find("syntax error "); at != what.npos) what.remove_prefix(at + 13);
  std::size_t read = what.find("; last read: "), expected = what.rfind("; expected ");
  std::string out = escaped(what.substr(0, read), 200);
  if (read != what.npos && expected != what.npos && expected > read)
    out += escaped(what.substr(expected), 60);
  return out;
}

// Takes nlohmann's events (the public functions, but for parse()) and makes the tree.
class TreeMaker {
 public:
  TreeMaker(std::string_view text, std::string_view list, const std::function<void(JsonListed)>* take)
      : text_(text), list_(list), take_(take) {}
  // `keeps`: false: values are judged, and dropped.
  TreeMaker(std::string_view text, bool keeps, i64 most_values)
      : text_(text), take_(nullptr), keeps_(keeps), most_values_(most_values) {}

  JsonValue parse(JsonNumbers numbers) {
    check_json_text(text_, 0);
    // The parser takes a NUL for the end of the text.
    if (std::size_t nul = text_.find('\0'); nul != text_.npos) fail("JSON syntax error: a NUL byte", nul);
    std::string quoted;
    readable_ = numbers == JsonNumbers::kPython ? (quoted = with_quoted_words(text_)) : text_;
    const char *begin = readable_.data(), *end = begin + readable_.size();
    nlohmann::json::sax_parse(Cursor(begin, &reached_), Cursor(end, &reached_), this);
    return std::move(root_);
  }

  bool null() { return add(JsonValue(), reached_.at - 4); }
  bool boolean(bool v) { return add(JsonValue(v), reached_.at - (v ? 4 : 5)); }
  bool number_integer(i64) { return number(); }
  bool number_unsigned(u64) { return number(); }
  bool number_float(double, const std::string&) { return number(); }
  bool binary(nlohmann::json::binary_t&) { return false; }

  bool string(std::string& v) {
    std::size_t begin = string_begin();
    if (text_[begin] == '"') return add(JsonValue(std::move(v)), begin);
    return add(JsonValue(JsonValue::Number{std::string(text_.substr(begin, reached_.at - begin))}), begin);
  }

  bool key(std::string& v) {
    std::size_t begin = string_begin(), written = reached_.at - begin - 2;
    if (text_[begin] != '"') fail("JSON syntax error: a key must be a string", begin);
    bool escapes = written != v.size();
    std::string_view kept = escapes ? unescaped_.emplace_back(v) : text_.substr(begin + 1, written);
    add_json_key(keys_[levels_.size() - 1], kept, static_cast<i64>(begin));
    levels_.back().key = std::move(v);
    return true;
  }

  bool start_object(std::size_t) {
    open(true);
    if (keys_.size() < levels_.size()) keys_.resize(levels_.size());
    keys_[levels_.size() - 1].clear();
    return true;
  }
  bool start_array(std::size_t) {
    open(false);
    return true;
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  // The errors of the parser.
  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception& e) {
    if (complete_at_ > 0) {
      while (complete_at_ < text_.size() && is_blank(text_[complete_at_])) complete_at_++;
      fail("text follows the end of the JSON (trailing)", complete_at_);
    }
    if (e.id == kNumberOverflow)
      fail(cat("the number ", escaped(token, 40), " is out of range (overflow)"), number_begin());
    if (reached_.end)
      fail(levels_.empty()
               ? "the JSON text ends too early"
               : cat("the JSON text ends inside ", levels_.back().object ? "an object" : "an array"),
           text_.size());
    std::size_t at = reached_.at - 1;
    fail(cat("JSON syntax error at ", line_and_column(text_, at), ": ", reason(e.what())), at);
  }

 private:
  static constexpr int kNumberOverflow = 406;  // nlohmann's id

  // An array or an object that is not closed yet.
  struct Level {
    bool object;
    std::size_t begin;
    std::string key = {};  // of the value that comes next
    JsonValue::Array items = {};
    JsonValue::Object members = {};
  };

  [[noreturn]] static void fail(std::string message, std::size_t at) {
    throw_bad_json(std::move(message), static_cast<i64>(at));
  }

  // The opening quote of the string that was just read: the last one without an odd number of backslashes.
  std::size_t string_begin() const {
    std::size_t quote = reached_.at - 1;
    while (true) {
      quote = readable_.rfind('"', quote - 1);
      std::size_t slashes = 0;
      while (slashes < quote && readable_[quote - 1 - slashes] == '\\') slashes++;
      if (slashes % 2 == 0) return quote;
    }
  }

  std::size_t number_end() const { return reached_.at - (in_number(text_[reached_.at - 1]) ? 0 : 1); }
  std::size_t number_begin() const {
    std::size_t begin = number_end();
    while (begin > 0 && in_number(text_[begin - 1])) begin--;
    return begin;
  }

  bool number() {
    std::size_t begin = number_begin();
    return add(JsonValue(JsonValue::Number{std::string(text_.substr(begin, number_end() - begin))}), begin);
  }

  void open(bool object) {
    std::size_t begin = reached_.at - 1;
    if (levels_.size() == kMaxJsonDepth)
      fail(cat("the JSON is nested deeper than the limit of ", kMaxJsonDepth), begin);
    levels_.push_back({.object = object, .begin = begin});
  }

  bool close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    if (level.object) return add(JsonValue(std::move(level.members)), level.begin);
    return add(JsonValue(std::move(level.items)), level.begin);
  }

  bool add(JsonValue value, std::size_t begin) {
    if (++values_ > most_values_)
      throw Error(Code::kBadJson, "the JSON has more values than a config")
          .offset(static_cast<i64>(begin))
          .expected(cat("at most ", with_commas(most_values_)))
          .found("more");
    if (levels_.empty()) {
      complete_at_ = value.is(JsonType::kNumber) ? number_end() : reached_.at;
      root_ = std::move(value);
    } else if (take_ && levels_.size() == 2 && levels_[0].key == list_) {
      (*take_)({std::move(levels_[1].key), std::move(value), static_cast<i64>(begin)});
    } else if (!keeps_) {
      return true;
    } else if (Level& level = levels_.back(); level.object) {
      level.members.push_back({std::move(level.key), std::move(value)});
    } else {
      level.items.push_back(std::move(value));
    }
    return true;
  }

  std::string_view text_, readable_;  // readable_ is what the parser reads: the same length
  std::string_view list_;
  const std::function<void(JsonListed)>* take_;  // null: nothing is given away
  bool keeps_ = true;
  i64 values_ = 0, most_values_ = std::numeric_limits<i64>::max();
  Reached reached_;
  std::vector<Level> levels_;
  std::vector<JsonKeys> keys_;         // one a depth, reused
  std::deque<std::string> unescaped_;  // keys
  JsonValue root_;
  std::size_t complete_at_ = 0;  // behind the end of the document; 0 before it is there
};

}  // namespace

JsonValue parse_json(std::string_view text, JsonNumbers numbers) {
  return TreeMaker(text, {}, nullptr).parse(numbers);
}

JsonValue parse_config(std::string_view text, JsonNumbers numbers) {
  return TreeMaker(text, true, kMostConfigValues).parse(numbers);
}

JsonType check_json(std::string_view text, JsonNumbers numbers) {
  return TreeMaker(text, false, std::numeric_limits<i64>::max()).parse(numbers).type();
}

JsonValue parse_json_list(std::string_view text, std::string_view list,
                          const std::function<void(JsonListed)>& take) {
  return TreeMaker(text, list, &take).parse(JsonNumbers::kStrict);
}

}  // namespace mckpt::impl
