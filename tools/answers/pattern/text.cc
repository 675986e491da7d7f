// Prints the layers of a pattern as a table, and what is wrong with a pattern.
//
//   logical  physical  number  kind              keys in the checkpoint            group
//         0         0       1  * self attention  decoder.layers.0.self_attention.  [*-] 1 of 2
//         0         1       2  - dense MLP       decoder.layers.0.mlp.             [*-] 2 of 2
//         1         2       3  M Mamba mixer     decoder.layers.1.mixer.
//
// -v adds a column with the path of the layer in memory. If a pattern is refused, at most 76 bytes around the
// fault are shown, with a mark below it.
#include "tools/answers/pattern/text.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/hybrid/keys.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "core/hybrid/pattern_warnings.h"
#include "core/hybrid/segment.h"
#include "tools/render/output.h"
#include "tools/render/setting_names.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {

namespace {

std::string kind_cell(const LayerKindInfo& kind) { return cat(kind.symbol, " ", kind.words); }

TextTable layer_table() {
  return TextTable({{"logical", Align::kRight},
                    {"physical", Align::kRight},
                    {"number", Align::kRight},
                    {"kind"},
                    {"keys in the checkpoint"},
                    {"in memory"},
                    {"group"}});
}

// A line for each physical layer of these items, which are all items of one stage or segment.
void add_layers(TextTable& table, std::string_view text, std::span<const PatternItem> items, bool verbose) {
  for (const LayerPlace& p : stage_places(text, items, 0)) {
    const PatternItem& item = items[p.position];
    std::string group;
    if (p.member >= 0)
      group = cat("[", escaped(text.substr(item.byte, item.physical_count), 16), "] ", p.member + 1, " of ",
                  item.physical_count);
    table.row({cat(p.logical_index), cat(p.physical_index), cat(p.layer_number()), kind_cell(*p.kind),
               cat(stored_layer_prefix(p.logical_index), family_prefix(p.kind->family)),
               verbose ? local_layer_prefix(p) : "", group});
  }
}

// The range of a stage or segment whose items are `items`.
std::string range_words(std::span<const PatternItem> items) {
  if (items.empty()) return "no layers";
  return range_words(LayerRange{items.front().physical_first, items.back().physical_end()});
}

std::string title(const Output& out, std::string_view pattern) {
  return out.styled(Style::kBold, pattern.empty() ? "(empty pattern)" : escaped(pattern));
}

// The table of all layers, with a heading for each pipeline segment if there are several.
void write_decoder(Output& out, const LayerPattern& pattern, bool verbose) {
  TextTable table = layer_table();
  i64 segments = std::ssize(pattern.segments);
  for (i64 s = 0; s < segments; s++) {
    const PatternSegment& segment = pattern.segments[s];
    auto items = std::span(pattern.items).subspan(segment.first_item, segment.item_count);
    if (segments > 1) table.heading(cat("segment ", s, ": ", range_words(items)));
    add_layers(table, pattern.text, items, verbose);
  }
  table.write(out);
}

// Prints the layers of one depth for all depths, since the parts are identical; names show the range of
// depths.
void write_mtp(Output& out, const LayerPattern& pattern) {
  out.line("");
  out.line(cat(
      "MTP: ", counted(pattern.mtp_depths, "depth"),
      ", on the last stage of the pipeline; in each depth layers are numbered from 0, and groups do not apply"));
  TextTable table({{"layer", Align::kRight}, {"kind"}, {"keys in the checkpoint"}});
  std::string depth = pattern.mtp_depths == 1 ? "0" : cat("{0..", pattern.mtp_depths - 1, "}");
  for (const LayerPlace& p : stage_places(pattern.text, pattern.mtp_items, 0))
    table.row({cat(p.physical_index), kind_cell(*p.kind),
               cat(mtp_layer_prefix(depth, p.physical_index), family_prefix(p.kind->family))});
  table.write(out);
}

std::string totals(const LayerPattern& pattern) {
  std::string out;
  std::array<i64, kLayerKinds> counts = layer_counts(pattern);
  for (const LayerKindInfo& kind : all_layer_kinds())
    if (i64 n = counts[static_cast<int>(kind.kind)]; n > 0)
      out += cat(out.empty() ? "" : ", ", n, " ", kind_cell(kind));
  return out.empty() ? "no layers" : out;
}

// The part of the pattern around the byte that fits a line, and the column of the byte in it.
struct Excerpt {
  std::string text;
  std::size_t column;
};

// At most 40 bytes before the fault and 36 from it on, so that the mark is visible on a terminal of 80
// columns.
Excerpt excerpt(std::string_view pattern, i64 byte) {
  constexpr i64 kBefore = 40, kAfter = 36;
  i64 begin = byte <= kBefore ? 0 : byte - kBefore;
  std::string_view before = pattern.substr(begin, byte - begin), after = pattern.substr(byte, kAfter);
  std::string left = cat(begin > 0 ? "..." : "", escaped(before));
  std::string right = cat(escaped(after), byte + kAfter < std::ssize(pattern) ? "..." : "");
  return {left + right, display_width(left)};
}

}  // namespace

