// Adds the rows of a map file to a copy of a family's tables, or replaces rows by them. new_family.cc makes a
// family of rows alone.
//
//   a name under "remove"                                 all rows of that name are taken out, first of all
//   a row of the file whose Megatron name the table has   replaces all rows of that name
//   a new name, with "after": the name of a row           follows the last row of that name, in the same list
//   a row as `mckpt mappings show` prints it              replaces the row of that name, layer and needs; one that
//                                                         says what the table says changes nothing
//   anything else                                         kBadMap
//
// Two rows of the file that replace one row are kBadMap too: their order would decide which of them counts.
//
// Tables are shared by families and constant, so a list of rows is copied before it is changed, and the
// copies are kept in the OwnFamily. A Megatron name in the file is whole; the prefix of the section is cut
// off.
#include "mappings/map_file/rows.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "mappings/config.h"
#include "mappings/map_file/partition.h"
#include "mappings/registry.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

// The lists of rows of one layer, in the order in which they are searched.
constexpr std::span<const Row> LayerRows::*kLists[] = {&LayerRows::attention,
                                                       &LayerRows::latent_attention,
                                                       &LayerRows::indexed_attention,
                                                       &LayerRows::sparse_attention,
                                                       &LayerRows::gdn,
                                                       &LayerRows::mamba,
                                                       &LayerRows::attention_and_mamba,
                                                       &LayerRows::dense,
                                                       &LayerRows::moe};

// Their names, as row_lists() has them.
constexpr std::string_view kListNames[] = {"attention",
                                           "latent_attention",
                                           "indexed_attention",
                                           "sparse_attention",
                                           "gdn",
                                           "mamba",
                                           "attention_and_mamba",
                                           "dense",
                                           "moe"};

std::string whole_name(const Section& section, const Row& row) { return cat(section.megatron, row.megatron); }

std::vector<MapRow::Source> whole_sources(const Section& section, const Row& row) {
  std::vector<MapRow::Source> out;
  for (const Source& s : row.sources) {
    if (s.name.empty()) break;
    out.push_back({cat(row.whole_names ? "" : section.hugging_face, s.name), std::string(s.shape)});
  }
  return out;
}

// Whether both rows stand for one row of the table. A plain row stands for all rows of its name.
bool replace_the_same(const MapRow& a, const MapRow& b) {
  if (a.megatron != b.megatron) return false;
  return !a.as_shown || !b.as_shown || (a.layer == b.layer && a.needs == b.needs);
}

// Throws kBadMap for two rows of one Megatron parameter.
void refuse_two_of_one(std::span<const MapRow> rows) {
  NameMap<std::string_view, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < rows.size(); i++) {
    std::vector<std::size_t>& before = by_name[rows[i].megatron];
    for (std::size_t other : before)
      if (replace_the_same(rows[other], rows[i]))
        throw Error(Code::kBadMap,
                    cat("two rows of the map are of the parameter ", escaped(rows[i].megatron)))
            .expected("one row for each parameter")
            .found(cat("rows ", other + 1, " and ", i + 1, " of \"rows\""))
            .help("take one of the two rows out: their order would decide where the weights go");
    before.push_back(i);
  }
}

}  // namespace

// Checked as a built-in table is, once all rows are in.
OwnFamily::OwnFamily(const Family& base, const MapFile& file)
    : family_(base),
      sections_(base.sections.begin(), base.sections.end()),
      unread_(base.unread.begin(), base.unread.end()) {
  refuse_two_of_one(file.rows);
  for (const std::string& name : file.remove) remove(name);
  for (const MapRow& row : file.rows) apply(row);
  finish(file);
}

// The sections are complete: adds the unread tensors, and checks the tables.
void OwnFamily::finish(const MapFile& file) {
  for (const MapUnread& u : file.unread) {
    const auto known = std::ranges::find(unread_, u.name, &Unread::name);
    if (known == unread_.end())
      unread_.push_back(
          {.name = keep(u.name), .copy_of = keep(u.copy_of), .reason = keep(u.reason), .of_map = true});
    else if (known->copy_of != u.copy_of || known->reason != u.reason)
      known->of_map = true;  // the base's entry, as `mckpt mappings show` prints it, says nothing new
  }
  family_.sections = sections_;
  family_.unread = unread_;
  check_family(family_);
}

// A copy that lives as long as the family: rows have only views.
std::string_view OwnFamily::keep(std::string_view text) { return texts_.emplace_back(text); }

