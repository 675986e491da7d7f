// A packing as a person reads it: sizes, a line for each parameter, a picture of the buffer, and what cuts a
// row. Parameters are listed in the order of their places in the buffer, with the letter that the picture has
// for them; the heads of layout.cc (tools/commands) and buffer_picture.h show an example.
#include <algorithm>
#include <numeric>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "tools/answers/layout/buffer_picture.h"
#include "tools/answers/layout/shapes.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

std::string right(std::string_view text, std::size_t width) {
  return cat(std::string(text.size() < width ? width - text.size() : 0, ' '), text);
}

// With HSDP, ranks and shards are numbered differently; else shard s is rank s.
std::string shard_label(const PackedShapes& l, i64 s) { return cat(l.packing.hsdp > 1 ? "s" : "r", s); }

// The sizes of the buffer. Holes are between parameters, padding is after the last one.
void write_summary(Output& out, const PackedShapes& l) {
  const FlatBuffer& b = l.buffer;
  i64 used = l.parameter_items(), holes = l.last_item() - used, padding = b.bucket_items - l.last_item();
  auto size = [&](i64 items) {
    return cat(right(with_commas(items), 15), " items  ", right(human_bytes(dtype_bytes(l.dtype, items)), 9));
  };
  out.line(cat(out.styled(Style::kBold, cat("Megatron-FSDP ", engine_name(l.packing.engine), ", ",
                                            strategy_name(l.packing.strategy))),
               ", ", counted(l.packing.ranks, "rank"),
               l.packing.hsdp > 1 ? cat(" in ", l.packing.hsdp, " HSDP instances") : ""));
  out.line(
      cat("parameters ", size(used), "  ", with_commas(std::ssize(l.shapes)), " of ", dtype_name(l.dtype)));
  out.line(cat("bucket     ", size(b.bucket_items), "  holes ", with_commas(holes), " (",
               percent(holes, b.bucket_items), "), padding ", with_commas(padding), " (",
               percent(padding, b.bucket_items), ")"));
  out.line(cat("shard      ", size(b.shard_items), "  ", with_commas(b.shards),
               l.no_shard() ? " of them, virtual: every rank holds the whole bucket" : " of them"));
  out.line(cat("chunk size ", right(with_commas(b.chunk_items), 15), " items\n"));
}

// "r0 [0, 16)  r1-r6 16 each  r7 [112, 120)": the shards in the middle all hold their full size.
std::string range_text(const PackedShapes& l, i64 p) {
  const FlatBuffer& b = l.buffer;
  const PackedParameter& param = b.parameters[p];
  if (b.shard_items == 0) return "-";
  i64 first = std::min(param.offset / b.shard_items, b.shards);
  i64 last = std::min((param.end() - 1) / b.shard_items, b.shards - 1);
  std::string out;
  for (i64 s = first; s <= last; s++) {
    if (!out.empty()) out += "  ";
    if (s == first + 1 && last - s >= 3) {
      out += cat(shard_label(l, s), "-", shard_label(l, last - 1), " ", b.shard_items, " each");
      s = last - 1;
      continue;
    }
    ItemRange r = item_range(b, p, s);
    out += cat(shard_label(l, s), " [", r.begin, ", ", r.end, ")");
  }
  return out.empty() ? "-" : out;
}

// Writes the cuts of rows, at most five, and what to try instead; nothing if no row is cut.
void write_verdict(Output& out, const PackedShapes& l) {
  constexpr std::size_t kMostShown = 5;
  if (l.cuts.empty()) return;
  out.write("\n");
  std::size_t shown = std::min(l.cuts.size(), kMostShown);
  for (std::size_t c = 0; c < shown; c++)
    out.line(cat(out.styled(Style::kRed, code_name(Code::kRowUnaligned)), ": ",
                 cut_message(l.cuts[c], cat("parameter ", l.cuts[c].parameter))));
  if (l.cuts.size() > shown)
    out.line(cat("and ", counted(static_cast<i64>(l.cuts.size() - shown), "more parameter")));
  if (!l.no_shard())
    out.line("A real run fails when it builds the DTensor, and no checkpoint can store such a shard.");
  out.line(cat(out.styled(Style::kGreen, "help"), ": ", layout_advice(l)));
}

}  // namespace

std::string layout_advice(const PackedShapes& l) {
  if (l.no_shard()) return "nothing to do: under no_shard a real run saves every parameter whole";
  if (std::optional<i64> ranks = ranks_without_cuts(l.shapes, l.packing))
    return cat("--world ", *ranks, " cuts between rows; so does --engine v2 for any number of ranks");
  return "--engine v2 cuts between rows for any number of ranks";
}

std::string cut_message(const RowCut& cut, std::string_view parameter) {
  return cat("the boundary of shards ", cut.shard - 1, " and ", cut.shard, " is inside row ", cut.row, " of ",
             parameter, ": item ", cut.item, " is not a multiple of ", cut.row_items);
}

// Sorted by place, because parameters are not placed in the order in which they were given.
void write_buffer_table(Output& out, const PackedShapes& l, const std::set<i64>* shown) {
  std::vector<i64> by_offset(l.shapes.size());
  std::iota(by_offset.begin(), by_offset.end(), 0);
  std::sort(by_offset.begin(), by_offset.end(),
            [&](i64 x, i64 y) { return l.buffer.parameters[x].offset < l.buffer.parameters[y].offset; });
  using enum Align;
  TextTable table({{"", kLeft},
                   {l.names.empty() ? "#" : "name", l.names.empty() ? kRight : kLeft},
                   {"shape", kLeft},
                   {"offset", kRight},
                   {"rows", kRight},
                   {cat("items of each ", l.packing.hsdp > 1 ? "shard" : "rank"), kLeft},
                   {"placed as", kLeft}});
  for (i64 p : by_offset) {
    if (shown && !shown->contains(p)) continue;
    const PackedParameter& param = l.buffer.parameters[p];
    table.row({std::string(1, parameter_letter(p)), l.names.empty() ? cat(p) : escaped(l.names[p]),
               to_string(l.shapes[p]), with_commas(param.offset), with_commas(param.items / param.row_items),
               range_text(l, p), l.places.empty() ? "" : l.places[p]});
  }
  table.write(out);
}

// With HSDP, the shards of the ranks are listed below the picture, because rank r does not hold shard r.
void write_buffer_picture(Output& out, const PackedShapes& l) {
  PictureStyle style{out.unicode(), std::min(out.width(), 80), [&](i64 s) { return shard_label(l, s); }};
  for (const std::string& line : buffer_picture(l.buffer, style)) out.line(line);
  if (l.packing.hsdp == 1) return;
  std::string ranks;
  constexpr i64 kMost = 16;
  for (i64 r = 0; r < std::min(l.packing.ranks, kMost); r++)
    ranks += cat("  r", r, " s", place_of(r, l.packing.ranks, l.packing.hsdp, l.packing.outer).shard);
  out.line(cat("\nrank and shard:", ranks, l.packing.ranks > kMost ? "  ..." : ""));
}

void write_layout_text(Output& out, const PackedShapes& packed) {
  write_summary(out, packed);
  write_buffer_table(out, packed);
  out.write("\n");
  write_buffer_picture(out, packed);
  write_verdict(out, packed);
}

}  // namespace mckpt::impl
