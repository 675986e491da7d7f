// Writes and reads cards. A card that is read back is not trusted: offsets are checked against the sizes of
// files, names against the folder, and the digests of files against the one over all of them.
#include "io/card/card_json.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "core/base/error.h"
#include "io/file/crc32.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/json/json_writer.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kStatement = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicate = "https://model_signing/signature/v1.0";
constexpr i64 kMostCardBytes = i64{1} << 30;

void write_strings(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts) {
  json.key(name).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

// "" becomes null.
void write_text(JsonWriter& json, std::string_view name, const std::string& text) {
  text.empty() ? json.null_field(name) : json.field(name, text);
}

// One writing.
class CardWriter {
 public:
  explicit CardWriter(const Card& card) : card_(card), json_(text_) {}

  std::string run() {
    json_.begin_object().field("schema", kCardSchema);
    bool checked = !card_.checks.empty();
    bool equal = !card_.comparison || card_.comparison->equal;
    checked ? json_.field("ok", card_.sound() && equal) : json_.null_field("ok");
    statement();
    about();
    checks();
    tensors();
    json_.end_object();
    return std::move(text_) + "\n";
  }

 private:
  void line() { text_ += '\n'; }

  // Begins an item of a list on a line of its own.
  void begin_item() {
    json_.begin_object();
    bool first = !text_.ends_with(", {");
    text_.erase(text_.size() - (first ? 1 : 2));
    text_ += "\n{";
  }

  void statement() {
    json_.field("_type", kStatement).key("subject").begin_array().begin_object();
    json_.field("name", card_.name).key("digest").begin_object().field("sha256", card_.root()).end_object();
    json_.end_object().end_array().field("predicateType", kPredicate);
    json_.key("predicate").begin_object().key("serialization").begin_object();
    json_.field("method", "files").field("hash_type", "sha256").field("allow_symlinks", true);
    write_strings(json_, "ignore_paths", card_.ignored);
    json_.end_object().key("resources").begin_array();
    for (const CardFile& f : card_.files) file(f);
    json_.end_array().end_object();
    line();
  }

  void file(const CardFile& f) {
    begin_item();
    json_.field("name", f.name).field("algorithm", "sha256").field("digest", f.sha256);
    json_.field("bytes", f.bytes).key("others").begin_array();
    for (const SummedStretch& s : f.others)
      json_.begin_array().value(s.offset).value(s.bytes).value(crc32_text(s.crc32)).end_array();
    json_.end_array().end_object();
  }

  void about() {
    json_.field("mckpt", card_.version);
    write_text(json_, "command", card_.command);
    json_.field("single_file", card_.single_file);
    write_text(json_, "format", card_.format);
    json_.key("facts").begin_array();
    for (const auto& [name, value] : card_.facts)
      json_.begin_object().field("name", name).field("value", value).end_object();
    json_.end_array();
    json_.field("bytes", card_.bytes()).field("tensor_count", static_cast<i64>(std::ssize(card_.tensors)));
    write_strings(json_, "made_of", card_.made_of);
    write_text(json_, "plan", card_.plan);
    if (!card_.comparison) {
      json_.null_field("against");
    } else {
      const CardComparison& c = *card_.comparison;
      json_.key("against").begin_object().field("source", c.source).field("equal", c.equal);
      json_.field("tensors", c.tensors).field("rounded", c.rounded).end_object();
    }
    line();
  }

  void checks() {
    json_.key("checks").begin_array();
    for (const Check& c : card_.checks) {
      begin_item();
      json_.field("name", c.name).field("status", status_name(c.status));
      json_.field("count", c.count).field("unit", c.unit).field("unseen", c.unseen);
      write_text(json_, "note", c.note);
      json_.end_object();
    }
    json_.end_array().key("findings").begin_array();
    for (const Finding& f : card_.findings) finding(f);
    json_.end_array().key("unread").begin_array();
    for (const NotRead& u : card_.unread) {
      json_.begin_object().field("path", u.path);
      write_text(json_, "reason", u.why());
      json_.end_object();
    }
    json_.end_array();
    line();
  }

  void finding(const Finding& f) {
    begin_item();
    json_.field("code", code_name(f.code)).field("warning", f.warning);
    write_text(json_, "tensor", f.tensor);
    write_text(json_, "file", f.file);
    f.offset < 0 ? json_.null_field("offset") : json_.field("offset", f.offset);
    json_.field("message", f.message).end_object();
  }

  void tensors() {
    json_.key("tensors").begin_array();
    for (const CardTensor& t : card_.tensors) {
      begin_item();
      json_.field("name", t.name);
      write_text(json_, "checkpoint", t.checkpoint);
      json_.field("dtype", t.dtype).key("shape").value(std::span<const i64>(t.shape));
      write_text(json_, "sha256", t.sha256);
      json_.field("located", t.located).key("chunks").begin_array();
      for (const CardChunk& c : t.chunks) {
        json_.begin_object().field("file", card_.files[c.file].name).field("offset", c.offset);
        json_.field("bytes", c.bytes).field("sha256", c.sha256).end_object();
      }
      json_.end_array().end_object();
    }
    json_.end_array();
    line();
  }

  const Card& card_;
  std::string text_;
  JsonWriter json_;
};

[[noreturn]] void throw_bad(std::string message, std::string_view found) {
  throw Error(Code::kBadCard, std::move(message)).found(escaped(found));
}

std::string parse_digest(const JsonValue& value, std::string_view what) {
  const std::string& text = value.string(what);
  auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 64 || !std::ranges::all_of(text, is_hex))
    throw_bad("a digest is not 64 hexadecimal digits", text);
  return text;
}

