// Reads and writes map files. A strict reader: unknown keys, wrong types and control characters are errors,
// because a row that is ignored would lose a tensor.
#include "hf/map_file/map_file.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/file/file.h"
#include "io/json/json.h"
#include "mappings/map_file/map.h"
#include "mappings/map_file/rows.h"
#include "mappings/needs.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMaxBytes = 16 << 20;

// The value as JSON text.
void append_json(std::string& out, const JsonValue& value) {
  std::string_view between;
  switch (value.type()) {
    case JsonType::kNull:
      out += "null";
      return;
    case JsonType::kBool:
      out += value.boolean("") ? "true" : "false";
      return;
    case JsonType::kNumber:
      out += value.number("");
      return;
    case JsonType::kString:
      append_json_string(out, value.string(""));
      return;
    case JsonType::kArray:
      out += '[';
      for (const JsonValue& item : value.array("")) {
        out += between;
        append_json(out, item);
        between = ", ";
      }
      out += ']';
      return;
    case JsonType::kObject:
      out += '{';
      for (const JsonMember& m : value.object("")) {
        out += between;
        append_json_string(out, m.name);
        out += ": ";
        append_json(out, m.value);
        between = ", ";
      }
      out += '}';
      return;
  }
}

[[noreturn]] void fault(std::string_view key, std::string_view what) {
  throw Error(Code::kBadMap, cat("'", escaped(key), "' ", what));
}

// Throws for a text with control characters: names and reasons are printed, and names become names of tensors
// in files.
const std::string& printable(const std::string& text, std::string_view key) {
  auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(text, is_control)) fault(key, "has control characters");
  return text;
}

// The value of a member that must be a text.
const std::string& text_of(const JsonMember& m) {
  if (!m.value.is(JsonType::kString)) fault(m.name, "must be a string");
  return printable(m.value.string(m.name), m.name);
}

bool flag_of(const JsonMember& m) {
  if (!m.value.is(JsonType::kBool)) fault(m.name, "must be true or false");
  return m.value.boolean(m.name);
}

// The dimension along which a parameter is split: 0, 1, or -1 for none.
int dimension_of(const JsonMember& m) {
  if (!m.value.is_integer()) fault(m.name, "must be 0, 1, or -1 for a parameter that is not split");
  i64 dim = m.value.integer(m.name);
  if (dim < -1 || dim > 1) fault(m.name, "must be 0, 1, or -1 for a parameter that is not split");
  return static_cast<int>(dim);
}

// The texts of a list of `mckpt mappings show`; nothing for another value.
std::optional<std::vector<std::string>> texts_of(const JsonMember& m) {
  std::vector<std::string> out;
  if (!m.value.is(JsonType::kArray)) return std::nullopt;
  for (const JsonValue& text : m.value.array(m.name)) {
    if (!text.is(JsonType::kString)) return std::nullopt;
    out.push_back(printable(text.string(m.name), m.name));
  }
  return out;
}

// "hugging_face" and "shapes" of `mckpt mappings show`, which has the names in one list and the shapes in
// another. False: the row has [name, shape] pairs, and no "shapes".
bool read_shown_sources(const JsonValue& object, MapRow& row) {
  std::optional<std::vector<std::string>> names, shapes;
  for (const JsonMember& m : object.object("a row")) {
    if (m.name == "hugging_face") names = texts_of(m);
    if (m.name == "shapes" && !(shapes = texts_of(m))) fault(m.name, "must be a list of shapes");
  }
  if (!shapes) return false;
  if (!names || names->size() != shapes->size())
    fault("hugging_face", "must be a list of names beside 'shapes', one name for each shape");
  for (std::size_t i = 0; i < names->size(); i++) row.sources.push_back({(*names)[i], (*shapes)[i]});
  row.as_shown = true;
  return true;
}

