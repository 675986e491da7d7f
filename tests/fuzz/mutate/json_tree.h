// JSON as a tree that keeps what our own trees refuse: keys twice in an object, numbers of any spelling.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace mckpt::impl::mutate {

struct NamedNode;

struct JsonNode {
  enum class Kind { kWord, kText, kArray, kObject } kind = Kind::kWord;
  std::string
      text;  // of a number, true, false, null: as spelled; of a text: what is between the quotes, as spelled
  std::vector<NamedNode> members;  // of an array: without names

  bool is_number() const {
    return kind == Kind::kWord && !text.empty() && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'));
  }
  JsonNode* member(const std::string& name);
  std::string json() const;
};

struct NamedNode {
  std::string first;
  JsonNode second;
};

JsonNode json_word(std::string text);
JsonNode json_text(std::string text);
// Nothing for what is not JSON in the rough: brackets, commas and quotes have to fit.
std::optional<JsonNode> json_tree(const std::string& text);

}  // namespace mckpt::impl::mutate
