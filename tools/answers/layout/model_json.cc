// The buffers of a model as JSON: all groups, all parameters (or those that were asked for), and sums.
//
//   {"schema": "mckpt.layout/1", "ok": true, "path": "Qwen3-30B-A3B", "engine": "v1", ...,
//    "groups": [{"group": 0, "unit": null, "kind": "dense", ...}, ...],
//    "parameters": [{"name": "embedding.word_embeddings.weight", "group": 0, "offset": 0, ...}, ...],
//    "totals": {...}, "findings": []}
#include <set>

#include "core/base/error.h"
#include "core/items/item_run.h"
#include "tools/answers/layout/model.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"

namespace mckpt::impl {
namespace {

void write_group(JsonWriter& json, const ModelLayout& l, i64 g) {
  const GroupFacts& f = l.packing.facts[g];
  const FsdpGroup& group = l.packing.groups[g];
  json.begin_object().field("group", g).key("unit");
  f.unit.empty() ? json.null() : json.value(f.unit);
  json.field("kind", f.expert ? "experts" : "dense").field("trainable", f.trainable);
  json.field("dtype", dtype_name(f.dtype)).field("stored_dtype", dtype_name(l.stored(f)));
  json.field("parameters", static_cast<i64>(group.bucket.members.size())).field("items", f.items);
  json.field("bucket_items", group.buffer.bucket_items).field("holes", f.holes).field("padding", f.padding);
  json.field("csf", group.buffer.chunk_items).field("ranks", f.ranks).field("shards", group.buffer.shards);
  json.field("shard_items", group.buffer.shard_items).key("like");
  f.like < 0 ? json.null() : json.value(f.like);
  json.field("row_aligned", f.cuts.empty()).key("reasons").begin_array();
  for (const std::string& reason : reasons_of(l, g)) json.value(reason);
  json.end_array().end_object();
}

// The shards that have a part of the parameter, each as [shard, begin, end].
void write_shards(JsonWriter& json, const ModelLayout& l, const FlatBuffer& b, i64 member) {
  const PackedParameter& at = b.parameters[member];
  json.key("shards").begin_array();
  if (l.fsdp.strategy != Strategy::kNoShard)
    for (i64 s = at.offset / b.shard_items; s <= (at.end() - 1) / b.shard_items; s++) {
      ItemRange r = item_range(b, member, s);
      json.value(std::vector<i64>{s, r.begin, r.end});
    }
  json.end_array();
}

// Where a parameter is: its group, its number there, and its place in the order in which the group is packed.
struct Seat {
  i64 group = -1, member = 0, position = 0;
};

void write_parameter(JsonWriter& json, const ModelLayout& l, i64 index, Seat seat) {
  const ModelParameter& p = l.parameters[index];
  json.begin_object().field("name", p.global_name).field("shape", p.shape().dims());
  json.field("items", p.shape().items()).field("row_items", p.shape().row_items());
  json.field("dtype", dtype_name(p.dtype)).field("registered", index).key("group");
  if (seat.group < 0) {
    json.null()
        .null_field("offset")
        .null_field("position")
        .null_field("placed")
        .key("shards")
        .begin_array()
        .end_array();
    json.end_object();
    return;
  }
  const FsdpGroup& group = l.packing.groups[seat.group];
  json.value(seat.group).field("offset", group.buffer.parameters[seat.member].offset);
  json.field("position", seat.position);
  json.field("placed", place_text(group, l.packing.facts[seat.group], seat.member));
  write_shards(json, l, group.buffer, seat.member);
  json.end_object();
}

void write_parameters(JsonWriter& json, const ModelLayout& l) {
  std::vector<Seat> seats(l.parameters.size());
  for (i64 g = 0; g < std::ssize(l.packing.groups); g++) {
    const FsdpGroup& group = l.packing.groups[g];
    for (i64 i = 0; i < std::ssize(group.buffer.order); i++) {
      i64 member = group.buffer.order[i];
      seats[group.bucket.members[member]] = {g, member, i};
    }
  }
  json.key("parameters").begin_array();
  std::set<i64> chosen;
  if (l.chosen) chosen.insert(l.chosen->begin(), l.chosen->end());
  for (i64 i = 0; i < std::ssize(l.parameters); i++)
    if ((!l.chosen || chosen.contains(i)) && (!l.group || seats[i].group == *l.group))
      write_parameter(json, l, i, seats[i]);
  json.end_array();
}

void write_totals(JsonWriter& json, const ModelLayout& l) {
  LayoutTotals t = totals_of(l);
  json.key("totals").begin_object().field("parameters", t.parameters).field("items", t.items);
  json.field("bytes", t.bytes).field("bucket_items", t.bucket_items).field("holes", t.holes);
  json.field("padding", t.padding).field("buffers", t.buffers).field("buffer_items", t.buffer_items);
  json.field("shard_bytes", t.shard_bytes)
      .field("least_bytes", t.least_bytes)
      .field("least_rank", t.least_rank);
  json.field("most_bytes", t.most_bytes).field("most_rank", t.most_rank).end_object();
}

std::vector<Finding> findings_of(const ModelLayout& l) {
  std::vector<Finding> findings;
  for (i64 g = 0; g < std::ssize(l.packing.facts); g++) {
    std::vector<std::string> cuts = cuts_of(l, g);
    for (i64 c = 0; c < std::ssize(cuts); c++)
      findings.push_back(
          {.code = Code::kRowUnaligned,
           .tensor = l.parameters[l.packing.groups[g].bucket.members[l.packing.facts[g].cuts[c].parameter]]
                         .global_name,
           .message = cuts[c],
           .help = std::string(cut_advice())});
  }
  return findings;
}

// A parameter has a range for each shard that it touches, and neighbours share a shard.
void refuse_too_many(const ModelLayout& l) {
  i64 ranges = std::ssize(l.parameters);
  for (const FsdpGroup& g : l.packing.groups) ranges += g.buffer.shards;
  refuse_too_many_ranges(ranges, with_commas(ranges));
}

}  // namespace

void write_model_layout_json(Output& out, const ModelLayout& l) {
  refuse_too_many(l);
  AnswerJson json(out);
  json.begin_answer("layout", l.row_aligned()).field("path", l.path);
  json.field("engine", engine_name(l.fsdp.engine)).field("strategy", strategy_name(l.fsdp.strategy));
  json.field("grid", to_string(l.grid)).field("world", l.grid.world()).field("hsdp", l.grid.hsdp);
  json.field("hsdp_outer", l.grid.outer == HsdpOuter::kShard ? "shard" : "replicate");
  json.key("grid_from").begin_object();
  for (const GridOrigin& o : l.grid_from) json.field(o.name == "hsdp-outer" ? "hsdp_outer" : o.name, o.from);
  json.end_object();
  json.field("bucket_size", l.fsdp.bucket_items).field("rank", l.cell.rank).key("groups").begin_array();
  for (i64 g = 0; g < std::ssize(l.packing.groups); g++) write_group(json, l, g);
  json.end_array();
  write_parameters(json, l);
  write_totals(json, l);
  json.key("memory");
  if (l.memory)
    write_memory_json(json, *l.memory);
  else
    json.null();
  write_outside_units_json(json, l);
  json.field("row_aligned", l.row_aligned()).key("findings");
  write_findings(json, findings_of(l));
  json.end_answer();
}

}  // namespace mckpt::impl
