// Writes a map file. A row is an object of a few lines, in which the question of a draft has a line of its
// own: who has decided deletes that line.
//
//     {
//       "todo": "is gate above up?",
//       "megatron": "decoder.layers.{L}.mlp.linear_fc1.weight", "rule": "gated_mlp_joined", "split": "swiglu",
//       "hugging_face": [["model.layers.{L}.mlp.gate_up_proj.weight", "2*ffn hidden"]]
//     }
#include "core/base/text.h"
#include "hf/map_file/map_file.h"
#include "io/json/json.h"
#include "mappings/map_file/map.h"
#include "mappings/map_file/rows.h"

namespace mckpt::impl {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// "name": "value"
std::string member(std::string_view name, std::string_view value) {
  return cat(json_string(name), ": ", json_string(value));
}

// Lines between two brackets, with commas.
class Block {
 public:
  void add(std::string line) { text_ += cat(text_.empty() ? "" : ",\n", std::move(line)); }
  bool empty() const { return text_.empty(); }
  std::string text(std::string_view open, std::string_view close, std::string_view indent) const {
    return text_.empty() ? cat(open, close) : cat(open, "\n", text_, "\n", indent, close);
  }

 private:
  std::string text_;
};

std::string sources_text(const MapRow& row) {
  std::string out;
  for (const MapRow::Source& s : row.sources)
    out += cat(out.empty() ? "" : ",\n                       ", "[", json_string(s.name), ", ",
               json_string(s.shape), "]");
  return cat("\"hugging_face\": [", out, "]");
}

std::string row_text(const MapRow& row) {
  Block lines;
  auto add = [&](std::string text) { lines.add(cat("      ", text)); };
  if (!row.todo.empty()) add(member("todo", row.todo));
  std::string head = member("megatron", row.megatron);
  auto more = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) head += cat(", ", member(name, value));
  };
  more("rule", row.rule);
  if (row.partition_dim) head += cat(", \"partition_dim\": ", *row.partition_dim);
  more("split", key_split_name(row.split));
  more("needs", needs_name(row.needs));
  more("layer", row.layer);
  more("gathered_with", row.gathered_with);
  if (row.buffer) head += ", \"buffer\": true";
  if (row.fp32) head += ", \"fp32\": true";
  if (row.alternates) head += ", \"alternates\": true";
  if (row.stateless) head += ", \"stateless\": true";
  add(std::move(head));
  if (!row.after.empty()) add(member("after", row.after));
  add(sources_text(row));
  return cat("    ", lines.text("{", "}", "    "));
}

}  // namespace

std::string map_file_text(const MapFile& file) {
  Block members, config, rows, remove, unread;
  if (file.base) members.add(cat("  ", member("base", *file.base)));
  for (const MapEntry& e : file.config)
    config.add(cat("    ", json_string(e.key), ": ",
                   e.from.empty() ? e.value : cat("{", member("key", e.from), "}")));
  for (const MapRow& row : file.rows) rows.add(row_text(row));
  for (const std::string& name : file.remove) remove.add(cat("    ", json_string(name)));
  for (const MapUnread& u : file.unread)
    unread.add(cat("    {", member("name", u.name),
                   u.copy_of.empty() ? "" : cat(", ", member("copy_of", u.copy_of)), ", ",
                   member("reason", u.reason), "}"));
  if (!config.empty()) members.add(cat("  \"config\": ", config.text("{", "}", "  ")));
  members.add(cat("  \"rows\": ", rows.text("[", "]", "  ")));
  if (!remove.empty()) members.add(cat("  \"remove\": ", remove.text("[", "]", "  ")));
  if (!unread.empty()) members.add(cat("  \"unread\": ", unread.text("[", "]", "  ")));
  return cat(members.text("{", "}", ""), "\n");
}

}  // namespace mckpt::impl
