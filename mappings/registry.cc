// The list of families, found by the model_type of config.json or by name, and the checks of their tables.
//
// The built-in tables are checked by tests, a family with rows of a map file whenever it is made. The check
// of a row:
//
//   {"mlp.experts.linear_fc1.weight{E}",      placeholders that the section fills
//    "gated_mlp",                             a rule that exists and takes so many sources
//    {{"mlp.experts.{E}.gate_proj.weight",    {E} on both sides, or a rule that takes one expert of a tensor
//      "expert_ffn hidden"}, ...}}            words of a shape that are known
#include "mappings/registry.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "mappings/family.h"
#include "mappings/models/families.h"
#include "mappings/name_pattern.h"
#include "mappings/needs.h"
#include "mappings/rule.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

std::vector<const Family*> collect() {
  std::vector<const Family*> all;
#define MCKPT_FAMILIES_OF(name) name##_families(),
  for (std::span<const Family> list : {MCKPT_FAMILY_TABLES(MCKPT_FAMILIES_OF)})
#undef MCKPT_FAMILIES_OF
    for (const Family& family : list) all.push_back(&family);
  return all;
}

// The placeholders that a scope fills; the first `needed` of them identify a site.
struct ScopeLetters {
  std::string_view known;
  std::string_view needed;
};

ScopeLetters letters_of(Scope scope) {
  switch (scope) {
    case Scope::kOnce:
      return {"", ""};
    case Scope::kLayers:
      return {"L", "L"};
    case Scope::kMergers:
      return {"M", "M"};
    case Scope::kMtpHead:
    case Scope::kMtpTail:
      return {"MNF", "M"};
    case Scope::kMtpLayers:
      return {"MNFI", "M"};
  }
  return {};
}

// True for rules that take one expert out of a tensor of all: the source has no {E}, the parameter has one.
bool takes_one_of_many(const Row& row) {
  return row.rule.starts_with("expert_") || row.rule.starts_with("gated_expert");
}

[[noreturn]] void fault(const Section& section, const Row& row, std::string what) {
  throw Error(Code::kBadMap, cat("row ", section.megatron, row.megatron, ": ", what));
}

// MTP depths of Qwen have no number in front of the layers: the reader of the config allows one depth only.
bool needs_number(const Section& section, char letter) {
  return letter == 'L' || section.scope == Scope::kMergers;
}

// {P} is a number of the source alone.
std::string letters_but_parts(std::string_view pattern) {
  std::string letters = placeholders(pattern);
  std::erase(letters, 'P');
  return letters;
}

void check_letters(const Section& section, const Row& row) {
  ScopeLetters scope = letters_of(section.scope);
  std::string megatron = placeholders(cat(section.megatron, row.megatron));
  bool expert = row.expert();
  for (char c : megatron)
    if (c != 'E' && scope.known.find(c) == std::string_view::npos)
      fault(section, row, cat("{", c, "} has no number here"));
  for (char c : scope.needed)
    if (megatron.find(c) == std::string::npos) fault(section, row, cat("the name lacks {", c, "}"));
  for (const Source& source : row.sources) {
    if (source.name.empty()) break;
    std::string theirs = letters_but_parts(row.whole_names ? std::string(source.name)
                                                           : cat(section.hugging_face, source.name));
    for (char c : theirs)
      if (c != 'E' && c != 'S' && scope.known.find(c) == std::string_view::npos)
        fault(section, row, cat("{", c, "} has no number here"));
    for (char c : scope.needed)
      if (needs_number(section, c) && theirs.find(c) == std::string::npos)
        fault(section, row, cat("the source ", source.name, " lacks {", c, "}"));
    bool theirs_expert = theirs.find_first_of("ES") != std::string::npos;
    if (theirs_expert != (expert && !takes_one_of_many(row)))
      fault(section, row, cat("{E} is not on both sides: ", source.name));
  }
}

// The module with which the row's parameter is gathered has the numbers of the row; {L} may also be every
// layer.
void check_gathered_with(const Section& section, const Row& row) {
  if (row.gathered_with == kOwnLayer) {
    if (!section.layer) fault(section, row, "gathered_with is the layer, but the row is in none");
    return;
  }
  std::string own = placeholders(cat(section.megatron, row.megatron));
  for (char c : placeholders(row.gathered_with))
    if (c == 'E' || (c != 'L' && own.find(c) == std::string::npos))
      fault(section, row, cat("{", c, "} of gathered_with has no number here"));
}

