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
#include "mappings/model/parameter_marks.h"
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

// "tensor_model_parallel, partition_dim 0": what is not as in a parameter without attributes.
std::string marks_text(const ParameterMarks& m) {
  std::string text;
  auto add = [&](std::string_view part) { text += cat(text.empty() ? "" : ", ", part); };
  if (m.tensor_model_parallel) add("tensor_model_parallel");
  if (m.partition_dim >= 0) add(cat("partition_dim ", m.partition_dim));
  if (m.sequence_parallel) add("sequence_parallel");
  if (!m.allreduce) add("allreduce False");
  return text;
}

void write_marks(JsonWriter& json, const ParameterMarks& m) {
  json.key("attributes").begin_object().field("tensor_model_parallel", m.tensor_model_parallel);
  json.field("partition_dim", i64{m.partition_dim}).field("sequence_parallel", m.sequence_parallel);
  json.field("allreduce", m.allreduce).end_object();
}

}  // namespace

void write_held(JsonWriter& json, const HeldList& list, std::size_t i, i64 rank) {
  const HeldTensor& h = list.held[i];
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
  if (!list.marks.empty()) write_marks(json, list.marks[i]);
  if (!h.cp_rows.empty()) {
    json.key("cp_rows").begin_array();
    for (const RowRange& r : h.cp_rows) {
      const i64 rows[] = {r.begin, r.end};
      json.value(std::span<const i64>(rows));
    }
    json.end_array();
  }
  if (!list.digests.empty()) json.field("sha256", list.digests[i]);
  json.end_object();
}

void write_held(Output& out, const HeldList& list) {
  using enum Align;
  std::vector<TextTable::Column> columns = {
      {"name", kLeft}, {"dtype", kLeft}, {"shape", kLeft}, {"bytes", kRight}};
  if (!list.digests.empty()) columns.push_back({"sha256", kLeft});
  if (list.boxes) columns.push_back({"held", kLeft});
  if (!list.marks.empty()) columns.push_back({"attributes", kLeft});
  bool slices = std::ranges::any_of(list.held, [](const HeldTensor& h) { return !h.cp_rows.empty(); });
  if (slices) columns.push_back({"cp rows", kLeft});
  TextTable table(std::move(columns));
  for (std::size_t i = 0; i < list.held.size(); i++) {
    const HeldTensor& h = list.held[i];
    std::vector<std::string> cells = {escaped(h.name), std::string(dtype_name(h.dtype)), to_string(h.shape),
                                      with_commas(h.local_bytes())};
    if (!list.digests.empty()) cells.push_back(list.digests[i]);
    if (list.boxes) cells.push_back(box_text(h));
    if (!list.marks.empty()) cells.push_back(marks_text(list.marks[i]));
    if (slices) cells.push_back(rows_text(h));
    table.row(std::move(cells));
  }
  table.write(out);
}

}  // namespace mckpt::impl
