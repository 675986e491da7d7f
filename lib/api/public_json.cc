// Each put() writes one struct, field by field in the order of its declaration.
#include "api/public_json.h"

#include <cmath>
#include <cstdint>

#include "core/base/text.h"
#include "options/results.h"

namespace mckpt::impl {
namespace {

// A path as JSON. A byte that is not UTF-8 is the escape of the surrogate that Python has for it in names of
// files, so that the path names the same file again.
std::string path_text(std::string_view path) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!path.empty()) {
    std::size_t good = 0;
    while (good < path.size()) {
      const std::size_t n = utf8_sequence(path.substr(good));
      if (n == 0) break;
      good += n;
    }
    std::string text;
    JsonWriter(text).value(path.substr(0, good));
    out += std::string_view(text).substr(1, text.size() - 2);
    path.remove_prefix(good);
    if (path.empty()) break;
    const auto byte = static_cast<unsigned char>(path[0]);
    out += {'\\', 'u', 'd', 'c', kHex[byte >> 4], kHex[byte & 15]};
    path.remove_prefix(1);
  }
  return out + "\"";
}

JsonWriter& path_field(JsonWriter& json, std::string_view name, std::string_view path) {
  return json.key(name).literal(path_text(path));
}

void put(JsonWriter& json, const std::string& text) { json.value(text); }

void put(JsonWriter& json, const mckpt::Finding& f) {
  json.begin_object().field("code", f.code).field("warning", f.warning).field("tensor", f.tensor);
  path_field(json, "file", f.file).field("offset", f.offset).field("rank", f.rank);
  json.field("message", f.message).field("help", f.help).end_object();
}

void put(JsonWriter& json, const mckpt::Object& o) {
  json.begin_object().field("name", o.name);
  path_field(json, "file", o.file).field("summary", o.summary).end_object();
}

void put(JsonWriter& json, const mckpt::TensorChunk& c) {
  json.begin_object();
  json.key("offsets")
      .value(std::span<const i64>(c.offsets))
      .key("sizes")
      .value(std::span<const i64>(c.sizes));
  path_field(json, "file", c.file).field("offset", c.offset).field("bytes", c.bytes);
  json.field("rank", c.rank).field("replica", c.replica).end_object();
}

void put(JsonWriter& json, const mckpt::OutputFile& f) {
  json.begin_object().field("name", f.name).field("bytes", f.bytes).end_object();
}

void put(JsonWriter& json, const mckpt::Note& n) {
  json.begin_object().field("warning", n.warning).field("text", n.text).end_object();
}

void put(JsonWriter& json, const mckpt::Check& c) {
  json.begin_object().field("name", c.name).field("status", c.status).field("count", c.count);
  json.field("unit", c.unit).field("unseen", c.unseen).field("note", c.note).end_object();
}

void put(JsonWriter& json, const mckpt::Difference& d) {
  json.begin_object().field("tensor", d.tensor).field("file", d.file).field("at", d.at);
  json.field("expected", d.expected).field("found", d.found).field("items", d.items);
  json.field("largest", d.largest).end_object();
}

void put(JsonWriter& json, const mckpt::LoadedTensor& t) {
  json.begin_object().field("name", t.name).field("dtype", t.dtype);
  json.key("shape").value(std::span<const i64>(t.shape)).field("bytes", t.bytes).end_object();
}

void put(JsonWriter& json, const mckpt::DiffRow& r) {
  json.begin_object().field("kind", r.kind).field("name", r.name).field("at", r.at).field("a", r.a);
  json.field("b", r.b).field("items", r.items).field("beyond", r.beyond).field("largest", r.largest);
  json.field("relative_l2", r.relative_l2).field("cosine", r.cosine).field("most_ulps", r.most_ulps);
  json.field("not_finite", r.not_finite);
  json.field("hint", r.hint).field("file", r.file).end_object();
}

template <typename T>
JsonWriter& put_list(JsonWriter& json, std::string_view name, const std::vector<T>& list) {
  json.key(name).begin_array();
  for (const T& item : list) put(json, item);
  return json.end_array();
}

// Writes each field of a result that it is called with.
struct PutField {
  JsonWriter& json;

  template <typename T>
  void operator()(const char* name, const T& value, const char*) const {
    json.field(name, value);
  }
  // A result's only text is the path of what was made.
  void operator()(const char* name, const std::string& path, const char*) const {
    path_field(json, name, path);
  }
  template <typename T>
  void operator()(const char* name, const std::vector<T>& list, const char*) const {
    put_list(json, name, list);
  }
};

// Writes each field of statistics. A number that is NaN is none.
struct PutStatistic {
  JsonWriter& json;