// The rule that the row names, otherwise a plain one by its partition (partition.h). Throws kBadMap for a
// row without a rule that has several sources.
std::string OwnFamily::rule_for(const MapRow& from) {
  if (!from.rule.empty()) return from.rule;
  if (from.sources.size() != 1)
    throw Error(Code::kBadMap,
                cat("row ", escaped(from.megatron), " names no rule, and no plain rule has so many sources"))
        .expected("one source")
        .found(from.sources.size());
  Partition partition = partition_of({from.megatron, shape_rank(from.sources[0].shape), from.partition_dim});
  std::string note = cat(escaped(from.megatron), ": rule ", rule_of(partition), ", from ",
                         evidence_text(partition.evidence));
  if (notes_.empty() || notes_.back() != note) notes_.push_back(std::move(note));
  return std::string(rule_of(partition));
}

// `name`: the Megatron name without the section's prefix.
Row OwnFamily::row_of(const MapRow& from, std::string_view name) {
  Row row;
  row.megatron = keep(name);
  row.rule = keep(rule_for(from));
  if (from.sources.size() > row.sources.size())
    throw Error(Code::kBadMap, cat("row ", escaped(from.megatron), " has more sources than any rule has"))
        .found(from.sources.size());
  for (std::size_t i = 0; i < from.sources.size(); i++)
    row.sources[i] = {keep(from.sources[i].name), keep(from.sources[i].shape)};
  row.needs = from.needs;
  row.split = from.split;
  row.buffer = from.buffer;
  row.fp32 = from.fp32;
  row.alternates = from.alternates;
  row.stateless = from.stateless;
  row.whole_names = true;
  row.gathered_with = keep(from.gathered_with);
  return row;
}

template <typename Fn>
// `list` null: the rows of a section without layers.
void OwnFamily::rewrite(Section& section, std::span<const Row> LayerRows::*list, Fn&& change) {
  std::span<const Row> old = list ? section.layer->*list : section.rows;
  Rows& rows = rows_.emplace_back(old.begin(), old.end());
  change(rows);
  if (!list) {
    section.rows = rows;
    return;
  }
  LayerRows& layer = layers_.emplace_back(*section.layer);
  layer.*list = rows;
  section.layer = &layer;
}

// Takes all rows of the name out. Throws kBadMap if there is none.
void OwnFamily::remove(const std::string& name) {
  bool found = false;
  for (Section& section : sections_) {
    auto named = [&](const Row& row) { return whole_name(section, row) == name; };
    auto visit = [&](std::span<const Row> LayerRows::*list) {
      std::span<const Row> rows = list ? section.layer->*list : section.rows;
      if (std::ranges::none_of(rows, named)) return;
      rewrite(section, list, [&](Rows& all) { std::erase_if(all, named); });
      found = true;
    };
    if (section.layer)
      for (auto list : kLists) visit(list);
    else
      visit(nullptr);
  }
  if (!found)
    throw Error(Code::kBadMap, cat("no row to remove is named ", escaped(name)))
        .help("`mckpt mappings show FAMILY` lists the rows");
}

// Throws kBadMap for a row that neither replaces one nor follows one.
void OwnFamily::apply(const MapRow& row) {
  if (row.as_shown ? replace_shown(row) : replace(row)) return;
  if (insert(row)) return;
  Error e(Code::kBadMap, row.after.empty() ? cat("no row is named ", escaped(row.megatron),
                                                 ", and the new row does not say which row it follows")
                                           : cat("no row is named ", escaped(row.after)));
  throw e.help("`mckpt mappings show FAMILY` lists the rows; \"after\" names the row that a new row follows");
}

// Replaces all rows of the same name.
bool OwnFamily::replace(const MapRow& from) {
  bool found = false;
  for (Section& section : sections_) {
    auto named = [&](const Row& row) { return whole_name(section, row) == from.megatron; };
    auto change = [&](Rows& rows) {
      auto first = std::find_if(rows.begin(), rows.end(), named);
      *first = row_of(from, std::string_view(from.megatron).substr(section.megatron.size()));
      rows.erase(std::remove_if(first + 1, rows.end(), named), rows.end());
      found = true;
    };
    auto visit = [&](std::span<const Row> LayerRows::*list) {
      std::span<const Row> rows = list ? section.layer->*list : section.rows;
      if (std::any_of(rows.begin(), rows.end(), named)) rewrite(section, list, change);
    };
    if (section.layer)
      for (auto list : kLists) visit(list);
    else
      visit(nullptr);
  }
  return found;
}