const JsonValue& member(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.find(key);
  if (!value) throw Error(Code::kBadCard, cat("the card lacks `", key, "`"));
  return *value;
}

std::string parse_name(const JsonValue& value) {
  const std::string& name = value.string("name");
  check_inside_name(name);
  return name;
}

CardFile parse_file(const JsonValue& value) {
  CardFile f;
  f.name = parse_name(member(value, "name"));
  f.bytes = member(value, "bytes").integer("bytes");
  f.sha256 = parse_digest(member(value, "digest"), "digest");
  if (f.bytes < 0) throw_bad("a file has a negative size", f.name);
  for (const JsonValue& other : member(value, "others").array("others")) {
    const JsonValue::Array& parts = other.array("others");
    if (parts.size() != 3) throw_bad("a stretch is not a list of offset, bytes and CRC-32", f.name);
    SummedStretch s{parts[0].integer("offset"), parts[1].integer("bytes")};
    const std::string& crc = parts[2].string("CRC-32");
    auto [end, error] = std::from_chars(crc.data(), crc.data() + crc.size(), s.crc32, 16);
    bool inside = s.offset >= 0 && s.bytes > 0 && s.offset <= f.bytes && s.bytes <= f.bytes - s.offset;
    if (!inside || crc.size() != 8 || error != std::errc() || end != crc.data() + 8)
      throw_bad("a stretch of a file leaves it, or has no CRC-32", f.name);
    f.others.push_back(s);
  }
  return f;
}

// One reading.
class CardReader {
 public:
  Card run(std::string_view text) {
    std::vector<JsonValue> tensors;
    JsonValue json =
        parse_json_list(text, "tensors", [&](JsonListed t) { tensors.push_back(std::move(t.value)); });
    const JsonValue* schema = json.find("schema");
    if (!schema || !schema->is(JsonType::kString) || schema->string("schema") != kCardSchema)
      throw Error(Code::kBadCard, "this is not a card")
          .expected(cat("JSON with the schema ", kCardSchema))
          .found(!schema                         ? "JSON without a schema"
                 : schema->is(JsonType::kString) ? cat("the schema ", escaped(schema->string("schema")))
                                                 : schema->summary())
          .help(
              "`mckpt verify` writes a card with `report`, a conversion with `card`; the `report` of a conversion is an account, not a card");
    read_files(json);
    card_.version = member(json, "mckpt").string("mckpt");
    card_.single_file = member(json, "single_file").boolean("single_file");
    if (card_.single_file && card_.files.size() != 1)
      throw_bad("the card of a file lists others", card_.name);
    for (const JsonValue& t : tensors) card_.tensors.push_back(read_tensor(t));
    return std::move(card_);
  }

 private:
  void read_files(const JsonValue& json) {
    const JsonValue& predicate = member(json, "predicate");
    for (const JsonValue& f : member(predicate, "resources").array("resources")) {
      card_.files.push_back(parse_file(f));
      if (!by_name_.emplace(card_.files.back().name, static_cast<i32>(by_name_.size())).second)
        throw_bad("the card lists a file twice", card_.files.back().name);
    }
    const JsonValue& serialization = member(predicate, "serialization");
    for (const JsonValue& i : member(serialization, "ignore_paths").array("ignore_paths"))
      card_.ignored.push_back(i.string("ignore_paths"));
    const JsonValue::Array& subjects = member(json, "subject").array("subject");
    if (subjects.size() != 1) throw_bad("the card is not of one checkpoint", "");
    card_.name = member(subjects[0], "name").string("name");
    std::string root = parse_digest(member(member(subjects[0], "digest"), "sha256"), "sha256");
    if (root != card_.root())
      throw Error(Code::kBadCard, "the digests of the files do not fit the digest over them")
          .expected(root)
          .found(card_.root())
          .help("the card was damaged or edited: take it again from where it was made");
  }

  CardTensor read_tensor(const JsonValue& value) const {
    CardTensor t{.name = member(value, "name").string("name")};
    if (const JsonValue& c = member(value, "checkpoint"); !c.is(JsonType::kNull))
      t.checkpoint = parse_name(c);
    t.dtype = member(value, "dtype").string("dtype");
    for (const JsonValue& d : member(value, "shape").array("shape")) t.shape.push_back(d.integer("shape"));
    if (const JsonValue& d = member(value, "sha256"); !d.is(JsonType::kNull))
      t.sha256 = parse_digest(d, "sha256");
    t.located = member(value, "located").boolean("located");
    for (const JsonValue& c : member(value, "chunks").array("chunks")) {
      auto file = by_name_.find(member(c, "file").string("file"));
      if (file == by_name_.end()) throw_bad("a tensor is in a file that the card does not list", t.name);
      CardChunk chunk{file->second, member(c, "offset").integer("offset"),
                      member(c, "bytes").integer("bytes"), parse_digest(member(c, "sha256"), "sha256")};
      i64 size = card_.files[chunk.file].bytes;
      if (chunk.offset < 0 || chunk.bytes < 1 || chunk.offset > size || chunk.bytes > size - chunk.offset)
        throw_bad("bytes of a tensor are outside of their file", t.name);
      t.chunks.push_back(std::move(chunk));
    }
    return t;
  }

  Card card_;
  std::map<std::string, i32, std::less<>> by_name_;
};

}  // namespace

std::string card_json(const Card& card) { return CardWriter(card).run(); }

Card read_card(const InputFile& file) {
  return with_file(file.path(), [&] {
    try {
      return CardReader().run(json_text(file, kMostCardBytes));
    } catch (Error& e) {
      if (e.code() == Code::kBadJson)
        e.help("the form of a card that can be checked is JSON: the report that was written as NAME.json");
      throw;
    }
  });
}

}  // namespace mckpt::impl
