// Mutation of safetensors headers: of their JSON, and of tensors as a whole, after which offsets may be laid
// out anew so that the file fits together again.
//
//   shape changes   ->   its size and all offsets behind it change   ->   so much data
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "io/file/bytes.h"
#include "tests/fuzz/mutate/json_changes.h"
#include "tests/fuzz/mutate/mutator.h"

namespace mckpt::impl::mutate {
namespace {

constexpr std::array<std::pair<const char*, int>, 21> kTypes = {
    {{"BOOL", 8},        {"U8", 8},          {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
     {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"I16", 16},
     {"U16", 16},        {"F16", 16},        {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},
     {"C64", 64},        {"F64", 64},        {"I64", 64}}};
constexpr i64 kMostDataBytes = 1 << 16;

i64 number(const JsonNode& node) {
  i64 v = -1;
  std::from_chars(node.text.data(), node.text.data() + node.text.size(), v);
  return v;
}

// -1: not known, or not whole bytes.
i64 bytes_of(JsonNode& entry) {
  JsonNode *type = entry.member("dtype"), *shape = entry.member("shape");
  if (!type || !shape) return -1;
  auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return type->text == t.first; });
  if (row == kTypes.end()) return -1;
  i64 bits = row->second;
  for (auto& [name, size] : shape->members)
    if (number(size) < 0 || __builtin_mul_overflow(bits, number(size), &bits)) return -1;
  return bits % 8 ? -1 : bits / 8;
}

// Lays the tensors end to end, in the order of the header, as far as their sizes are known.
void lay_out(JsonNode& header, i64& data_bytes) {
  i64 at = 0;
  for (auto& [name, entry] : header.members) {
    i64 size = name == "__metadata__" ? -1 : bytes_of(entry);
    JsonNode* range = entry.member("data_offsets");
    if (size < 0 || at + size > kMostDataBytes || !range || range->members.size() != 2) continue;
    range->members[0].second.text = std::to_string(at);
    range->members[1].second.text = std::to_string(at += size);
  }
  data_bytes = at;
}

void change_tensor(JsonNode& header, Choice& choice) {
  if (header.members.empty()) return;
  JsonNode& entry = choice.of(header.members).second;
  JsonNode *type = entry.member("dtype"), *shape = entry.member("shape"),
           *range = entry.member("data_offsets");
  switch (choice.below(4)) {
    case 0:
      if (type) type->text = choice.of(kTypes).first;
      break;
    case 1:
      if (shape && choice.one_in(2))
        shape->members.push_back({"", json_word(std::to_string(choice.below(5)))});
      if (shape && !shape->members.empty())
        choice.of(shape->members).second.text = std::to_string(choice.below(9));
      break;
    case 2:  // all ranges that begin or end where this one does move
      if (range && !range->members.empty()) {
        std::string from = choice.of(range->members).second.text,
                    to = std::to_string(choice.below(4) == 0 ? choice.border_near(8) : choice.below(64));
        for (auto& [name, other] : header.members)
          if (JsonNode* r = other.member("data_offsets"))
            for (auto& [none, end] : r->members)
              if (end.text == from) end.text = to;
      }
      break;
    default:
      std::swap(entry, choice.of(header.members).second);
  }
}

}  // namespace

bool safetensors_header(std::string& header, i64& data_bytes, const std::string* other, Choice& choice) {
  std::optional<JsonNode> root = json_tree(header), there = other ? json_tree(*other) : std::nullopt;
  if (!root || (other && !there)) return false;
  for (i64 n = 1 + choice.below(3); n > 0; n--) {
    if (!there && choice.one_in(2))
      change_tensor(*root, choice);
    else
      change_json(*root, there ? &*there : nullptr, choice);
  }
  if (choice.one_in(2)) lay_out(*root, data_bytes);
  if (choice.one_in(8)) data_bytes = std::clamp<i64>(choice.border_near(data_bytes), 0, kMostDataBytes - 1);
  header = root->json();
  if (choice.one_in(4))
    header.append(static_cast<std::size_t>(choice.below(9)), choice.one_in(8) ? '\0' : ' ');
  return true;
}

bool safetensors(std::string& input, const std::string* other, Choice& choice) {
  auto header_of = [](const std::string& file) -> std::optional<std::string> {
    if (file.size() < 8) return std::nullopt;
    u64 length = load_le<u64>(reinterpret_cast<const u8*>(file.data()));
    if (length > file.size() - 8) return std::nullopt;
    return file.substr(8, length);
  };
  std::optional<std::string> header = header_of(input), there = other ? header_of(*other) : std::nullopt;
  if (!header || (other && !there)) return false;
  std::string data = input.substr(8 + header->size());
  i64 data_bytes = std::ssize(data);
  if (!safetensors_header(*header, data_bytes, there ? &*there : nullptr, choice)) return false;
  data.resize(static_cast<std::size_t>(data_bytes), 'd');
  u64 length = header->size();
  if (choice.one_in(64)) length = static_cast<u64>(choice.border_near(static_cast<i64>(length)));
  input.clear();
  for (int i = 0; i < 8; i++) input += static_cast<char>(length >> 8 * i);
  input += *header + data;
  return true;
}

}  // namespace mckpt::impl::mutate