// Replaces the one row of the name, the layer and the needs.
bool OwnFamily::replace_shown(const MapRow& from) {
  bool found = false;
  for (Section& section : sections_) {
    auto shown = [&](const Row& row) {
      return whole_name(section, row) == from.megatron && row.needs == from.needs;
    };
    auto change = [&](Rows& rows) {
      Row& old = *std::ranges::find_if(rows, shown);
      found = true;
      const bool same_sources = whole_sources(section, old) == from.sources;
      if (same_sources && old.rule == from.rule && old.buffer == from.buffer && old.fp32 == from.fp32) return;
      Row row = row_of(from, std::string_view(from.megatron).substr(section.megatron.size()));
      row.split = old.split, row.alternates = old.alternates, row.typed_as_model = old.typed_as_model;
      row.gathered_with = old.gathered_with, row.stateless = old.stateless;
      if (same_sources) row.also = old.also, row.whole_names = old.whole_names, row.sources = old.sources;
      old = row;
    };
    auto visit = [&](std::span<const Row> LayerRows::*list, std::string_view name) {
      std::span<const Row> rows = list ? section.layer->*list : section.rows;
      if (name == from.layer && std::ranges::any_of(rows, shown)) rewrite(section, list, change);
    };
    visit(nullptr, "");
    if (!section.layer) continue;
    for (std::size_t i = 0; i < std::size(kLists); i++) visit(kLists[i], kListNames[i]);
  }
  return found;
}

// Adds the row behind the last one of the name in `after`; false if no section has it.
bool OwnFamily::insert(const MapRow& from) {
  bool found = false;
  for (Section& section : sections_) {
    if (from.after.empty() || !from.megatron.starts_with(section.megatron)) continue;
    auto named = [&](const Row& row) { return whole_name(section, row) == from.after; };
    auto change = [&](Rows& rows) {
      auto last = std::find_if(rows.rbegin(), rows.rend(), named);
      rows.insert(last.base(), row_of(from, std::string_view(from.megatron).substr(section.megatron.size())));
      found = true;
    };
    auto visit = [&](std::span<const Row> LayerRows::*list) {
      std::span<const Row> rows = list ? section.layer->*list : section.rows;
      if (!found && std::any_of(rows.begin(), rows.end(), named)) rewrite(section, list, change);
    };
    if (section.layer)
      for (auto list : kLists) visit(list);
    else
      visit(nullptr);
  }
  return found;
}

void follow_rows(const MapFile& file, ModelConfig& model) {
  TowerConfig& text = model.text;
  auto set = [&](std::string_view name, bool present) {
    std::string_view leaf = name.substr(layer_prefix(name).size());
    if (leaf == "self_attention.linear_qkv.bias") text.qkv_bias = present;
    if (leaf == "self_attention.linear_proj.bias") text.proj_bias = present;
    if (leaf == "self_attention.q_layernorm.weight") text.qk_norm = present;
    if (leaf.ends_with("final_layernorm.bias")) model.layer_norms = present;
  };
  for (const std::string& name : file.remove) set(name, false);
  for (const MapRow& row : file.rows) {
    if (row.as_shown) continue;  // of the table, whose conditions follow the config
    set(row.megatron, true);
    bool first_layer = layer_kind_of(row.megatron) != "attention" &&
                       row.megatron.find("linear_fc1.weight") != std::string::npos;
    if (first_layer && !row.rule.empty() && !row.rule.starts_with("gated"))
      text.gated_mlp = text.swiglu = false;
  }
}

namespace {

constexpr std::pair<std::string_view, KeySplit> kSplits[] = {{"", KeySplit::kNone},
                                                             {"swiglu", KeySplit::kSwiglu},
                                                             {"gdn_in_proj", KeySplit::kGdnInProj},
                                                             {"gdn_conv", KeySplit::kGdnConv}};

}  // namespace

KeySplit key_split_from_name(std::string_view name) {
  for (const auto& [known, split] : kSplits)
    if (known == name) return split;
  throw Error(Code::kBadMap, cat("there is no split '", escaped(name), "'"))
      .expected("swiglu, gdn_in_proj or gdn_conv");
}

std::string_view key_split_name(KeySplit split) {
  for (const auto& [name, known] : kSplits)
    if (known == split) return name;
  return "";
}

}  // namespace mckpt::impl