// The rule, the number of sources, the words of the shapes, the placeholders.
void check_row(const Section& section, const Row& row) {
  const Rule& rule = rule_named(row.rule);
  std::size_t sources = 0;
  while (sources < row.sources.size() && !row.sources[sources].name.empty()) sources++;
  if (sources != rule.roles.size())
    fault(section, row, cat("rule ", rule.name, " takes ", rule.roles.size(), " sources, not ", sources));
  for (const Source& source : row.sources) {
    if (!source.name.empty()) check_shape_text(source.shape);
    if (source.in_parts() && !rule.parts_of_sources)
      fault(section, row, cat("rule ", rule.name, " takes no parts of tensors: ", source.name));
  }
  check_letters(section, row);
  check_gathered_with(section, row);
}

// Rows of one name exclude each other.
bool exclusive(Needs a, Needs b) {
  if (is_expert_form(a) && is_expert_form(b)) return a != b;
  auto both = [&](std::initializer_list<Needs> one_of) {
    return a != b && std::ranges::count(one_of, a) + std::ranges::count(one_of, b) == 2;
  };
  return both({Needs::kTied, Needs::kUntied}) || both({Needs::kKeyNorm, Needs::kNoKeys}) ||
         both({Needs::kExperts, Needs::kNoExperts}) ||
         both({Needs::kOwnValues, Needs::kOneKeyValue, Needs::kNoKeys});
}

// Whether the rows take different slices of their sources.
bool take_other_slices(const Row& a, const Row& b) {
  constexpr std::string_view kSlice = "replicate_slice";
  return a.rule == kSlice && b.rule == kSlice && a.slice != b.slice;
}

// Rows of one list that can apply to one model must not have one name or one source.
void check_twice(const Section& section, std::span<const Row> rows) {
  for (std::size_t i = 0; i < rows.size(); i++)
    for (std::size_t j = i + 1; j < rows.size(); j++) {
      if (exclusive(rows[i].needs, rows[j].needs)) continue;
      if (rows[i].megatron == rows[j].megatron) fault(section, rows[j], "the name occurs twice");
      if (take_other_slices(rows[i], rows[j])) continue;
      for (const Source& a : rows[i].sources)
        for (const Source& b : rows[j].sources)
          if (!a.name.empty() && a.name == b.name)
            fault(section, rows[j], cat("the source ", a.name, " is read twice"));
    }
}

}  // namespace

const std::vector<const Family*>& all_families() {
  static const std::vector<const Family*> all = collect();
  return all;
}

const Family& family_of_model(std::string_view model_type, std::string_view architecture) {
  for (const Family* family : all_families())
    if (std::ranges::find(family->model_types, model_type) != family->model_types.end()) return *family;
  std::string_view known_as = architecture.empty() ? "" : ", architecture ";
  throw Error(Code::kUnknownModel, cat("the model type '", escaped(model_type), "'", known_as,
                                       escaped(architecture), " is unknown"))
      .help("mckpt mappings list");
}

const Family& family_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Family* family : all_families()) {
    if (family->name == name || family->architecture == name) return *family;
    names.push_back(family->name);
  }
  for (const Family* family : all_families())
    if (std::ranges::find(family->model_types, name) != family->model_types.end()) return *family;
  Error e(Code::kUsage, cat("there is no family '", escaped(name), "'"));
  std::vector<std::string> begun;
  for (std::string_view family : names)
    if (!name.empty() && family.starts_with(name)) begun.emplace_back(family);
  if (!begun.empty())
    e.note(cat("these begin so: ", listed(begun, 12)));
  else if (std::string_view near = nearest(name, names); !near.empty())
    e.note(cat("the nearest one is ", near));
  throw e.help("mckpt mappings list");
}

std::vector<RowList> row_lists(const Section& section) {
  std::vector<RowList> lists;
  auto add = [&](std::string_view kind, std::span<const Row> rows) {
    if (!rows.empty()) lists.push_back({kind, rows});
  };
  add("", section.rows);
  if (const LayerRows* layer = section.layer) {
    add("attention", layer->attention);
    add("sparse_attention", layer->sparse_attention);
    add("latent_attention", layer->latent_attention);
    add("indexed_attention", layer->indexed_attention);
    add("gdn", layer->gdn);
    add("mamba", layer->mamba);
    add("attention_and_mamba", layer->attention_and_mamba);
    add("dense", layer->dense);
    add("moe", layer->moe);
  }
  return lists;
}

void check_family(const Family& family) {
  std::set<std::string> names;
  for (const Section& section : family.sections)
    for (const RowList& list : row_lists(section)) {
      check_twice(section, list.rows);
      for (const Row& row : list.rows) {
        check_row(section, row);
        std::string name = cat(list.kind, " ", section.megatron, row.megatron, " ", needs_name(row.needs));
        if (!names.insert(name).second) fault(section, row, "the name occurs twice");
      }
    }
}

}  // namespace mckpt::impl
