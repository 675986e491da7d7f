#include "core/hybrid/pattern.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/unit/core/hybrid/layer_dump.h"

namespace mckpt::impl {
namespace layer_pattern_test {

constexpr Dialect kDialects[] = {Dialect::kGrouped, Dialect::kFlat};

std::optional<std::string> string_or_null(const GoldenJson& v) {
  return v.is_null() ? std::nullopt : std::optional(v.string());
}

void check_parts(const LayerPattern& p, const GoldenJson& want) {
  EXPECT_EQ(p.has_main ? std::optional(std::string(p.main_part())) : std::nullopt,
            string_or_null(want["main_pattern"]));
  EXPECT_EQ(p.mtp_depths > 0 ? std::optional(std::string(p.mtp_part())) : std::nullopt,
            string_or_null(want["mtp_pattern"]));
  EXPECT_EQ(p.mtp_depths, want["mtp_num_depths"].integer());
  EXPECT_EQ(p.has_groups(), want["transformer_sharded_keys"].boolean());
  const GoldenJson* mtp = want.find("mtp_items");
  EXPECT_EQ(dump(p.mtp_items, p.text), mtp ? dump(*mtp) : "");
}

void check_segments(const LayerPattern& p, const GoldenJson& want) {
  EXPECT_EQ(std::ssize(p.segments), want["pipeline_segments"].integer());
  ASSERT_EQ(p.segments.size(), want["segments"].size());
  for (std::size_t s = 0; s < p.segments.size(); s++) {
    const PatternSegment& segment = p.segments[s];
    const GoldenJson& w = want["segments"][s];
    EXPECT_EQ(p.segment_text(segment), w["text"].string());
    EXPECT_EQ(segment.physical_offset, w["physical_offset"].integer());
    EXPECT_EQ(segment.logical_offset, w["logical_offset"].integer());
    EXPECT_EQ(dump(std::span(p.items).subspan(segment.first_item, segment.item_count), p.text),
              dump(w["items"]));
  }
}

void check_counts(const LayerPattern& p, const GoldenJson& want) {
  EXPECT_EQ(p.physical_layers(), want["total_physical_layers"].integer());
  EXPECT_EQ(p.logical_layers(), want["total_logical_layers"].integer());
  EXPECT_EQ(physical_symbols(p), want["physical_kinds"].string());
  std::array<i64, kLayerKinds> counts = layer_counts(p);
  ASSERT_EQ(want["counts"].size(), counts.size());
  for (int k = 0; k < kLayerKinds; k++) {
    const LayerKindInfo& kind = all_layer_kinds()[k];
    EXPECT_EQ(want["counts"].members()[k].first, std::string(1, kind.symbol)) << "the order is reported too";
    EXPECT_EQ(want["counts"].members()[k].second.integer(), counts[k]);
    std::vector<i64> layers;
    if (const GoldenJson* map = want["kind_index_maps"].find(std::string(1, kind.symbol)))
      for (const auto& [physical, index] : map->members()) {
        EXPECT_EQ(index.integer(), std::ssize(layers));
        layers.push_back(std::stoll(physical));
      }
    EXPECT_EQ(layers_of_kind(p, kind.kind), layers);
  }
}

TEST(LayerPattern, ParsesTheRecordedPatternsInBothDialects) {
  int cases = 0;
  GoldenJson golden = read_golden("hybrid/patterns.json");
  for (const GoldenJson& c : golden["cases"].items()) {
    if (c["op"].string() != "parse") continue;
    for (Dialect dialect : kDialects) {
      SCOPED_TRACE(cat(c["id"].string(), " ", dialect_name(dialect)));
      const GoldenJson& want = expected(c, dialect);
      Checked<LayerPattern> got = check_pattern(c["input"]["pattern"].string(), dialect);
      ASSERT_EQ(fault_of(got), fault_of(want));
      if (const auto* p = std::get_if<LayerPattern>(&got)) {
        check_parts(*p, want);
        check_segments(*p, want);
        check_counts(*p, want);
      }
      cases++;
    }
  }
  EXPECT_EQ(cases, 150);
}

TEST(LayerPattern, ValidatesTheRecordedSegmentsInBothDialects) {
  int cases = 0;
  GoldenJson golden = read_golden("hybrid/patterns.json");
  for (const GoldenJson& c : golden["cases"].items()) {
    if (c["op"].string() != "validate_segment") continue;
    const std::string& text = c["input"]["segment"].string();
    for (Dialect dialect : kDialects) {
      SCOPED_TRACE(cat(c["id"].string(), " ", dialect_name(dialect)));
      const GoldenJson& want = expected(c, dialect);
      Checked<std::vector<PatternItem>> got = check_segment(text, dialect);
      ASSERT_EQ(fault_of(got), fault_of(want));
      if (const auto* items = std::get_if<0>(&got)) {
        EXPECT_EQ(dump(*items, text), dump(want["items"]));
      }
      cases++;
    }
  }
  EXPECT_EQ(cases, 14);
}

TEST(LayerPattern, MakesTheRecordedPatternsFromRatios) {
  int cases = 0;
  GoldenJson golden = read_golden("hybrid/patterns.json");
  for (const GoldenJson& c : golden["cases"].items()) {
    if (c["op"].string() != "pattern_from_ratios") continue;
    SCOPED_TRACE(c["id"].string());
    const GoldenJson &in = c["input"], &want = c["expected_grouped"];
    Checked<std::string> got =
        pattern_from_ratios(in["num_layers"].integer(), in["attention_ratio"].real(), in["mlp_ratio"].real());
    ASSERT_EQ(fault_of(got), fault_of(want));
    if (const auto* pattern = std::get_if<std::string>(&got)) {
      EXPECT_EQ(*pattern, want["pattern"].string());
    }
    cases++;
  }
  EXPECT_EQ(cases, 11);
}

TEST(LayerPattern, RoundsHalvesOfRatiosToTheEvenNeighbour) {
  auto layers = [](i64 n, double ratio, char symbol) {
    std::string p = value_or_throw(pattern_from_ratios(n, ratio, 0), "");
    return std::count(p.begin(), p.end(), symbol);
  };
  EXPECT_EQ(layers(10, 0.25, '*'), 2);  // 2.5
  EXPECT_EQ(layers(14, 0.25, '*'), 4);  // 3.5
  EXPECT_EQ(layers(3, 0.5, '*'), 2);    // 1.5
  EXPECT_EQ(fault_of(pattern_from_ratios(4, 0.0 / 0.0, 0)), "assertion");
  EXPECT_EQ(fault_of(pattern_from_ratios(4, 0.5, 0.75)), "assertion");
  EXPECT_EQ(fault_of(pattern_from_ratios(4, -0.5, 0)), "assertion");
}

// A pattern, the verdict of the grouped dialect with its items, segments and MTP, or the class of its fault.
struct Row {
  const char* pattern;
  const char* verdict;
};

std::string verdict(const Checked<LayerPattern>& checked) {
  if (!fault_of(checked).empty()) return std::string(fault_of(checked));
  const auto& p = std::get<LayerPattern>(checked);
  std::string out =
      cat(p.physical_layers(), " ", p.logical_layers(), p.items.empty() ? "" : "; ", dump(p.items, p.text));
  if (p.segments.size() > 1) out += cat("; ", p.segments.size(), " segments");
  if (p.mtp_depths > 0) out += cat("; MTP ", p.mtp_part(), " x", p.mtp_depths);
  return out;
}

TEST(LayerPattern, ReadsAsTheFormatSays) {
  static constexpr Row kRows[] = {
      {"M", "1 1; 0:M@0"},
      {"", "0 0"},
      {"M*-M*-M*-", "9 9; 0:M@0 1:*@1 2:-@2 3:M@3 4:*@4 5:-@5 6:M@6 7:*@7 8:-@8"},
      {"GEGEGE*E", "8 8; 0:G@0 1:E@1 2:G@2 3:E@3 4:G@4 5:E@5 6:*@6 7:E@7"},
      {"D-D-", "4 4; 0:D@0 1:-@1 2:D@2 3:-@3"},
      {"+-+-", "4 4; 0:+@0 1:-@1 2:+@2 3:-@3"},
      {"+EDE", "4 4; 0:+@0 1:E@1 2:D@2 3:E@3"},
      {"D+", "2 2; 0:D@0 1:+@1"},
      {"[*-]", "2 1; 0:[*-]@0"},
      {"[*E]", "2 1; 0:[*E]@0"},
      {"[M*E]", "3 1; 0:[M*E]@0"},
      {"M[M*]-", "4 3; 0:M@0 1:[M*]@1 2:-@3"},
      {"[*-][*-]", "4 2; 0:[*-]@0 1:[*-]@2"},
      {"[*-][*-]|[*E][*E]", "8 4; 0:[*-]@0 1:[*-]@2 2:[*E]@4 3:[*E]@6; 2 segments"},
      {"M[G-]M[*E]", "6 4; 0:M@0 1:[G-]@1 2:M@3 3:[*E]@4"},
      {"[M]", "1 1; 0:[M]@0"},
      {"[E]", "1 1; 0:[E]@0"},
      {"[-*]", "2 1; 0:[-*]@0"},
      {"[M-M-]", "4 1; 0:[M-M-]@0"},
      {"[**]", "2 1; 0:[**]@0"},
      {"[MM][MM]|[MM]", "6 3; 0:[MM]@0 1:[MM]@2 2:[MM]@4; 2 segments"},
      {"M|[*-]|E", "4 3; 0:M@0 1:[*-]@1 2:E@3; 3 segments"},
      {"[*-]||[*-]", "4 2; 0:[*-]@0 1:[*-]@2; 3 segments"},
      {"|[*-]", "2 1; 0:[*-]@0; 2 segments"},
      {"M||M", "2 2; 0:M@0 1:M@1; 3 segments"},
      {"|", "0 0; 2 segments"},
      {"[*-]/*-/*-", "2 1; 0:[*-]@0; MTP *- x2"},
      {"[*E]|[*E]/*E", "4 2; 0:[*E]@0 1:[*E]@2; 2 segments; MTP *E x1"},
      {"M*M*/MM/MM", "4 4; 0:M@0 1:*@1 2:M@2 3:*@3; MTP MM x2"},
      {"M-M-|M-M*-/MM/MM",
       "9 9; 0:M@0 1:-@1 2:M@2 3:-@3 4:M@4 5:-@5 6:M@6 7:*@7 8:-@8; 2 segments; MTP MM x2"},
      {"M*M*//", "4 4; 0:M@0 1:*@1 2:M@2 3:*@3"},
      {"/MM", "0 0; MTP MM x1"},
      {"/", "0 0"},
      {"D-/+-", "2 2; 0:D@0 1:-@1; MTP +- x1"},
      {"*-/D-", "2 2; 0:*@0 1:-@1; MTP D- x1"},
      {"[*-]/[*-]", "group_in_mtp"},
      {"M/[M]", "group_in_mtp"},
      {"MM/M/", "mtp_not_identical"},
      {"MM//M", "mtp_not_identical"},
      {"M*M*/MM/M*", "mtp_not_identical"},
      {"M/M/|", "mtp_not_identical"},
      {"M/M|M", "invalid_symbol"},
      {"MM/X", "invalid_symbol"},
      {"M M", "invalid_symbol"},
      {"m*", "invalid_symbol"},
      {"M\n", "invalid_symbol"},
      {"(M*)", "invalid_symbol"},
      {"M[M*", "unclosed_group"},
      {"[M|*]", "unclosed_group"},
      {"[M/*]", "unclosed_group"},
      {"M]", "unopened_group"},
      {"[M]]", "unopened_group"},
      {"M[M]]", "unopened_group"},
      {"M[]", "empty_group"},
      {"[[M]]", "nested_group"},
      {"[[M]", "nested_group"},
      {"M[M[*]]", "nested_group"},
      {"[E-]", "moe_not_last_in_group"},
      {"[EE]", "moe_not_last_in_group"},
      {"M[EM]", "moe_not_last_in_group"},
      {"[X]", "invalid_symbol"},
      {"*D", "mixed_attention_kinds"},
      {"*-|D-", "mixed_attention_kinds"},
      {"[*-][D-]", "mixed_attention_kinds"},
      {"[*D]", "mixed_attention_kinds"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(verdict(check_pattern(row.pattern, Dialect::kGrouped)), row.verdict) << row.pattern;
    bool bracket = std::string_view(row.pattern).find_first_of("[]") != std::string_view::npos;
    EXPECT_EQ(verdict(check_pattern(row.pattern, Dialect::kFlat)), bracket ? "invalid_symbol" : row.verdict)
        << row.pattern;
  }
}

TEST(LayerPattern, NamesTheByteAtFault) {
  struct Place {
    const char* pattern;
    Dialect dialect;
    i64 byte;
  };
  static constexpr Place kPlaces[] = {
      {"M*X*", Dialect::kGrouped, 2},   {"M[M*", Dialect::kGrouped, 1},
      {"[M]]", Dialect::kGrouped, 3},   {"M[]", Dialect::kGrouped, 1},
      {"[M[*]]", Dialect::kGrouped, 2}, {"[*E-]", Dialect::kGrouped, 2},
      {"[EE]", Dialect::kGrouped, 1},   {"-*-M+", Dialect::kGrouped, 4},
      {"M*|-D", Dialect::kGrouped, 4},  {"M/MM/MM/M", Dialect::kGrouped, 8},
      {"M/*-|", Dialect::kGrouped, 4},  {"[*-]/[*-]", Dialect::kGrouped, 5},
      {"MM/*D", Dialect::kGrouped, 4},  {"M[*-]", Dialect::kFlat, 1},
      {"*D|x", Dialect::kFlat, 3},      {"*D|x", Dialect::kGrouped, 1},
      {"[X]", Dialect::kGrouped, 1},
  };
  for (const Place& place : kPlaces) {
    Checked<LayerPattern> got = check_pattern(place.pattern, place.dialect);
    ASSERT_TRUE(std::holds_alternative<PatternFailure>(got)) << place.pattern;
    EXPECT_EQ(std::get<PatternFailure>(got).byte, place.byte) << place.pattern;
  }
}

TEST(LayerPattern, ErrorsSayByteClassAndRemedyAndEscapeWhatTheyQuote) {
  try {
    parse_pattern("M\x1b[2J*", Dialect::kFlat);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::kBadPattern);
    EXPECT_EQ(e.message(),
              "layer pattern: byte 1: '\\x1b': this is not a layer symbol here (invalid_symbol)");
    EXPECT_EQ(e.found(), "'M\\x1b[2J*'");
    EXPECT_EQ(e.offset(), 1);
    EXPECT_NE(e.help().find("M G * D + - E"), std::string::npos);
  }
}

// The format in the simplest words: strings cut into strings, no places and no counts kept.
std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (char c : text) {
    if (c == by)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool has(const std::string& text, char c) { return text.find(c) != std::string::npos; }
bool naive_layer(char c) { return c != 0 && std::string_view("MG*D+-E").find(c) != std::string_view::npos; }
bool naive_mixed(const std::string& s) { return has(s, '*') && (has(s, 'D') || has(s, '+')); }

// The class of the segment's first fault; otherwise its items are appended, groups with their brackets.
std::string naive_segment(std::string s, std::vector<std::string>& items) {
  std::string whole = s;
  while (!s.empty()) {
    std::string item = s.substr(0, 1);
    if (item == "[") {
      if (!has(s, ']')) return "unclosed_group";
      std::string inside = s.substr(1, s.find(']') - 1);
      if (inside.empty()) return "empty_group";
      if (has(inside, '[')) return "nested_group";
      for (char c : inside)
        if (!naive_layer(c)) return "invalid_symbol";
      if (has(inside, 'E') && inside.find('E') != inside.size() - 1) return "moe_not_last_in_group";
      item = "[" + inside + "]";
    } else if (item == "]") {
      return "unopened_group";
    } else if (!naive_layer(item[0])) {
      return "invalid_symbol";
    }
    items.push_back(item);
    s = s.substr(item.size());
  }
  return naive_mixed(whole) ? "mixed_attention_kinds" : "";
}

std::string naive_part(const std::string& part, bool pipes, bool grouped, std::vector<std::string>& items) {
  for (char c : part) {
    bool known = naive_layer(c) || (pipes && c == '|');
    if (!known && (!grouped || c == '|')) return "invalid_symbol";
  }
  for (const std::string& segment : split(part, '|'))
    if (std::string fault = naive_segment(segment, items); !fault.empty()) return fault;
  return naive_mixed(part) ? "mixed_attention_kinds" : "";
}

std::string naive_verdict(const std::string& text, Dialect dialect) {
  bool grouped = dialect == Dialect::kGrouped;
  std::vector<std::string> parts = split(text, '/'), items, mtp_items;
  if (std::string fault = naive_part(parts[0], true, grouped, items); !fault.empty()) return fault;
  bool mtp = false;
  for (std::size_t i = 1; i < parts.size(); i++) mtp |= !parts[i].empty();
  if (mtp) {
    for (std::size_t i = 2; i < parts.size(); i++)
      if (parts[i] != parts[1]) return "mtp_not_identical";
    if (std::string fault = naive_part(parts[1], false, grouped, mtp_items); !fault.empty()) return fault;
    if (has(parts[1], '[')) return "group_in_mtp";
  }
  std::string list;
  i64 logical = 0, physical = 0;
  for (const std::string& item : items) {
    list = joined(std::move(list), cat(logical++, ":", item, "@", physical));
    physical += item.size() == 1 ? 1 : std::ssize(item) - 2;
  }
  std::string out = cat(physical, " ", logical, items.empty() ? "" : "; ", list);
  if (std::size_t n = split(parts[0], '|').size(); n > 1) out += cat("; ", n, " segments");
  if (mtp) out += cat("; MTP ", parts[1], " x", parts.size() - 1);
  return out;
}

// Both dialects on every string of the length over the alphabet; returns how many there are.
i64 compare_all(std::string_view alphabet, int length) {
  i64 tried = 0;
  std::vector<std::size_t> digits(length);
  for (bool more = true; more; tried++) {
    std::string text;
    for (std::size_t d : digits) text += alphabet[d];
    for (Dialect dialect : kDialects)
      EXPECT_EQ(verdict(check_pattern(text, dialect)), naive_verdict(text, dialect)) << "'" << text << "'";
    more = false;
    for (std::size_t i = 0; i < digits.size() && !more; i++) {
      more = ++digits[i] < alphabet.size();
      if (!more) digits[i] = 0;
    }
  }
  return tried;
}

TEST(LayerPattern, AgreesWithTheNaiveReadingOnEveryShortString) {
  i64 tried = 0;
  for (int length = 0; length <= 5; length++) tried += compare_all("M*E-[]|/X", length);
  EXPECT_EQ(tried, 66430);
  EXPECT_EQ(compare_all("MG*D+-E[]|/", 4), 14641);
  EXPECT_EQ(compare_all("*D[|/", 6), 15625);
}

TEST(LayerPattern, LongHostilePatternsAreReadInOnePass) {
  constexpr int kBytes = 1 << 20;
  EXPECT_EQ(fault_of(check_pattern(std::string(kBytes, '['), Dialect::kGrouped)), "unclosed_group");
  EXPECT_EQ(fault_of(check_pattern(std::string(kBytes, '/') + "M", Dialect::kGrouped)), "mtp_not_identical");
  EXPECT_EQ(verdict(check_pattern(std::string(kBytes, '|'), Dialect::kFlat)),
            cat("0 0; ", kBytes + 1, " segments"));
  std::string groups, depths = "M";
  for (int i = 0; i < kBytes / 4; i++) groups += "[*E]", depths += "/M";
  LayerPattern p = parse_pattern(groups, Dialect::kGrouped);
  EXPECT_EQ(p.physical_layers(), kBytes / 2);
  EXPECT_EQ(p.logical_layers(), kBytes / 4);
  EXPECT_EQ(parse_pattern(depths, Dialect::kFlat).mtp_depths, kBytes / 4);
}

}  // namespace layer_pattern_test
}  // namespace mckpt::impl
