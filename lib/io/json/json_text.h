// JSON as text: where a member of an object is, so that one value can be changed and every other byte stays as
// it was.
//
//   {"vocab_size": 53, "tie_word_embeddings": true}
//    ^ begin            ^ end of the member         with_member(text, 0, "vocab_size", "59")
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mckpt::impl {

// Where a member of an object is in the text: from its key to behind its value.
struct JsonExtent {
  std::size_t begin = 0, end = 0;
};

// Walks over JSON that is known to be valid.
class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) {}

  // The member of the object that begins at or behind `at`; an empty extent if there is none. Sets `value` to
  // where its value begins.
  JsonExtent find(std::size_t at, std::string_view key, std::size_t* value = nullptr) const;
  // Calls visit(key, begin, end) for each member of that object, with where its value is; the key as it is written.
  // Ends where visit() returns false.
  template <typename Visit>
  void each_member(std::size_t at, Visit&& visit) const {
    for (Member m; next_member(at, m);)
      if (!visit(m.key, m.value, m.end)) return;
  }
  std::size_t skip_space(std::size_t at) const;

 private:
  struct Member {
    std::string_view key;
    std::size_t begin = 0, value = 0, end = 0;  // `end` of 0: the first one comes next
  };
  bool next_member(std::size_t object, Member& m) const;
  std::size_t string_end(std::size_t at) const;
  std::size_t value_end(std::size_t at) const;

  std::string_view text_;
};

// The text with that value, itself JSON, of a member of the object at or behind `at`; a member that is not
// there becomes the object's first. pre: the text is valid, and has such an object.
std::string with_member(std::string_view text, std::size_t at, std::string_view key, std::string_view value);

// The text without that member, and without one comma beside it; unchanged where the object lacks it. pre: as above.
std::string without_member(std::string_view text, std::size_t at, std::string_view key);

}  // namespace mckpt::impl