// [["model.layers.{L}.mlp.gate_proj.weight", "ffn hidden"], ...]
std::vector<MapRow::Source> sources_of(const JsonMember& m) {
  if (!m.value.is(JsonType::kArray)) fault(m.name, "must be a list of [name, shape]");
  std::vector<MapRow::Source> out;
  for (const JsonValue& pair : m.value.array(m.name)) {
    if (!pair.is(JsonType::kArray) || pair.array(m.name).size() != 2)
      fault(m.name, "must be a list of [name, shape]");
    const JsonValue::Array& words = pair.array(m.name);
    if (!words[0].is(JsonType::kString) || !words[1].is(JsonType::kString))
      fault(m.name, "must be a list of [name, shape]");
    out.push_back({printable(words[0].string(m.name), m.name), printable(words[1].string(m.name), m.name)});
  }
  return out;
}

// One row. `megatron` and `hugging_face` are required; the rule follows from `rule` or from `partition_dim`,
// not both.
MapRow row_of(const JsonValue& object) {
  MapRow row;
  const bool shown = read_shown_sources(object, row);
  for (const JsonMember& m : object.object("a row")) {
    if (shown && (m.name == "hugging_face" || m.name == "shapes")) continue;
    if (m.name == "megatron")
      row.megatron = text_of(m);
    else if (m.name == "rule")
      row.rule = text_of(m);
    else if (m.name == "hugging_face")
      row.sources = sources_of(m);
    else if (m.name == "partition_dim")
      row.partition_dim = dimension_of(m);
    else if (m.name == "after")
      row.after = text_of(m);
    else if (m.name == "needs")
      row.needs = needs_from_name(text_of(m));
    else if (m.name == "split")
      row.split = key_split_from_name(text_of(m));
    else if (m.name == "buffer")
      row.buffer = flag_of(m);
    else if (m.name == "fp32")
      row.fp32 = flag_of(m);
    else if (m.name == "alternates")
      row.alternates = flag_of(m);
    else if (m.name == "stateless")
      row.stateless = flag_of(m);
    else if (m.name == "gathered_with")
      row.gathered_with = text_of(m);
    else if (m.name == "layer")
      row.layer = text_of(m);
    else if (m.name == "todo")
      row.todo = text_of(m);
    else
      fault(m.name, "is not a key of a row");
  }
  bool open = !row.todo.empty();  // a draft may leave the parameter open
  for (const auto& [key, empty] :
       {std::pair("megatron", row.megatron.empty() && !open), std::pair("hugging_face", row.sources.empty())})
    if (empty) fault(key, "is missing in a row");
  if (row.partition_dim && !row.rule.empty())
    fault("partition_dim", "conflicts with 'rule', which already determines it");
  return row;
}

// A tensor that no parameter reads, with the reason, and the tensor of which it is a copy, if it is one.
MapUnread unread_of(const JsonValue& object) {
  MapUnread unread;
  for (const JsonMember& m : object.object("an unread tensor")) {
    if (m.name == "name")
      unread.name = text_of(m);
    else if (m.name == "copy_of")
      unread.copy_of = m.value.is(JsonType::kNull) ? "" : text_of(m);
    else if (m.name == "reason")
      unread.reason = text_of(m);
    else
      fault(m.name, "is not a key of an unread tensor");
  }
  if (unread.name.empty() || unread.reason.empty()) fault("unread", "needs a name and a reason");
  return unread;
}

// One entry under "config": the value that it has, or {"key": "another entry of config.json"}.
MapEntry entry_of(const JsonMember& m) {
  MapEntry entry{printable(m.name, m.name), {}, {}};
  if (!m.value.is(JsonType::kObject)) {
    append_json(entry.value, m.value);
    return entry;
  }
  const JsonValue::Object& object = m.value.object(m.name);
  if (object.size() != 1 || object[0].name != "key")
    fault(m.name, "must be a value, or {\"key\": \"an entry of config.json\"}");
  entry.from = text_of(object[0]);
  if (entry.from.empty()) fault(m.name, "names no entry");
  return entry;
}

const JsonValue::Array& list_of(const JsonMember& m) {
  if (!m.value.is(JsonType::kArray)) fault(m.name, "must be a list");
  return m.value.array(m.name);
}

