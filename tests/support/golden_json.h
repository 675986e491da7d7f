// The JSON of golden files, for tests that must compile in a moment: one value type, no heavy header.
// Strict enough for files of our own; throws std::runtime_error with the byte of the first fault, and on
// every access that does not fit the value, so that a golden file that lost a field fails its test.
//
//   GoldenJson cases = read_golden("layout/fsdp_layout_cases.json");
//   for (const GoldenJson& c : cases.items()) check(c["world"].integer(), c["v1"]["offsets"].integers());
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mckpt::impl {

class GoldenJson {
 public:
  enum class Kind { kNull, kBool, kInteger, kReal, kString, kArray, kObject };

  static GoldenJson parse(std::string_view text);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }

  bool boolean() const;
  std::int64_t integer() const;
  double real() const;  // of an integer as well
  const std::string& string() const;
  const std::vector<GoldenJson>& items() const;                            // of an array
  const std::vector<std::pair<std::string, GoldenJson>>& members() const;  // of an object, in file order
  std::size_t size() const { return kind_ == Kind::kObject ? members_.size() : items().size(); }

  const GoldenJson* find(std::string_view key) const;  // null where there is no such member
  const GoldenJson& operator[](std::string_view key) const;
  const GoldenJson& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  template <std::integral Index>
  const GoldenJson& operator[](Index index) const {
    return items().at(static_cast<std::size_t>(index));
  }

  std::vector<std::int64_t> integers() const;  // of an array of integers
  std::vector<std::string> strings() const;    // of an array of strings

 private:
  friend class GoldenParser;
  void expect(Kind kind) const;

  Kind kind_ = Kind::kNull;
  bool boolean_ = false;
  std::int64_t integer_ = 0;
  double real_ = 0;
  std::string string_;
  std::vector<GoldenJson> items_;
  std::vector<std::pair<std::string, GoldenJson>> members_;
};

// The parsed file test_data/<path>.
GoldenJson read_golden(const std::string& path);

}  // namespace mckpt::impl
