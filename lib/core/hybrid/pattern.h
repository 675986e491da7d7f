// HybridStack layer patterns: one string that lists the layers of a hybrid model.
//
//   [*-]M|[*E]-/*M/*M      main part / MTP part, once for each depth
//   '--v--'^'-v--'         segments, cut at |; each is a list of items
//    item  item            an item is one symbol or one [group] of them
//
// A symbol is a physical layer, an item is a logical layer. `num_layers` and layer numbers count physical
// layers; the keys of a checkpoint count logical layers. Without groups the two are equal.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/hybrid/kind.h"
#include "core/hybrid/pattern_fault.h"

namespace mckpt::impl {

// One logical layer.
struct PatternItem {
  i64 logical_index;
  i64 physical_first;
  i64 physical_count;
  i64 byte;  // of its first symbol in the pattern
  bool is_group;

  i64 physical_end() const { return physical_first + physical_count; }
};

// The part between two pipes.
struct PatternSegment {
  i64 byte, bytes;
  i64 first_item, item_count;  // into LayerPattern::items
  i64 physical_offset, logical_offset;
};

// A pattern that was read and found valid. Its items point into `text` by byte.
struct LayerPattern {
  Dialect dialect = Dialect::kGrouped;
  std::string text;
  bool has_main = true;  // false if the text begins with '/'
  i64 main_bytes = 0;
  i64 mtp_byte = 0, mtp_bytes = 0;  // of the first MTP part
  i64 mtp_depths = 0;
  std::vector<PatternSegment> segments;  // at least one
  std::vector<PatternItem> items;        // of the main part
  std::vector<PatternItem> mtp_items;    // of one depth, counted from 0

  std::string_view main_part() const { return std::string_view(text).substr(0, main_bytes); }
  std::string_view mtp_part() const { return std::string_view(text).substr(mtp_byte, mtp_bytes); }
  std::string_view symbols(const PatternItem& item) const {
    return std::string_view(text).substr(item.byte, item.physical_count);
  }
  std::string_view segment_text(const PatternSegment& s) const {
    return std::string_view(text).substr(s.byte, s.bytes);
  }
  i64 physical_layers() const { return items.empty() ? 0 : items.back().physical_end(); }
  i64 logical_layers() const { return std::ssize(items); }
  bool has_groups() const { return main_part().find('[') != std::string_view::npos; }
};

// Time and memory are proportional to the length of the text.
Checked<LayerPattern> check_pattern(std::string_view text, Dialect dialect);
// As check_pattern(), but throws kBadPattern.
LayerPattern parse_pattern(std::string_view text, Dialect dialect);

// The items of text[begin, end), taken as one segment: '|' and '/' are invalid symbols. Appends to items,
// counting on from `logical` and `physical`, and returns the failure, if any. pre: 0 <= begin <= end <= size.
struct LayerCount {
  i64 logical = 0, physical = 0;
};
std::optional<PatternFailure> scan_segment(std::string_view text, i64 begin, i64 end, Dialect dialect,
                                           LayerCount& count, std::vector<PatternItem>& items);
// The items of a text that is one segment.
Checked<std::vector<PatternItem>> check_segment(std::string_view text, Dialect dialect);

// The symbols of the main part, without brackets and pipes: one for each physical layer.
std::string physical_symbols(const LayerPattern& pattern);
// Layers of each kind in the main part and in every MTP depth, by LayerKind.
std::array<i64, kLayerKinds> layer_counts(const LayerPattern& pattern);
// Physical indices of the main part's layers of one kind; the position of a layer in the list is its index in
// its kind.
std::vector<i64> layers_of_kind(const LayerPattern& pattern, LayerKind kind);

// The pattern of the old arguments: `layers` layers, the given parts of which are attention and MLP, spread
// evenly. pre: layers <= kMaxRatioLayers.
inline constexpr i64 kMaxRatioLayers = 1'000'000;
Checked<std::string> pattern_from_ratios(i64 layers, double attention_ratio, double mlp_ratio);

}  // namespace mckpt::impl