// The items of a list of objects.
template <typename Fn>
void each_object(const JsonMember& m, Fn&& fn) {
  for (const JsonValue& item : list_of(m)) {
    if (!item.is(JsonType::kObject)) fault(m.name, "must be a list of objects");
    fn(item);
  }
}

// Whether the file is the answer of `mckpt mappings show` of a family, and its members that a map file does
// not have.
bool is_answer(const JsonValue& file) {
  const JsonValue* schema = file.find("schema");
  return schema && schema->is(JsonType::kString) && schema->string("").starts_with("mckpt.mappings/");
}
bool is_of_answer(std::string_view name) { return name == "schema" || name == "ok"; }

void read_member(const JsonMember& m, MapFile& file) {
  if (m.name == "base") {
    file.base = text_of(m);
  } else if (m.name == "config") {
    if (!m.value.is(JsonType::kObject)) fault(m.name, "must be an object");
    for (const JsonMember& entry : m.value.object(m.name)) file.config.push_back(entry_of(entry));
  } else if (m.name == "rows") {
    each_object(m, [&](const JsonValue& item) { file.rows.push_back(row_of(item)); });
  } else if (m.name == "remove") {
    for (const JsonValue& item : list_of(m)) {
      if (!item.is(JsonType::kString)) fault(m.name, "must be a list of names");
      file.remove.push_back(printable(item.string(m.name), m.name));
    }
  } else if (m.name == "unread") {
    each_object(m, [&](const JsonValue& item) { file.unread.push_back(unread_of(item)); });
  } else {
    fault(m.name, "is not a key of a map file; the keys are base, config, rows, remove and unread");
  }
}

}  // namespace

// A file without members is valid and changes nothing.
MapFile parse_map_file(std::string_view text) {
  JsonValue json = parse_json(text);
  if (!json.is(JsonType::kObject)) throw Error(Code::kBadMap, "a map file is a JSON object with \"rows\"");
  MapFile file;
  const bool answer = is_answer(json);
  for (const JsonMember& m : json.object("the map file")) {
    if (answer && m.name == "family")
      file.base = text_of(m);
    else if (!answer || !is_of_answer(m.name))
      read_member(m, file);
  }
  return file;
}

void refuse_draft(const MapFile& file) {
  std::vector<std::string> lines;
  for (const MapRow& row : file.rows)
    if (!row.todo.empty())
      lines.push_back(cat("to do: ", escaped(row.megatron.empty() ? row.sources[0].name : row.megatron), ": ",
                          escaped(row.todo, 400)));
  if (lines.empty()) return;
  throw Error(Code::kBadMap, cat("the map is a draft: ", counted(std::ssize(lines), "row"), " to decide"))
      .each_note(lines, 100)
      .help(
          "correct each of these rows, and take its \"todo\" out; `mckpt mappings check HF_DIR MAP` says what is left");
}

std::string read_map_text(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&] {
    InputFile file(path, opening);
    if (file.size() > kMaxBytes)
      throw Error(Code::kBadMap, "the map file is too large")
          .expected(cat("at most ", kMaxBytes, " bytes"))
          .found(file.size());
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::span(reinterpret_cast<u8*>(text.data()), text.size()));
    static_cast<void>(parse_map_file(text));
    return text;
  });
}

JsonValue with_entries(const JsonValue& config, const MapFile& file) {
  JsonValue::Object members = config.object("config.json");
  for (const MapEntry& entry : file.config) {
    const JsonValue* from = entry.from.empty() ? nullptr : config.find(entry.from);
    if (!entry.from.empty() && !from)
      throw Error(Code::kBadMap, cat("the map takes '", escaped(entry.key), "' from '", escaped(entry.from),
                                     "', which config.json does not have"));
    JsonValue value = from ? *from : parse_json(entry.value);
    auto at = std::ranges::find(members, entry.key, &JsonMember::name);
    if (at == members.end())
      members.push_back({entry.key, std::move(value)});
    else
      at->value = std::move(value);
  }
  return JsonValue(std::move(members));
}

}  // namespace mckpt::impl
