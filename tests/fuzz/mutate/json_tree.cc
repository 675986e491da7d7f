#include "tests/fuzz/mutate/json_tree.h"

#include <algorithm>
#include <string_view>

namespace mckpt::impl::mutate {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : s_(text) {}

  bool whole(JsonNode& out) {
    if (!value(out, 0)) return false;
    blanks();
    return at_ == s_.size();
  }

 private:
  static constexpr int kDepth = 200;

  void blanks() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\t' || s_[at_] == '\r' || s_[at_] == '\n'))
      at_++;
  }
  bool is(char c) {
    blanks();
    if (at_ == s_.size() || s_[at_] != c) return false;
    at_++;
    return true;
  }
  bool text(std::string& out) {
    if (!is('"')) return false;
    for (std::size_t begin = at_; at_ < s_.size(); at_++) {
      if (s_[at_] == '\\') {
        at_++;
      } else if (s_[at_] == '"') {
        out = s_.substr(begin, at_++ - begin);
        return true;
      }
    }
    return false;
  }
  bool members(JsonNode& out, char close, int depth) {
    if (is(close)) return true;
    out.members.reserve(8);  // growing one by one would be most of the time
    do {
      auto& [name, node] = out.members.emplace_back();
      if (close == '}' && !(text(name) && is(':'))) return false;
      if (!value(node, depth + 1)) return false;
    } while (is(','));
    return is(close);
  }
  bool value(JsonNode& out, int depth) {
    if (depth > kDepth) return false;
    if (is('{')) return out.kind = JsonNode::Kind::kObject, members(out, '}', depth);
    if (is('[')) return out.kind = JsonNode::Kind::kArray, members(out, ']', depth);
    if (at_ < s_.size() && s_[at_] == '"') return out.kind = JsonNode::Kind::kText, text(out.text);
    std::size_t end = std::min(s_.find_first_of(" \t\r\n,:[]{}\"", at_), s_.size());
    out.text = s_.substr(at_, end - at_);
    at_ = end;
    return !out.text.empty();
  }

  const std::string& s_;
  std::size_t at_ = 0;
};

void write(const JsonNode& node, std::string& out) {
  switch (node.kind) {
    case JsonNode::Kind::kWord:
      out += node.text;
      return;
    case JsonNode::Kind::kText:
      (out += '"') += node.text;
      out += '"';
      return;
    default:
      break;
  }
  bool object = node.kind == JsonNode::Kind::kObject;
  out += object ? '{' : '[';
  for (std::size_t i = 0; i < node.members.size(); i++) {
    if (i > 0) out += ',';
    if (object) ((out += '"') += node.members[i].first) += "\":";
    write(node.members[i].second, out);
  }
  out += object ? '}' : ']';
}

}  // namespace

JsonNode* JsonNode::member(const std::string& name) {
  for (auto& [key, node] : members)
    if (key == name) return &node;
  return nullptr;
}

std::string JsonNode::json() const {
  std::string out;
  write(*this, out);
  return out;
}

JsonNode json_word(std::string text) { return {JsonNode::Kind::kWord, std::move(text), {}}; }
JsonNode json_text(std::string text) { return {JsonNode::Kind::kText, std::move(text), {}}; }

std::optional<JsonNode> json_tree(const std::string& text) {
  JsonNode out;
  if (!Parser(text).whole(out)) return std::nullopt;
  return out;
}

}  // namespace mckpt::impl::mutate
