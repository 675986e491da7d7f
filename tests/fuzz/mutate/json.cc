// Mutation of JSON as a tree.
#include <array>
#include <charconv>

#include "tests/fuzz/mutate/json_changes.h"
#include "tests/fuzz/mutate/mutator.h"

namespace mckpt::impl::mutate {
namespace {

void collect(JsonNode& node, std::vector<JsonNode*>& out) {
  out.push_back(&node);
  for (auto& [name, member] : node.members) collect(member, out);
}

std::string number_near(const std::string& text, const std::string& other, Choice& choice) {
  static constexpr std::array<const char*, 14> kSpelled = {"0",
                                                           "-0",
                                                           "1.0",
                                                           "1e3",
                                                           "1E400",
                                                           "-1e-400",
                                                           "0.5",
                                                           "18446744073709551615",
                                                           "18446744073709551616",
                                                           "9223372036854775808",
                                                           "-9223372036854775809",
                                                           "01",
                                                           "1e0",
                                                           "0x10"};
  if (choice.one_in(4)) return choice.of(kSpelled);
  if (choice.one_in(3)) return other;
  i64 v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return std::to_string(choice.border_near(v));
}

// The same letter, spelled with an escape.
std::string escaped_somewhere(std::string text, Choice& choice) {
  static constexpr std::array<const char*, 8> kEscapes = {
      "\\u0061", "\\ud83d\\ude00", "\\ud800", "\\n", "\\u0000", "\\/", "\\x", "\\u00e9"};
  std::size_t at = static_cast<std::size_t>(choice.below(std::ssize(text) + 1));
  if (at < text.size() && choice.one_in(2) && text[at] != '\\') {
    static constexpr char kDigits[] = "0123456789abcdef";
    u8 c = static_cast<u8>(text[at]);
    return text.replace(at, 1, std::string("\\u00") + kDigits[c >> 4] + kDigits[c & 15]);
  }
  return text.insert(at, choice.of(kEscapes));
}

JsonNode plain_node(Choice& choice) {
  static constexpr std::array<const char*, 4> kWords = {"null", "true", "false", "0"};
  switch (choice.below(5)) {
    case 0:
      return {JsonNode::Kind::kArray, "", {}};
    case 1:
      return {JsonNode::Kind::kObject, "", {}};
    case 2:
      return json_text("");
    default:
      return json_word(choice.of(kWords));
  }
}

void change_members(JsonNode& node, const std::string& text, Choice& choice) {
  std::size_t i = static_cast<std::size_t>(choice.below(std::ssize(node.members)));
  auto at = node.members.begin() + static_cast<i64>(i);
  switch (choice.below(6)) {
    case 0:
      node.members.erase(at);
      break;
    case 1: {
      auto again = *at;
      if (choice.one_in(2)) again.first = text_near(again.first, text, choice);
      node.members.insert(node.members.begin() + choice.below(std::ssize(node.members) + 1),
                          std::move(again));
      break;
    }
    case 2:
      std::swap(at->second, choice.of(node.members).second);
      break;
    case 3:
      at->first =
          choice.one_in(4) ? escaped_somewhere(at->first, choice) : text_near(at->first, text, choice);
      break;
    case 4:
      at->first = choice.of(node.members).first;
      break;
    default:
      std::swap(*at, choice.of(node.members));
  }
}

// All numbers or texts that are spelled alike become another one.
void change_everywhere(std::vector<JsonNode*>& nodes, const std::string& from, const std::string& to) {
  for (JsonNode* node : nodes)
    if (node->members.empty() && node->text == from) node->text = to;
}

}  // namespace

void change_json(JsonNode& root, const JsonNode* other, Choice& choice) {
  std::vector<JsonNode*> nodes;
  collect(root, nodes);
  JsonNode &node = *choice.of(nodes), &second = *choice.of(nodes);
  if (other && choice.one_in(2)) {
    std::vector<JsonNode*> there;
    collect(const_cast<JsonNode&>(*other), there);
    JsonNode value = *choice.of(there);
    if (node.kind == JsonNode::Kind::kObject && choice.one_in(2) && !there.front()->members.empty())
      node.members.push_back(choice.of(there.front()->members));
    else
      node = std::move(value);
    return;
  }
  if (choice.one_in(6)) {  // a value in the place of another one, or around itself
    JsonNode value = choice.one_in(2) ? second : plain_node(choice);
    if (choice.one_in(4)) {
      JsonNode around{JsonNode::Kind::kArray, "", {{"", node}}};
      value = std::move(around);
    }
    node = std::move(value);
    return;
  }
  if (!node.members.empty()) return change_members(node, second.text, choice);
  std::string text = node.is_number() ? number_near(node.text, second.is_number() ? second.text : "1", choice)
                     : node.kind == JsonNode::Kind::kText && choice.one_in(4)
                         ? escaped_somewhere(node.text, choice)
                         : text_near(node.text, second.text, choice);
  if (choice.one_in(3)) return change_everywhere(nodes, std::string(node.text), text);
  node.text = std::move(text);
}

bool json(std::string& input, const std::string* other, Choice& choice) {
  std::optional<JsonNode> root = json_tree(input), there = other ? json_tree(*other) : std::nullopt;
  if (!root || (other && !there)) return false;
  for (i64 n = choice.one_in(2) ? 1 : 1 + choice.below(4); n > 0; n--)
    change_json(*root, there ? &*there : nullptr, choice);
  input = root->json();
  return true;
}

}  // namespace mckpt::impl::mutate
