// Builds the names of layers, and finds groups whose members would have the same names.
//
//   [*-]    attention and MLP: names of different families, no hazard
//   [D+]    two kinds of attention, both with parameters such as self_attention.linear_proj: the same keys
//   [-E]    MLP and experts: both of the family mlp, no name in common; a key does not say which is meant
#include "core/hybrid/keys.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/mtp_names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/spellings.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kDecoderLayers = "decoder.layers.";

// True if the two kinds have parameters of the same names.
bool same_keys(const LayerKindInfo& a, const LayerKindInfo& b) {
  // A gated delta net and an expert layer name their parameters apart from their families.
  auto apart = [](LayerKind k) { return k == LayerKind::kGdn || k == LayerKind::kMoe; };
  return a.kind == b.kind || !(a.family != b.family || apart(a.kind) || apart(b.kind));
}

// The first two members of one family, those that collide before those that are only hard to tell apart.
std::optional<GroupHazard> hazard_of(std::string_view symbols, i64 logical_index) {
  // The first member of each family and of each kind; a group may be long, its families are three.
  std::optional<GroupHazard> found;
  i64 first_of_kind[kLayerKinds];
  std::fill(std::begin(first_of_kind), std::end(first_of_kind), -1);
  for (i64 i = 0; i < std::ssize(symbols); i++) {
    const LayerKindInfo& kind = *find_layer_kind(symbols[i]);
    for (const LayerKindInfo& other : all_layer_kinds()) {
      i64 first = first_of_kind[static_cast<int>(other.kind)];
      if (first < 0 || other.family != kind.family) continue;
      bool same = same_keys(other, kind);
      if (!found || (same && !found->same_keys)) found = GroupHazard{logical_index, first, i, same};
    }
    if (i64& first = first_of_kind[static_cast<int>(kind.kind)]; first < 0) first = i;
    if (found && found->same_keys) break;
  }
  return found;
}

}  // namespace

// Positions count from 0 in the segment, physical and logical indices go on from the items.
std::vector<LayerPlace> stage_places(std::string_view text, std::span<const PatternItem> items, i64 segment) {
  std::vector<LayerPlace> places;
  for (i64 position = 0; position < std::ssize(items); position++) {
    const PatternItem& item = items[position];
    for (i64 m = 0; m < item.physical_count; m++)
      places.push_back({find_layer_kind(text[item.byte + m]), item.physical_first + m, item.logical_index,
                        segment, position, item.is_group ? m : -1});
  }
  return places;
}

// The places of all segments, one segment after the other.
std::vector<LayerPlace> layer_places(const LayerPattern& pattern) {
  std::vector<LayerPlace> places;
  for (i64 s = 0; s < std::ssize(pattern.segments); s++) {
    const PatternSegment& segment = pattern.segments[s];
    auto items = std::span(pattern.items).subspan(segment.first_item, segment.item_count);
    std::vector<LayerPlace> of_segment = stage_places(pattern.text, items, s);
    places.insert(places.end(), of_segment.begin(), of_segment.end());
  }
  return places;
}

// Inside a group the member has a number of its own.
std::string local_layer_prefix(const LayerPlace& place) {
  std::string out = cat(kDecoderLayers, place.position, ".");
  return place.member < 0 ? out : cat(out, "layers.", place.member, ".");
}

std::string stored_layer_prefix(i64 logical_index) { return cat(kDecoderLayers, logical_index, "."); }

std::string mtp_layer_prefix(std::string_view depth, i64 layer) {
  return cat("mtp.layers.", depth, ".", kMtpModule, ".layers.", layer, ".");
}

std::string_view final_norm_prefix(bool pattern_has_groups) {
  return pattern_has_groups ? kGptFinalNorm : kHybridFinalNorm;
}

std::vector<GroupHazard> group_hazards(const LayerPattern& pattern) {
  std::vector<GroupHazard> hazards;
  for (const PatternItem& item : pattern.items)
    if (auto hazard = hazard_of(pattern.symbols(item), item.logical_index)) hazards.push_back(*hazard);
  return hazards;
}

void refuse_same_keys(const LayerPattern& pattern) {
  for (const GroupHazard& h : group_hazards(pattern))
    if (h.same_keys)
      throw Error(Code::kBadPattern, "two layers of a group would have the same names")
          .found(cat("[", pattern.symbols(pattern.items[h.logical_index]), "]"))
          .help("a group is safe with at most one of M, one of * G D +, and one of - E");
}

}  // namespace mckpt::impl
