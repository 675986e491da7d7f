// Prints what a rank holds. In JSON the rows are rows of `ls`, with the one chunk that is the rank's; file
// and offset are null, because no file holds the chunk.
//
//   name                    dtype     shape    bytes  held
//   model.module....weight  bfloat16  [64, 16]   640  [20, 16] at [12, 0]       "all", a box, or "nothing"
//
// If context parallelism gives the rank a part of some tensor, the rows with which it computes are shown too.
#include "tools/answers/tensors/held.h"

#include <algorithm>

#include "convert/jobs/held_tensors.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/move.h"
#include "core/items/shape.h"
#include "io/json/json_writer.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// The part of the tensor that the rank holds: "all", "nothing", or sizes and offsets of its box.
std::string box_text(const HeldTensor& h) {
  if (h.items.empty()) return "nothing";
  if (h.items.items() == h.shape.items()) return "all";
  return cat(dims_to_string(h.sizes), " at ", dims_to_string(h.offsets));
}

// "[0, 4) [8, 10)", or "all".
std::string rows_text(const HeldTensor& h) {
  if (h.cp_rows.empty()) return "all";
  std::string text;
  for (const RowRange& r : h.cp_rows) text += cat(text.empty() ? "[" : " [", r.begin, ", ", r.end, ")");
  return text;
}

}  // namespace

void write_held(JsonWriter& json, const HeldTensor& h, i64 rank, const std::string* sha256) {
  json.begin_object()
      .field("name", h.name)
      .field("dtype", dtype_name(h.dtype))
      .field("shape", h.shape.dims());
  json.field("bytes", dtype_bytes(h.dtype, h.shape.items())).null_field("file").null_field("offset");
  json.key("chunks").begin_array();
  if (!h.items.empty()) {
    json.begin_object().field("rank", rank).field("offsets", std::span<const i64>(h.offsets));
    json.field("sizes", std::span<const i64>(h.sizes)).null_field("file").null_field("offset");
    json.field("bytes", h.local_bytes()).end_object();
  }
  json.end_array();
  if (!h.cp_rows.empty()) {
    json.key("cp_rows").begin_array();
    for (const RowRange& r : h.cp_rows) {
      const i64 rows[] = {r.begin, r.end};
      json.value(std::span<const i64>(rows));
    }
    json.end_array();
  }
  if (sha256) json.field("sha256", *sha256);
  json.end_object();
}

void write_held(Output& out, std::span<const HeldTensor> held, bool boxes,
                std::span<const std::string> digests) {
  using enum Align;
  std::vector<TextTable::Column> columns = {
      {"name", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"bytes", kRight}};
  if (!digests.empty()) columns.push_back({"sha256", kLeft});
  if (boxes) columns.push_back({"held", kLeft});
  bool slices = std::ranges::any_of(held, [](const HeldTensor& h) { return !h.cp_rows.empty(); });
  if (slices) columns.push_back({"cp rows", kLeft});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < held.size(); i++) {
    const HeldTensor& h = held[i];
    std::vector<std::string> cells = {escaped(h.name), std::string(dtype_name(h.dtype)), to_string(h.shape),
                                      with_commas(h.local_bytes())};
    if (!digests.empty()) cells.push_back(digests[i]);
    if (boxes) cells.push_back(box_text(h));
    if (slices) cells.push_back(rows_text(h));
    table.row(std::move(cells));
  }
  table.write(out);
}

}  // namespace mckpt::impl
