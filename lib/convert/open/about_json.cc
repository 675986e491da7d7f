// Sizes that the boxes do not tell are null.
#include "convert/open/about_json.h"

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/open/shard_facts.h"
#include "io/json/json_writer.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

void write_or_null(JsonWriter& json, std::string_view name, i64 value) {
  value < 0 ? json.null_field(name) : json.field(name, value);
}

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<std::vector<i64>>& value) {
  value ? json.field(name, std::span<const i64>(*value)) : json.null_field(name);
}

// The first box that disagrees. Sizes of a box that is not there are [].
void write_disagreement(JsonWriter& json, const Store& store, const PackedBy& by) {
  json.key("first_disagreement");
  if (!by.result.first) {
    json.null();
    return;
  }
  const BoxDisagreement& d = *by.result.first;
  json.begin_object().field("tensor", store.name(d.tensor)).field("rank", static_cast<i64>(d.rank));
  json.field("expected_offsets", std::span<const i64>(d.expected_offsets));
  json.field("expected_sizes", std::span<const i64>(d.expected_sizes));
  json.field("found_offsets", std::span<const i64>(d.found_offsets));
  json.field("found_sizes", std::span<const i64>(d.found_sizes)).end_object();
}

}  // namespace

void write_shard(JsonWriter& json, const Store& store, const ShardFacts* facts) {
  if (facts == nullptr) {
    json.null();
    return;
  }
  json.begin_object();
  write_or_null(json, "rank", facts->rank);
  write_or_null(json, "ranks", facts->ranks);
  json.key("mesh").begin_array();
  for (const ShardAxis& axis : facts->mesh) {
    json.begin_object().field("name", axis.name).field("size", axis.size);
    write_or_null(json, "at", axis.at);
    json.end_object();
  }
  json.end_array().key("tensors").begin_array();
  for (const ShardTensor& t : facts->tensors) {
    json.begin_object().field("name", store.name(t.tensor));
    json.field("local_shape", std::span<const i64>(t.local));
    write_or_null(json, "offsets", t.offsets);
    write_or_null(json, "shape", t.whole);
    json.field("placements", t.placements).end_object();
  }
  json.end_array().key("remarks").begin_array();
  for (const std::string& remark : facts->remarks) json.value(remark);
  json.end_array().end_object();
}

void write_packing(JsonWriter& json, const Store& store, const PackedBy* by) {
  if (by == nullptr) {
    json.null();
    return;
  }
  const Grid& g = by->guess.grid;
  json.begin_object().field("engine", engine_name(by->guess.engine)).field("fits", by->fits());
  json.key("strategies").begin_array();
  for (Strategy s : by->strategies()) json.value(strategy_name(s));
  json.end_array().key("units").begin_array();
  for (const std::string& unit : by->units) json.value(unit);
  json.end_array().field("ranks", g.world());
  json.field("tp", g.tp).field("ep", g.ep).field("etp", g.etp).field("dp", g.dp).field("hsdp", g.hsdp);
  json.field("hsdp_outer", g.outer == HsdpOuter::kShard ? "shard" : "replicate");
  json.field("bucket_size", by->guess.bucket_items);
  json.field("chunk_factors", std::span<const i64>(by->result.chunk_items));
  json.key("fp8_recipes").begin_array();
  for (Fp8Recipe recipe : by->recipes) json.value(fp8_recipe_name(recipe));
  json.end_array();
  json.field("parameters", by->result.parameters).field("agreeing", by->result.agreeing);
  write_disagreement(json, store, *by);
  json.key("remarks").begin_array();
  for (const std::string& remark : by->remarks) json.value(remark);
  json.end_array().end_object();
}

}  // namespace mckpt::impl
