// The buffers of a model as a person reads them:
//
//   Megatron-FSDP v1, optim_grads_params: tp=1 cp=1 ep=2 etp=1 pp=1 dp=4, 4 ranks
//   group  unit                kind     dtype     params   items  bucket  ranks  shard  csf  holes  padding
//   0      outside units       dense    bfloat16       3  ...
//   1      decoder.layers.0    dense    bfloat16       9  ...
//   2      decoder.layers.0    experts  bfloat16       6  ...
//          layers 1-47 (47), groups 3-96: as layer 0
//
// A layer that is like an earlier one is not a line of its own. Details of a bucket are shown by `mckpt
// layout SHAPE...`.
#include <map>
#include <set>
#include <utility>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "tools/answers/layout/model.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// "1-3, 5": ascending numbers.
std::string ranges(const std::vector<i64>& numbers) {
  std::string out;
  for (std::size_t i = 0, end; i < numbers.size(); i = end) {
    for (end = i + 1; end < numbers.size() && numbers[end] == numbers[end - 1] + 1;) end++;
    out += cat(out.empty() ? "" : ", ", numbers[i], end - i > 1 ? cat("-", numbers[end - 1]) : "");
  }
  return out;
}

// The groups of one FSDP unit, in order.
struct Unit {
  std::vector<i64> groups;
  std::vector<const Unit*> like_this{};  // of the first unit of a kind: the later ones

  const GroupFacts& facts(const ModelLayout& l) const { return l.packing.facts[groups[0]]; }
  // Its number in its list of layers.
  std::string_view number(const ModelLayout& l) const {
    std::string_view name = facts(l).unit;
    return name.substr(name.rfind('.') + 1);
  }
  // " of decoder.layers.0" where that list is not the model's; units that are alike are in the same list.
  std::string list(const ModelLayout& l) const {
    std::string_view name = facts(l).unit, list = name.substr(0, name.rfind(".layers."));
    return list == "decoder" ? "" : cat(" of ", escaped(list));
  }
};

// By the number of a unit's first group. Units that repeat an earlier one are listed with that one.
std::map<i64, Unit> units_of(const ModelLayout& l) {
  std::map<i64, i64> first_group;  // by unit
  std::map<i64, Unit> units;
  for (i64 g = 0; g < std::ssize(l.packing.groups); g++) {
    i64 unit = l.packing.groups[g].bucket.unit;
    i64 first = unit == kNoUnit ? g : first_group.try_emplace(unit, g).first->second;
    units[first].groups.push_back(g);
  }
  for (auto& [first, unit] : units) {
    auto earlier = units.find(l.packing.facts[first].like);
    if (earlier == units.end() || earlier->second.groups.size() != unit.groups.size()) continue;
    bool all = true;
    for (std::size_t i = 0; i < unit.groups.size(); i++)
      all = all && l.packing.facts[unit.groups[i]].like == earlier->second.groups[i];
    if (all) earlier->second.like_this.push_back(&unit);
  }
  return units;
}

std::string repeats_text(const ModelLayout& l, const Unit& unit) {
  std::vector<i64> layers, groups;
  for (const Unit* other : unit.like_this) {
    layers.push_back(std::stoll(std::string(other->number(l))));
    groups.insert(groups.end(), other->groups.begin(), other->groups.end());
  }
  const char* kind = unit.facts(l).stack ? "stack" : "layer";
  return cat(kind, layers.size() == 1 ? " " : "s ", ranges(layers),
             layers.size() > 1 ? cat(" (", layers.size(), ")") : "", unit.list(l),
             groups.size() == 1 ? ", group " : ", groups ", ranges(groups), ": as ", kind, " ",
             unit.number(l));
}

void add_row(TextTable& table, const ModelLayout& l, i64 g) {
  const GroupFacts& f = l.packing.facts[g];
  const FlatBuffer& b = l.packing.groups[g].buffer;
  table.row({cat(g), f.unit.empty() ? "outside units" : escaped(f.unit), f.expert ? "experts" : "dense",
             f.trainable ? "" : "frozen", std::string(dtype_name(f.dtype)),
             with_commas(std::ssize(b.parameters)), with_commas(f.items), with_commas(b.bucket_items),
             with_commas(f.ranks), b.shards == f.ranks ? "" : with_commas(b.shards),
             with_commas(b.shard_items), with_commas(b.chunk_items), with_commas(f.holes),
             with_commas(f.padding), f.cuts.empty() ? "" : "cuts a row"});
}

