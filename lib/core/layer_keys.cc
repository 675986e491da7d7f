#include "core/layer_keys.h"

#include <charconv>

namespace mckpt {
namespace {

constexpr std::string_view kLayers = "decoder.layers.";
constexpr std::string_view kOptimizer = "optimizer.state.";

// The family whose parameters have names that begin like `rest`; nothing for names of no family.
std::optional<KeyFamily> family_of(std::string_view rest) {
  if (rest.starts_with("mixer.")) return KeyFamily::kMixer;
  if (rest.starts_with("self_attention.") || rest.starts_with("input_layernorm."))
    return KeyFamily::kAttention;
  if (rest.starts_with("mlp.") || rest.starts_with("pre_mlp_layernorm.")) return KeyFamily::kMlp;
  return {};
}

// Bytes of "optimizer.state.<name>." at the front of the key.
std::size_t optimizer_prefix(std::string_view key) {
  if (!key.starts_with(kOptimizer)) return 0;
  std::size_t dot = key.find('.', kOptimizer.size());
  return dot == key.npos ? 0 : dot + 1;
}

bool same_keys(const LayerKindInfo& a, const LayerKindInfo& b) {
  // A gated delta net and an expert layer name their parameters apart from those of their families.
  auto apart = [](LayerKind k) { return k == LayerKind::kGdn || k == LayerKind::kMoe; };
  return a.kind == b.kind || !(a.family != b.family || apart(a.kind) || apart(b.kind));
}

// The first two members of one family, those that collide before those that are only hard to tell apart.
std::optional<GroupHazard> hazard_of(std::string_view symbols, i64 logical_index) {
  // Of each family and of each kind the first member; a group may be long, its families are three.
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

std::string local_layer_prefix(const LayerPlace& place) {
  std::string out = cat(kLayers, place.position, ".");
  return place.member < 0 ? out : cat(out, "layers.", place.member, ".");
}

std::string stored_layer_prefix(i64 logical_index) { return cat(kLayers, logical_index, "."); }

std::string mtp_layer_prefix(std::string_view depth, i64 layer) {
  return cat("mtp.layers.", depth, ".mtp_model_layer.layers.", layer, ".");
}

std::string_view final_norm_prefix(bool pattern_has_groups) {
  return pattern_has_groups ? "decoder.final_layernorm." : "decoder.final_norm.";
}

std::vector<GroupHazard> group_hazards(const LayerPattern& pattern) {
  std::vector<GroupHazard> hazards;
  for (const PatternItem& item : pattern.items)
    if (auto hazard = hazard_of(pattern.symbols(item), item.logical_index)) hazards.push_back(*hazard);
  return hazards;
}

LayerKeyMap::LayerKeyMap(const LayerPattern& pattern)
    : has_groups_(pattern.has_groups()), symbols_(physical_symbols(pattern)) {
  for (const PatternItem& item : pattern.items) {
    first_of_item_.push_back(item.physical_first);
    item_of_layer_.insert(item_of_layer_.end(), item.physical_count, item.logical_index);
  }
  first_of_item_.push_back(pattern.physical_layers());
}

std::string LayerKeyMap::to_grouped(std::string_view flat_key) const { return renamed(flat_key, false); }
std::string LayerKeyMap::to_flat(std::string_view grouped_key) const { return renamed(grouped_key, true); }

std::string LayerKeyMap::renamed(std::string_view key, bool to_flat) const {
  std::string_view front = key.substr(0, optimizer_prefix(key)), name = key.substr(front.size());
  std::string_view norm_from = final_norm_prefix(has_groups_ && to_flat);
  std::string_view norm_to = final_norm_prefix(has_groups_ && !to_flat);
  if (name.starts_with(norm_from)) return cat(front, norm_to, name.substr(norm_from.size()));
  if (!name.starts_with(kLayers)) return std::string(key);

  std::string_view digits = name.substr(kLayers.size());
  i64 index = -1, last = to_flat ? std::ssize(first_of_item_) - 2 : std::ssize(item_of_layer_) - 1;
  auto [end, ec] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  std::string_view rest = digits.substr(end - digits.data());
  if (ec != std::errc{} || !rest.starts_with('.') || index < 0 || index > last)
    throw Error(Code::kBadPattern, "the layer pattern has no layer for a key")
        .tensor(key)
        .expected(cat("layer 0 to ", last))
        .help("check that the pattern is the one the checkpoint was written with");
  rest.remove_prefix(1);
  i64 renamed_index = to_flat ? member_of(index, rest, key) : item_of_layer_[index];
  return cat(front, kLayers, renamed_index, ".", rest);
}

i64 LayerKeyMap::member_of(i64 item, std::string_view rest, std::string_view key) const {
  i64 first = first_of_item_[item], end = first_of_item_[item + 1];
  if (end - first == 1) return first;
  std::optional<KeyFamily> family = family_of(rest);
  i64 found = -1, matches = 0;
  for (i64 layer = first; layer < end; layer++)
    if (family && find_layer_kind(symbols_[layer])->family == *family) found = layer, matches++;
  if (matches == 1) return found;
  throw Error(Code::kBadPattern, "a key does not tell which layer of its group it belongs to")
      .tensor(key)
      .expected("one member of the group to own such a parameter")
      .found(cat(matches, " in [", std::string_view(symbols_).substr(first, end - first), "]"))
      .help("a group is safe with at most one of M, one of * G D +, and one of - E");
}

}  // namespace mckpt
