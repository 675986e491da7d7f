// Scans bytes; whoever calls has parsed the text before.
#include "io/json/json_text.h"

#include <algorithm>

#include "core/base/text.h"

namespace mckpt::impl {

JsonExtent JsonText::find(std::size_t at, std::string_view key, std::size_t* value) const {
  for (Member m; next_member(at, m);) {
    if (m.key != key) continue;
    if (value) *value = m.value;
    return {m.begin, m.end};
  }
  return {};
}

// Goes on to the next member of the object; false behind the last one.
bool JsonText::next_member(std::size_t object, Member& m) const {
  std::size_t at = m.end == 0 ? text_.find('{', object) + 1 : skip_space(m.end);
  if (m.end > 0 && at < text_.size() && text_[at] == ',') at++;
  at = skip_space(at);
  if (at >= text_.size() || text_[at] == '}') return false;
  const std::size_t name_end = string_end(at);
  m.begin = at;
  m.key = text_.substr(at + 1, name_end - at - 2);
  m.value = skip_space(skip_space(name_end) + 1);
  m.end = value_end(m.value);
  return true;
}

std::size_t JsonText::skip_space(std::size_t at) const {
  at = text_.find_first_not_of(" \t\r\n", at);
  return at == text_.npos ? text_.size() : at;
}

std::size_t JsonText::string_end(std::size_t at) const {
  for (at++; text_[at] != '"'; at++)
    if (text_[at] == '\\') at++;
  return at + 1;
}

std::size_t JsonText::value_end(std::size_t at) const {
  if (text_[at] == '"') return string_end(at);
  if (text_[at] != '{' && text_[at] != '[')
    return std::min(text_.find_first_of(",}] \t\r\n", at), text_.size());
  int depth = 0;
  do {
    char c = text_[at];
    if (c == '"') {
      at = string_end(at);
      continue;
    }
    depth += c == '{' || c == '[';
    depth -= c == '}' || c == ']';
    at++;
  } while (depth > 0);
  return at;
}

std::string without_member(std::string_view text, std::size_t at, std::string_view key) {
  const JsonExtent member = JsonText(text).find(at, key);
  if (member.end == 0) return std::string(text);
  const std::size_t before = text.find_last_not_of(" \t\r\n", member.begin - 1);
  std::size_t begin = member.begin, end = member.end;
  if (text[before] == ',') {
    begin = before;
  } else if (std::size_t after = JsonText(text).skip_space(end); text[after] == ',') {
    end = JsonText(text).skip_space(after + 1);
  }
  return cat(text.substr(0, begin), text.substr(end));
}

std::string with_member(std::string_view text, std::size_t at, std::string_view key, std::string_view value) {
  std::size_t begin = 0;
  if (JsonExtent member = JsonText(text).find(at, key, &begin); member.end > 0)
    return cat(text.substr(0, begin), value, text.substr(member.end));
  const std::size_t open = text.find('{', at) + 1, next = JsonText(text).skip_space(open);
  const std::string_view comma = text[next] == '}' ? "" : ",";
  // The characters between the brace and the first member are put between the new one and the first, too.
  return cat(text.substr(0, next), "\"", key, "\": ", value, comma,
             comma.empty() ? "" : text.substr(open, next - open), text.substr(next));
}

}  // namespace mckpt::impl