void write_groups(Output& out, const ModelLayout& l) {
  using enum Align;
  TextTable table({{"group", kLeft},
                   {"unit", kLeft},
                   {"kind", kLeft},
                   {"", kLeft},
                   {"dtype", kLeft},
                   {"params", kRight},
                   {"items", kRight},
                   {"bucket", kRight},
                   {"ranks", kRight},
                   {"shards", kRight},
                   {"shard", kRight},
                   {"csf", kRight},
                   {"holes", kRight},
                   {"padding", kRight},
                   {"", kLeft}});
  std::set<const Unit*> listed_already;
  std::map<i64, Unit> units = units_of(l);
  for (const auto& [first, unit] : units) {
    if (listed_already.contains(&unit)) continue;
    for (i64 g : unit.groups) add_row(table, l, g);
    if (!unit.like_this.empty()) table.heading(cat("       ", repeats_text(l, unit)));
    listed_already.insert(unit.like_this.begin(), unit.like_this.end());
  }
  table.write(out);
  out.write("\n");
}

// "tp 0 of 2, ep 1 of 4": the cell, by the sizes that make several; "" if it is the only one.
std::string cell_text(const ModelLayout& l) {
  std::string cell;
  auto part = [&](const char* name, i64 size, i64 index) {
    if (size > 1) cell += cat(cell.empty() ? "" : ", ", name, " ", index, " of ", size);
  };
  part("tp", l.grid.tp, l.cell.tp);
  part("ep", l.grid.ep, l.cell.ep);
  part("etp", l.grid.etp, l.cell.etp);
  return cell;
}

void write_totals(Output& out, const ModelLayout& l) {
  LayoutTotals t = totals_of(l);
  // Where there are several cells the sums are one cell's, and could be taken for the model's.
  if (std::string cell = cell_text(l); !cell.empty())
    out.line(cat("one cell    ", cell, "; these are its totals and not those of the whole model"));
  out.line(cat("parameters  ", with_commas(t.parameters), " in ",
               counted(std::ssize(l.packing.groups), "group"), ": ", with_commas(t.items), " items, ",
               human_bytes(t.bytes), l.types.main_dtype ? cat(" as ", dtype_name(*l.types.main_dtype)) : ""));
  out.line(cat("buckets     ", with_commas(t.bucket_items), " items: holes ", with_commas(t.holes), " (",
               percent(t.holes, t.bucket_items), "), padding ", with_commas(t.padding), " (",
               percent(t.padding, t.bucket_items), ")"));
  std::string most = cat(" to ", human_bytes(t.most_bytes), " (rank ", t.most_rank, ")");
  out.line(cat("a rank      stores ", human_bytes(t.shard_bytes), ", of which ", human_bytes(t.least_bytes),
               t.least_bytes == t.most_bytes ? "" : cat(" (rank ", t.least_rank, ")"),
               t.least_bytes == t.most_bytes ? "" : most, " are parameters"));
  if (t.buffers > 0)
    out.line(cat("beside      ", counted(t.buffers, "persistent buffer"), ", ",
                 counted(t.buffer_items, "item"), ", whole on every rank"));
}

void write_head(Output& out, const ModelLayout& l) {
  out.line(cat(out.styled(Style::kBold, cat("Megatron-FSDP ", engine_name(l.fsdp.engine), ", ",
                                            strategy_name(l.fsdp.strategy))),
               ": ", to_string(l.grid), ", ", counted(l.grid.world(), "rank")));
  if (std::string cell = cell_text(l); !cell.empty())
    out.line(cat("of rank ", l.cell.rank, ": ", cell, "; the other cells are packed alike"));
  out.write("\n");
}

