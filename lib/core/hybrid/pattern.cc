// Reads layer patterns. The order of the checks is part of the format: of several faults in one pattern, the
// first in this order is reported. A group is checked as a whole at its '['; '*' together with 'D' or '+' is
// found at the end of a segment; MTP parts are compared before they are read, and brackets in them are
// refused last. The flat dialect reads every symbol of a part before all other checks.
#include "core/hybrid/pattern.h"
#include "core/base/text.h"

#include <algorithm>
#include <cmath>

namespace mckpt::impl {
namespace {

using Failure = std::optional<PatternFailure>;

PatternFailure fault_at(PatternFault fault, i64 byte) { return {fault, byte, {}}; }

// The place of the byte in text[begin, end), or end.
i64 find_or_end(std::string_view text, char byte, i64 begin, i64 end) {
  std::size_t found = text.substr(begin, end - begin).find(byte);
  return found == text.npos ? end : begin + static_cast<i64>(found);
}

// Records whether '*' and one of 'D' and '+' were seen, and which symbol completed the pair.
struct AttentionMix {
  i64 standard = -1, latent = -1;

  void see(char symbol, i64 byte) {
    if (symbol == '*' && standard < 0) standard = byte;
    if ((symbol == 'D' || symbol == '+') && latent < 0) latent = byte;
  }
  Failure failure() const {
    if (standard < 0 || latent < 0) return {};
    return fault_at(PatternFault::kMixedAttention, std::max(standard, latent));
  }
};

// The group whose '[' is at `open`; `close` receives the position of its ']'.
Failure scan_group(std::string_view text, i64 open, i64 end, i64& close) {
  close = find_or_end(text, ']', open, end);
  if (close == end) return fault_at(PatternFault::kUnclosedGroup, open);
  std::string_view content = text.substr(open + 1, close - open - 1);
  if (content.empty()) return fault_at(PatternFault::kEmptyGroup, open);
  auto at = [&](std::size_t i) { return open + 1 + static_cast<i64>(i); };
  if (std::size_t i = content.find('['); i != content.npos)
    return fault_at(PatternFault::kNestedGroup, at(i));
  for (std::size_t i = 0; i < content.size(); i++)
    if (!find_layer_kind(content[i])) return fault_at(PatternFault::kInvalidSymbol, at(i));
  // The last layer may be an E: it is left out of the search.
  if (std::size_t i = content.substr(0, content.size() - 1).find('E'); i != content.npos)
    return fault_at(PatternFault::kMoeNotLast, at(i));
  return {};
}

// Reads symbols and groups. `count` gives the indices of the first item and is advanced.
Failure scan_items(std::string_view text, i64 begin, i64 end, Dialect dialect, LayerCount& count,
                   std::vector<PatternItem>& items) {
  bool grouped = dialect == Dialect::kGrouped;
  for (i64 at = begin; at < end;) {
    bool is_group = grouped && text[at] == '[';
    i64 first = at + is_group, last = at + 1;
    if (is_group) {
      if (Failure f = scan_group(text, at, end, last)) return f;
    } else if (grouped && text[at] == ']') {
      return fault_at(PatternFault::kUnopenedGroup, at);
    } else if (!find_layer_kind(text[at])) {
      return fault_at(PatternFault::kInvalidSymbol, at);
    }
    items.push_back({count.logical++, count.physical, last - first, first, is_group});
    count.physical += last - first;
    at = last + is_group;
  }
  return {};
}

// The first byte at which '*' and one of 'D' and '+' have both occurred.
Failure mixed_attention(std::string_view text, i64 begin, i64 end) {
  AttentionMix mix;
  for (i64 at = begin; at < end; at++) mix.see(text[at], at);
  return mix.failure();
}

// A part of the pattern between slashes: the main part, or an MTP part.
struct Part {
  i64 begin, end;
  bool pipes;  // whether '|' cuts it
};

// The first byte of the part that is neither a symbol nor an allowed pipe.
Failure flat_symbols(std::string_view text, const Part& part) {
  for (i64 at = part.begin; at < part.end; at++)
    if (!find_layer_kind(text[at]) && !(part.pipes && text[at] == '|'))
      return fault_at(PatternFault::kInvalidSymbol, at);
  return {};
}

// Cuts a part at its pipes and reads the segments one after the other.
Failure scan_part(std::string_view text, const Part& part, Dialect dialect,
                  std::vector<PatternSegment>& segments, std::vector<PatternItem>& items) {
  if (dialect == Dialect::kFlat)
    if (Failure f = flat_symbols(text, part)) return f;
  if (i64 pipe = find_or_end(text, '|', part.begin, part.end); !part.pipes && pipe < part.end)
    return fault_at(PatternFault::kInvalidSymbol, pipe);
  LayerCount count;
  for (i64 begin = part.begin;;) {
    i64 end = find_or_end(text, '|', begin, part.end);
    PatternSegment segment{begin, end - begin, std::ssize(items), 0, count.physical, count.logical};
    if (Failure f = scan_segment(text, begin, end, dialect, count, items)) return f;
    segment.item_count = std::ssize(items) - segment.first_item;
    segments.push_back(segment);
    if (end == part.end) return mixed_attention(text, part.begin, part.end);
    begin = end + 1;
  }
}

// Fills the MTP fields from what follows the first '/'. pre: text[pattern.main_bytes] is that '/'.
Failure scan_mtp(std::string_view text, LayerPattern& pattern) {
  i64 begin = pattern.main_bytes + 1;
  if (text.find_first_not_of('/', begin) == text.npos) return {};  // every part is empty: no MTP
  i64 depths = 0, size = std::ssize(text);
  std::string_view first = text.substr(begin, find_or_end(text, '/', begin, size) - begin);
  for (i64 at = begin; at <= size; depths++) {
    i64 end = find_or_end(text, '/', at, size);
    if (text.substr(at, end - at) != first) return fault_at(PatternFault::kMtpNotIdentical, at);
    at = end + 1;
  }
  Part part{begin, begin + std::ssize(first), false};
  std::vector<PatternSegment> unused;
  if (Failure f = scan_part(text, part, pattern.dialect, unused, pattern.mtp_items)) return f;
  if (std::size_t bracket = first.find('['); bracket != first.npos)
    return fault_at(PatternFault::kGroupInMtp, begin + static_cast<i64>(bracket));
  pattern.mtp_byte = begin;
  pattern.mtp_bytes = std::ssize(first);
  pattern.mtp_depths = depths;
  return {};
}

// Python's round(): halves go to the even neighbour.
i64 round_half_even(double x) {
  double floor = std::floor(x), rest = x - floor;
  bool up = rest > 0.5 || (rest == 0.5 && std::fmod(floor, 2) != 0);
  return static_cast<i64>(floor) + up;
}

// Walks the layers that are Mamba, and makes one of them `symbol` each time the distance has run out.
void spread(std::string& layers, double distance, char symbol) {
  double left = distance;
  for (char& layer : layers) {
    if (layer != 'M') continue;
    if (left < 0.5) {
      layer = symbol;
      left += distance;
    } else {
      left -= 1;
    }
  }
}

}  // namespace

// Items first, so that an invalid symbol is reported before a mixture of attention kinds.
std::optional<PatternFailure> scan_segment(std::string_view text, i64 begin, i64 end, Dialect dialect,
                                           LayerCount& count, std::vector<PatternItem>& items) {
  if (Failure f = scan_items(text, begin, end, dialect, count, items)) return f;
  return mixed_attention(text, begin, end);
}

Checked<std::vector<PatternItem>> check_segment(std::string_view text, Dialect dialect) {
  std::vector<PatternItem> items;
  LayerCount count;
  if (Failure f = scan_segment(text, 0, std::ssize(text), dialect, count, items)) return *f;
  return items;
}

// The main part, then the MTP parts behind the first '/'.
Checked<LayerPattern> check_pattern(std::string_view text, Dialect dialect) {
  LayerPattern pattern;
  pattern.dialect = dialect;
  pattern.main_bytes = find_or_end(text, '/', 0, std::ssize(text));
  bool has_slash = pattern.main_bytes < std::ssize(text);
  pattern.has_main = pattern.main_bytes > 0 || !has_slash;
  Part main{0, pattern.main_bytes, true};
  if (Failure f = scan_part(text, main, dialect, pattern.segments, pattern.items)) return *f;
  if (has_slash)
    if (Failure f = scan_mtp(text, pattern)) return *f;
  pattern.text = text;
  return pattern;
}

LayerPattern parse_pattern(std::string_view text, Dialect dialect) {
  return value_or_throw(check_pattern(text, dialect), text);
}

std::string physical_symbols(const LayerPattern& pattern) {
  std::string out;
  for (const PatternItem& item : pattern.items) out += pattern.symbols(item);
  return out;
}

// Every MTP depth has the layers of the MTP part.
std::array<i64, kLayerKinds> layer_counts(const LayerPattern& pattern) {
  std::array<i64, kLayerKinds> counts{};
  auto add = [&](std::string_view symbols, i64 times) {
    for (char symbol : symbols)
      if (const LayerKindInfo* kind = find_layer_kind(symbol)) counts[static_cast<int>(kind->kind)] += times;
  };
  add(pattern.main_part(), 1);
  add(pattern.mtp_part(), pattern.mtp_depths);
  return counts;
}

std::vector<i64> layers_of_kind(const LayerPattern& pattern, LayerKind kind) {
  std::vector<i64> layers;
  i64 physical = 0;
  for (char symbol : pattern.main_part()) {
    const LayerKindInfo* info = find_layer_kind(symbol);
    if (info && info->kind == kind) layers.push_back(physical);
    physical += info != nullptr;
  }
  return layers;
}

// 8 layers, a quarter attention, a quarter MLP: MMMMMMMM, then MM*MM*MM with attention, then MM*-M*M- with
// MLP.
Checked<std::string> pattern_from_ratios(i64 layers, double attention_ratio, double mlp_ratio) {
  auto is_ratio = [](double r) { return r >= 0 && r <= 1; };  // false for NaN
  if (layers <= 0 || !is_ratio(attention_ratio) || !is_ratio(mlp_ratio) ||
      !(attention_ratio + mlp_ratio <= 1))
    return PatternFailure{PatternFault::kAssertion, -1,
                          cat("layers ", layers, ", attention ", attention_ratio, ", MLP ", mlp_ratio)};
  // The doubles and the order of operations repeat the code that built the checkpoints: another order moves
  // layers.
  i64 attention = round_half_even(static_cast<double>(layers) * attention_ratio);
  i64 mamba = layers - attention;
  std::string symbols(layers, 'M');
  spread(symbols, static_cast<double>(mamba) / static_cast<double>(attention + 1), '*');
  i64 mlp = round_half_even(static_cast<double>(layers) * mlp_ratio);
  if (mlp > 0) spread(symbols, static_cast<double>(mamba - mlp) / static_cast<double>(mlp), '-');
  return symbols;
}

}  // namespace mckpt::impl
