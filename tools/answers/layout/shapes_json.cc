// A packing as JSON, with every rank's range of every parameter.
//
//   {"schema": "mckpt.layout/1", "ok": true, "shapes": [[10, 4], [10]], "world": 4, ..., "offsets": [0, 40],
//    "bucket": 64, "shard": 16, ..., "item_ranges": [[[0, 16], [16, 32], [32, 40], [0, 0]], ...], "findings": []}
//
// The ranges are parameters times ranks in number, so they are limited to 2^26; the text folds ranks that
// hold alike.
#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "tools/answers/layout/shapes.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"

namespace mckpt::impl {
namespace {

// By parameter, then by rank: the items of the parameter that the rank's shard has, [0, 0] for none.
void write_ranges(JsonWriter& json, const PackedShapes& l) {
  json.key("item_ranges").begin_array();
  for (i64 p = 0; p < std::ssize(l.shapes); p++) {
    json.begin_array();
    for (i64 r = 0; r < l.packing.ranks; r++) {
      i64 shard = place_of(r, l.packing.ranks, l.packing.hsdp, l.packing.outer).shard;
      ItemRange range = item_range(l.buffer, p, shard);
      json.value(std::vector<i64>{range.begin, range.end});
    }
    json.end_array();
  }
  json.end_array();
}

// Each cut as a finding, in the form that `verify` uses.
std::vector<Finding> findings_of(const PackedShapes& l) {
  std::vector<Finding> findings;
  std::string help = l.cuts.empty() ? "" : layout_advice(l);
  for (const RowCut& cut : l.cuts) {
    std::string parameter = cat("parameter ", cut.parameter);
    findings.push_back({.code = Code::kRowUnaligned,
                        .tensor = parameter,
                        .message = cut_message(cut, parameter),
                        .help = help});
  }
  return findings;
}

}  // namespace

void refuse_too_many_ranges(i64 ranges, std::string_view found) {
  constexpr i64 kMostRanges = i64{1} << 26;  // a few GiB of text
  if (ranges > kMostRanges)
    throw Error(Code::kBadLayout, "one answer cannot contain the ranges of so many ranks")
        .expected(cat("at most ", with_commas(kMostRanges), " ranges"))
        .found(found)
        .help("without --json, ranks with equal shares are printed together");
}

void write_layout_json(Output& out, const PackedShapes& l) {
  const FlatBuffer& b = l.buffer;
  refuse_too_many_ranges(
      checked_mul(std::ssize(l.shapes), l.packing.ranks, "the ranges"),
      cat(counted(std::ssize(l.shapes), "parameter"), " x ", counted(l.packing.ranks, "rank")));
  AnswerJson json(out);
  json.begin_answer("layout", l.cuts.empty()).key("shapes").begin_array();
  for (const Shape& s : l.shapes) json.value(s.dims());
  json.end_array().field("world", l.packing.ranks).field("strategy", strategy_name(l.packing.strategy));
  json.field("engine", engine_name(l.packing.engine)).field("hsdp", l.packing.hsdp);
  json.field("hsdp_outer", l.packing.outer == HsdpOuter::kShard ? "shard" : "replicate");
  json.field("dtype", dtype_name(l.dtype)).field("csf", b.chunk_items).field("order", b.order);
  json.key("offsets").begin_array();
  for (const PackedParameter& p : b.parameters) json.value(p.offset);
  json.end_array().field(l.packing.engine == Engine::kV1 ? "bucket" : "size", b.bucket_items);
  json.field("shard", b.shard_items).field("holes", l.last_item() - l.parameter_items());
  json.field("padding", b.bucket_items - l.last_item());
  write_ranges(json, l);
  json.field("row_aligned", l.cuts.empty()).key("findings");
  write_findings(json, findings_of(l));
  json.end_answer();
}

}  // namespace mckpt::impl
