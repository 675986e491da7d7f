// A shard map as JSON for the page. Rows and boxes are lists of numbers, because there are many:
//
//   block {"section": "model.layers", "layers": [[3, 60]], "kinds": [[[17]], [[18, [[3, 40]]], [19, [[41, 60]]]]]}
//         a kind is a list of variants: a row, and the layers that have it if not all of the block have
//   row   {"name": ["mlp.experts.", ".up_proj.weight"], "members": [[0, 255]], "stack": true, "dims": [2048, 7168],
//          "axes": [0], "boxes": [[4, 0, 32, 32, 0, 2048], ...]}
//   box   column, flags (1 replica, 2 lost), then in a stack the first member and how many, then offset and size for each
//         axis of "axes"; along all other axes the box is the whole tensor
#include "core/items/dtype.h"
#include "io/json/json_writer.h"
#include "page/data/shard_map.h"
#include "page/html/pages.h"

namespace mckpt::impl {
namespace {

void write_ranges(JsonWriter& json, std::span<const NumberRange> ranges) {
  json.begin_array();
  for (const NumberRange& r : ranges) json.begin_array().value(r.first).value(r.last).end_array();
  json.end_array();
}

// The axes along which any box is a part.
std::vector<std::size_t> cut_axes(const ShardRow& row) {
  std::vector<std::size_t> axes;
  for (std::size_t a = 0; a < row.dims.size(); a++)
    for (const ShardBox& b : row.boxes)
      if (b.offsets[a] != 0 || b.sizes[a] != row.dims[a]) {
        axes.push_back(a);
        break;
      }
  return axes;
}

void write_boxes(JsonWriter& json, const ShardRow& row) {
  const std::vector<std::size_t> axes = cut_axes(row);
  json.key("axes").begin_array();
  for (std::size_t a : axes) json.value(static_cast<i64>(a));
  json.end_array().key("boxes").begin_array();
  for (const ShardBox& b : row.boxes) {
    json.begin_array().value(b.column).value((b.replica ? 1 : 0) + (b.lost ? 2 : 0));
    if (row.stack) json.value(b.member).value(b.count);
    for (std::size_t a : axes) json.value(b.offsets[a]).value(b.sizes[a]);
    json.end_array();
  }
  json.end_array();
}

void write_row(JsonWriter& json, const ShardRow& row) {
  json.begin_object().key("name").begin_array().value(row.before);
  if (!row.members.empty()) json.value(row.after);
  json.end_array();
  if (!row.members.empty()) write_ranges(json.key("members"), number_ranges(row.members));
  if (row.stack) json.field("stack", true);
  json.field("dtype", dtype_name(row.dtype))
      .field("dims", std::span<const i64>(row.dims))
      .field("bytes", row.bytes);
  json.field("part", module_part_name(row.part));
  row.drawn ? write_boxes(json, row) : static_cast<void>(json.field("drawn", false));
  if (!row.faults.empty()) {
    json.key("faults").begin_array();
    for (const ShardFault& f : row.faults) {
      json.begin_object().field("kind", map_fault_name(f.kind)).field("member", f.member);
      json.field("first", f.first).field("second", f.second);
      json.field("offsets", std::span<const i64>(f.offsets))
          .field("sizes", std::span<const i64>(f.sizes))
          .end_object();
    }
    json.end_array();
  }
  json.end_object();
}

}  // namespace

void write_map(JsonWriter& json, const ShardMap& map) {
  json.begin_object()
      .field("by_rank", map.by_rank)
      .field("holders", map.holders)
      .field("per_column", map.per_column);
  json.field("tensors", map.tensors).field("bytes", map.bytes).field("faulty_tensors", map.faulty_tensors);
  json.field("tensors_left_out", map.tensors_left_out).field("rows_not_drawn", map.rows_not_drawn);
  json.key("columns").begin_array();
  for (const ShardColumn& c : map.columns) {
    json.begin_object().field("label", c.label).field("bytes", c.bytes);
    if (c.lost) json.field("lost", true);
    json.end_object();
  }
  json.end_array().key("rows").begin_array();
  for (const ShardRow& row : map.rows) write_row(json, row);
  json.end_array().key("blocks").begin_array();
  for (const ShardBlock& b : map.blocks) {
    json.begin_object().field("section", b.section);
    if (b.section.empty()) json.field("title", b.title);
    write_ranges(json.key("layers"), number_ranges(b.layers));
    json.field("count", b.count()).field("faulty", b.faulty).key("kinds").begin_array();
    for (const std::vector<ShardVariant>& kind : b.kinds) {
      json.begin_array();
      for (const ShardVariant& v : kind) {
        json.begin_array().value(v.row);
        if (v.layers != b.layers) write_ranges(json, number_ranges(v.layers));
        json.end_array();
      }
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

}  // namespace mckpt::impl