// A bucket: what is in it and why, the parameters (`shown`: some of them), and the picture of all of it.
void write_group(Output& out, const ModelLayout& l, i64 g, const std::set<i64>* shown) {
  const GroupFacts& f = l.packing.facts[g];
  PackedShapes packed = shapes_of(l, g);
  const FlatBuffer& b = packed.buffer;
  out.line(cat(out.styled(Style::kBold, cat("group ", g)), "  ",
               f.unit.empty() ? "outside units" : escaped(f.unit), ", ", f.expert ? "experts" : "dense", ", ",
               sharers_of(l, g)));
  const char* title = "together    ";
  for (const std::string& reason : reasons_of(l, g))
    out.line(cat(std::exchange(title, "            "), reason));
  out.line(cat("order       ", l.fsdp.engine == Engine::kV1
                                   ? "by row size, largest first; equal rows as Megatron registers them"
                                   : "as Megatron registers them"));
  out.line(cat("bucket      ", with_commas(b.bucket_items), " items: holes ", with_commas(f.holes),
               ", padding ", with_commas(f.padding), "; ", counted(b.shards, "shard"), " of ",
               with_commas(b.shard_items), "; csf ", with_commas(b.chunk_items), "\n"));
  write_buffer_table(out, packed, shown);
  if (shown) return;
  out.write("\n");
  write_buffer_picture(out, packed);
}

void write_cuts(Output& out, const ModelLayout& l) {
  constexpr std::size_t kMostShown = 5;
  std::vector<std::string> all;
  for (i64 g = 0; g < std::ssize(l.packing.facts); g++)
    for (std::string& cut : cuts_of(l, g)) all.push_back(cat("group ", g, ": ", escaped(cut, 4096)));
  if (all.empty()) return;
  out.write("\n");
  for (std::size_t i = 0; i < std::min(all.size(), kMostShown); i++)
    out.line(cat(out.styled(Style::kRed, code_name(Code::kRowUnaligned)), ": ", all[i]));
  if (all.size() > kMostShown)
    out.line(cat("and ", counted(std::ssize(all) - static_cast<i64>(kMostShown), "more parameter")));
  out.line("A real run fails when it builds the DTensor, and no checkpoint can store such a shard.");
  out.line(cat(out.styled(Style::kGreen, "help"), ": ", cut_advice()));
}

// The buckets of the chosen parameters, with an empty line between them. If groups are alike, and the same
// parameters of them are chosen, the first is shown.
void write_chosen(Output& out, const ModelLayout& l) {
  std::map<i64, std::set<i64>> by_group;  // members
  std::vector<std::pair<i64, i64>> seats(l.parameters.size(), {-1, -1});
  for (i64 g = 0; g < std::ssize(l.packing.groups); g++)
    for (i64 m = 0; m < std::ssize(l.packing.groups[g].bucket.members); m++)
      seats[l.packing.groups[g].bucket.members[m]] = {g, m};
  bool first_line = true;
  auto gap = [&] {
    if (!std::exchange(first_line, false)) out.write("\n");
  };
  for (i64 p : *l.chosen) {
    const ModelParameter& chosen = l.parameters[p];
    if (chosen.tied_to < 0 && seats[p].first >= 0) {
      by_group[seats[p].first].insert(seats[p].second);
      continue;
    }
    gap();
    out.line(cat(escaped(chosen.global_name),
                 chosen.tied_to >= 0
                     ? cat(" is a second name of ", escaped(l.parameters[chosen.tied_to].global_name))
                     : " is a persistent buffer: in no group, whole on every rank"));
  }
  std::map<i64, std::vector<i64>> alike;
  for (const auto& [g, members] : by_group) {
    i64 like = l.packing.facts[g].like;
    auto first = by_group.find(like);
    alike[first != by_group.end() && first->second == members ? like : g].push_back(g);
  }
  for (const auto& [g, groups] : alike) {
    gap();
    write_group(out, l, g, &by_group[g]);
    if (groups.size() > 1)
      out.line(cat("\n", groups.size() == 2 ? "group " : "groups ",
                   ranges({groups.begin() + 1, groups.end()}), ": as group ", g));
  }
}

}  // namespace

void write_model_layout(Output& out, const ModelLayout& l) {
  write_head(out, l);
  if (l.group) {
    write_group(out, l, *l.group, nullptr);
  } else if (l.chosen) {
    write_chosen(out, l);
  } else if (l.memory) {
    write_memory(out, l, *l.memory);
  } else {
    write_groups(out, l);
    write_totals(out, l);
  }
  write_cuts(out, l);
}

}  // namespace mckpt::impl
