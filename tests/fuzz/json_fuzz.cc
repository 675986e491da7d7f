// Any text to the hand-written reader of safetensors headers, to nlohmann's parser, and to our trees, which
// are made of nlohmann's events: all take it or all refuse it, and see the same values.
//
// Meant to differ. Refused by ours alone: a byte order mark, NUL, a key twice in an object, more than 64
// levels, keys over 64 KiB.
#include <bit>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "io/json/json.h"
#include "io/json/json_keys.h"
#include "io/safetensors/header_json.h"
#include "tests/fuzz/mutate/mixed.h"

namespace {

using namespace mckpt::impl;

// Adds an event to a text of events; texts made on the way would cost a third of all time here.
template <typename... Parts>
void add_event(std::string& events, const Parts&... parts) {
  (append_one(events, parts), ...);
  events += '\n';
}

void add_real_event(std::string& events, std::string_view text, double v) {
  add_event(events, "number ", text, " ", std::bit_cast<i64>(v));
}

class Theirs final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string events;
  bool ours_refuses = false;

  bool null() override { return add("null"); }
  bool boolean(bool v) override { return add(v ? "true" : "false"); }
  bool number_integer(number_integer_t v) override { return add("number ", v); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > INT64_MAX) return number_float(static_cast<double>(v), std::to_string(v));
    return number_integer(static_cast<number_integer_t>(v));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    return add_real_event(events, text, v), true;
  }
  bool string(string_t& v) override { return add("string ", v); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open("{"); }
  bool key(string_t& v) override {
    ours_refuses |= !keys_.back().insert(v).second || v.size() > kMaxJsonKeyBytes;
    return add("key ", v);
  }
  bool end_object() override { return close("}"); }
  bool start_array(std::size_t) override { return open("["); }
  bool end_array() override { return close("]"); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  template <typename... Parts>
  bool add(const Parts&... parts) {
    return add_event(events, parts...), true;
  }
  bool open(std::string_view event) {
    keys_.emplace_back();
    ours_refuses |= keys_.size() > kMaxJsonDepth;
    return add(event);
  }
  bool close(std::string_view event) { return keys_.pop_back(), add(event); }

  std::vector<std::set<std::string>> keys_;  // of the open objects; empty sets for arrays
};

struct Ours {
  std::string events;
  bool out_of_range = false;

  void number(std::string_view text) {
    i64 integer = 0;
    if (json_integer_fault(text, integer).empty()) {
      add_event(events, "number ", integer);
      return;
    }
    try {
      add_real_event(events, text, JsonValue(JsonValue::Number{std::string(text)}).real("number"));
    } catch (const Error&) {
      out_of_range = true;
    }
  }

  void value(HeaderJson& json) {
    std::string_view key;
    switch (json.peek()) {
      case JsonType::kNull:
        json.null(), events += "null\n";
        break;
      case JsonType::kBool:
        events += json.boolean() ? "true\n" : "false\n";
        break;
      case JsonType::kNumber:
        number(json.number());
        break;
      case JsonType::kString:
        add_event(events, "string ", json.string());
        break;
      case JsonType::kArray:
        events += "[\n";
        for (json.begin_array(); json.next_item();) value(json);
        events += "]\n";
        break;
      case JsonType::kObject:
        events += "{\n";
        for (json.begin_object(); json.next_key(key); value(json)) add_event(events, "key ", key);
        events += "}\n";
        break;
    }
  }

  void value(const JsonValue& json) {
    switch (json.type()) {
      case JsonType::kNull:
        events += "null\n";
        break;
      case JsonType::kBool:
        events += json.boolean("") ? "true\n" : "false\n";
        break;
      case JsonType::kNumber:
        number(json.number(""));
        break;
      case JsonType::kString:
        add_event(events, "string ", json.string(""));
        break;
      case JsonType::kArray:
        events += "[\n";
        for (const JsonValue& item : json.array("")) value(item);
        events += "]\n";
        break;
      case JsonType::kObject:
        events += "{\n";
        for (const auto& [key, member] : json.object("")) {
          add_event(events, "key ", key);
          value(member);
        }
        events += "}\n";
        break;
    }
  }
};

template <typename Fn>
bool accepts(const Fn& read) {
  try {
    read();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Ours header, tree;
  bool header_taken = accepts([&] {
    HeaderJson json(text);
    header.value(json);
    json.end();
  });
  bool skipped = accepts([&] {
    HeaderJson json(text);
    json.skip();
    json.end();
  });
  bool tree_taken = accepts([&] { tree.value(parse_json(text)); });
  if (skipped != header_taken) __builtin_trap();

  Theirs theirs;
  bool theirs_taken = nlohmann::json::sax_parse(text, &theirs);
  if (theirs.ours_refuses || text.starts_with("\xef\xbb\xbf") || text.find('\0') != text.npos)
    theirs_taken = false;
  if (tree_taken != theirs_taken) __builtin_trap();
  if (header_taken != theirs_taken) __builtin_trap();
  if (tree_taken && tree.events != header.events) __builtin_trap();
  if (tree_taken && !tree.out_of_range && tree.events != theirs.events) __builtin_trap();
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::json)