  void operator()(const char* name, std::int64_t count, const char*) const { json.field(name, count); }
  void operator()(const char* name, double value, const char*) const {
    std::isnan(value) ? json.null_field(name) : json.field(name, value);
  }
};

template <typename Result>
void put_result(JsonWriter& json, const Result& result) {
  json.begin_object();
  fields(result, PutField{json});
  json.end_object();
}

void put(JsonWriter& json, const mckpt::Account& a) { put_result(json, a); }
void put(JsonWriter& json, const mckpt::RunReport& r) { put_result(json, r); }

void put(JsonWriter& json, const mckpt::ChosenGrid& g) {
  json.begin_object()
      .field("tp", g.tp)
      .field("cp", g.cp)
      .field("ep", g.ep)
      .field("etp", g.etp)
      .field("pp", g.pp);
  json.field("dp", g.dp).field("hsdp", g.hsdp).field("ranks", g.ranks).end_object();
}

template <typename T>
void put_optional(JsonWriter& json, std::string_view name, const std::optional<T>& value) {
  json.key(name);
  if (value)
    put(json, *value);
  else
    json.null();
}

}  // namespace

void write_json(std::string& to, const mckpt::ErrorFacts& e) {
  JsonWriter json(to);
  json.begin_object().field("code", e.code).field("status", static_cast<int>(e.status));
  path_field(json.field("message", e.message), "file", e.file);
  json.field("tensor", e.tensor).field("offset", e.offset);
  json.field("expected", e.expected).field("found", e.found);
  put_list(json, "notes", e.notes).field("help", e.help).end_object();
}

void write_json(std::string& to, const mckpt::Checkpoint& c) {
  JsonWriter json(to);
  path_field(json.begin_object(), "path", c.path());
  json.field("format", c.format()).field("ranks", c.ranks());
  json.key("facts").begin_object();
  for (const auto& [name, value] : c.facts()) json.field(name, value);
  json.end_object();
  put_list(json, "findings", c.findings()).end_object();
}

void write_json(std::string& to, const std::vector<mckpt::Object>& objects) {
  JsonWriter json(to);
  put_list(json.begin_object(), "objects", objects).end_object();
}

void write_json(std::string& to, const std::vector<mckpt::TensorChunk>& chunks) {
  JsonWriter json(to);
  put_list(json.begin_object(), "chunks", chunks).end_object();
}

void write_json(std::string& to, const mckpt::Statistics& s) {
  JsonWriter json(to);
  json.begin_object();
  fields(s, PutStatistic{json});
  json.end_object();
}

void write_json(std::string& to, const mckpt::Conversion& c, const std::optional<mckpt::Account>& account,
                const std::optional<mckpt::RunReport>& run) {
  JsonWriter json(to);
  path_field(json.begin_object(), "path", c.path()).field("bytes", c.bytes()).key("sources").begin_array();
  for (const std::string& source : c.sources()) json.literal(path_text(source));
  json.end_array();
  put_list(json, "outputs", c.outputs());
  put_list(json, "notes", c.notes());
  put_list(json, "findings", c.findings());
  put_optional(json, "grid", c.grid());
  put_optional(json, "account", account);
  put_optional(json, "run", run);
  json.end_object();
}

void write_json(std::string& to, const mckpt::Report& r) {
  JsonWriter json(to);
  json.begin_object().field("sound", r.sound).field("equal", r.equal);
  r.differing_tensors ? json.field("differing_tensors", *r.differing_tensors)
                      : json.null_field("differing_tensors");
  r.rounded ? json.field("rounded", *r.rounded) : json.null_field("rounded");
  json.field("as_card", r.as_card);
  put_list(json, "checks", r.checks);
  put_list(json, "findings", r.findings);
  put_list(json, "differences", r.differences);
  put_list(json, "unread", r.unread);
  put_list(json, "unread_paths", r.unread_paths);
  put_list(json, "oddities", r.oddities).end_object();
}

void write_json(std::string& to, const mckpt::Loaded& loaded) {
  JsonWriter json(to);
  json.begin_object().field("device", loaded.device()).field("bytes", loaded.bytes());
  put_list(json, "tensors", loaded.tensors()).end_object();
}

void write_json(std::string& to, const mckpt::Diff& d) {
  JsonWriter json(to);
  json.begin_object()
      .field("equal", d.equal)
      .field("alike", d.alike)
      .field("compared", d.compared)
      .field("tensors", d.tensors);
  put_list(json, "rows", d.rows);
  put_list(json, "checks", d.checks);
  put_list(json, "findings", d.findings);
  put_list(json, "unread", d.unread);
  put_list(json, "unread_paths", d.unread_paths).end_object();
}

}  // namespace mckpt::impl