void write_pattern_text(Output& out, const LayerPattern& pattern, bool verbose) {
  out.line(cat(title(out, pattern.text), "   ", dialect_name(pattern.dialect), " dialect"));
  out.line(cat(counted(pattern.physical_layers(), "physical layer"), " (num_layers), ",
               counted(pattern.logical_layers(), "logical layer"), " (indices of checkpoint keys), ",
               counted(std::ssize(pattern.segments), "pipeline segment"), ", ",
               counted(pattern.mtp_depths, "MTP depth")));
  if (!pattern.items.empty()) {
    out.line("");
    write_decoder(out, pattern, verbose);
  }
  if (pattern.mtp_depths > 0) write_mtp(out, pattern);
  out.line("");
  out.line(cat("totals      ", totals(pattern), pattern.mtp_depths > 0 ? " (MTP included)" : ""));
  out.line(cat("final norm  ", final_norm_prefix(pattern.has_groups()),
               pattern.has_groups() ? "  (in memory decoder.final_norm.)" : ""));
  if (std::ssize(pattern.segments) > 1)
    out.line(cat("pipeline    the pipeline size must divide ", std::ssize(pattern.segments),
                 "; segment v x size + r is virtual stage v of rank r"));
}

void write_stage_text(Output& out, std::string_view pattern, const StageLayers& stage,
                      const StageRequest& request, bool verbose) {
  out.line(cat(title(out, pattern), "   pipeline rank ", request.pp_rank, " of ", request.pp_size,
               request.vp_stage ? cat(", virtual stage ", *request.vp_stage) : "", ": ",
               range_words(stage.items)));
  out.line(cat("begins after ", counted(stage.physical_offset, "physical layer"), ", ",
               counted(stage.logical_offset, "logical layer")));
  if (stage.items.empty()) return;
  out.line("");
  TextTable table = layer_table();
  add_layers(table, pattern, stage.items, verbose);
  table.write(out);
}

void write_segment_text(Output& out, std::string_view text, std::span<const PatternItem> items,
                        bool verbose) {
  out.line(cat(title(out, text), "   a valid segment: ", range_words(items)));
  if (items.empty()) return;
  out.line("");
  TextTable table = layer_table();
  add_layers(table, text, items, verbose);
  table.write(out);
}

void write_warnings_text(Output& out, std::span<const PatternWarning> warnings) {
  for (const PatternWarning& w : warnings)
    out.line(cat(out.styled(Style::kYellow, "warning"), ": ", w.message, " (", w.name, ")"));
}

void write_failure_text(Output& out, std::string_view pattern, const PatternFailure& failure) {
  if (failure.byte >= 0) {
    Excerpt line = excerpt(pattern, failure.byte);
    out.line(cat("  ", line.text));
    out.line(cat("  ", std::string(line.column, ' '), out.styled(Style::kRed, cat("^ byte ", failure.byte))));
  } else if (!pattern.empty()) {
    out.line(cat("  ", escaped(pattern)));
  }
  out.line(cat(out.styled(Style::kRed, fault_name(failure.fault)), ": ", fault_sentence(failure, pattern)));
  out.line(cat(out.styled(Style::kGreen, "help"), ": ", with_flags(fault_help(failure.fault))));
}

}  // namespace mckpt::impl
