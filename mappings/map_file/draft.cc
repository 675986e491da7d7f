// Kinds of names are counted, not tensors, so that a model of many layers or experts takes no longer than a
// small one. The rows that a model should have are those that a walk over its layers visits.
#include "mappings/map_file/draft.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/walk.h"
#include "mappings/needs.h"
#include "mappings/registry.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

bool is_mtp(Scope scope) {
  return scope == Scope::kMtpHead || scope == Scope::kMtpLayers || scope == Scope::kMtpTail;
}

std::string whole_source(const Section& section, const Row& row, std::string_view name) {
  return cat(row.whole_names ? "" : section.hugging_face, name);
}

MapRow map_row(const Section& section, const Row& row) {
  MapRow out;
  out.megatron = cat(section.megatron, row.megatron);
  out.rule = row.rule;
  for (const Source& source : row.sources) {
    if (source.name.empty()) break;
    out.sources.push_back({whole_source(section, row, source.name), std::string(source.shape)});
  }
  out.needs = row.needs, out.split = row.split;
  out.buffer = row.buffer, out.fp32 = row.fp32, out.alternates = row.alternates;
  out.gathered_with = row.gathered_with, out.stateless = row.stateless;
  return out;
}

// Looks for the sources of a family's rows among the kinds.
class Explanation {
 public:
  Explanation(const Family& family, std::span<const NameKind> kinds, const ModelConfig* numbers,
              const ModelConfig* usual)
      : family_(family),
        kinds_(kinds),
        numbers_(numbers),
        sizes_(numbers ? numbers : usual),
        known_(kinds.size()) {
    for (std::size_t i = 0; i < kinds.size(); i++) by_name_.emplace(kinds[i].name, i);
  }

  Explained explained() {
    each_row_of_model([this](const Section& section, const Row& row, const TowerConfig* tower) {
      if (seen_.emplace(&section, &row).second) look(section, row, tower);
    });
    for (const Unread& u : family_.unread)
      if (auto at = by_name_.find(kind_name(u.name)); at != by_name_.end()) known_[at->second] = true;
    Explained out{&family_};
    std::vector<bool> told(kinds_.size());  // by the row that it does not fit
    for (const std::string& name : order_) {
      const Found& found = rows_.at(name);
      if (found.fits) continue;
      out.unfit.push_back(found.row);
      for (std::size_t k : found.kinds) told[k] = true;
    }
    for (std::size_t k = 0; k < kinds_.size(); k++) {
      if (known_[k]) out.tensors += kinds_[k].tensors;
      if (!known_[k] && !told[k]) out.unknown.push_back(k);
    }
    return out;
  }

 private:
  struct Found {
    MapRow row;
    bool fits = false;
    std::vector<std::size_t> kinds{};  // that are its sources, with whatever shape
  };
  using Visit = std::function<void(const Section&, const Row&, const TowerConfig*)>;

  // With numbers the rows of a walk, experts in all the forms that files have; otherwise all rows without a
  // condition.
  void each_row_of_model(const Visit& visit) const {
    if (!numbers_) {
      for (const Section& section : family_.sections)
        for (const RowList& list : row_lists(section))
          for (const Row& row : list.rows)
            if (row.needs == Needs::kAlways || is_expert_form(row.needs))
              visit(section, row, sizes_ ? &tower_of(*sizes_, section.tower) : nullptr);
      return;
    }
    ModelConfig model = *numbers_;
    model.mtp.depths = std::max<i64>(model.mtp.depths, 1);
    for (Needs form : {Needs::kExpertsApart, Needs::kExpertsFused, Needs::kExpertsHub})
      each_site(family_, model, [&](const Site& site) {
        each_row(site, model, form, 0, 1,
                 [&](const Row& row, i64) { visit(*site.section, row, site.tower); });
      });
  }

  // Marks the kinds that are sources of the row as known, and keeps the row with what it does not find.
  void look(const Section& section, const Row& row, const TowerConfig* tower) {
    Found found{map_row(section, row)};
    MapRow& made = found.row;
    for (std::size_t s = 0; s < made.sources.size(); s++) {
      auto at = by_name_.find(kind_name(made.sources[s].name));
      for (const std::string& other : other_names(section, row, s))
        if (at == by_name_.end()) at = by_name_.find(kind_name(other));
      std::string fault = at == by_name_.end()
                              ? cat("no tensor is ", made.sources[s].name)
                              : shape_fault(kinds_[at->second], made.sources[s].shape, tower);
      if (at != by_name_.end()) found.kinds.push_back(at->second);
      if (fault.empty()) known_[at->second] = true;
      if (!fault.empty()) made.todo += cat(made.todo.empty() ? "" : "; ", fault);
    }
    found.fits = made.todo.empty();
    // A model need not have layers for multi-token prediction: their tensors that do not fit count as
    // unknown.
    if (!is_mtp(section.scope)) add(std::move(found));
  }

  // A parameter fits if one of the rows of its name does: the forms of experts share names.
  void add(Found found) {
    const std::string name = found.row.megatron;
    auto [at, is_new] = rows_.try_emplace(name, found);
    if (is_new) order_.push_back(name);
    at->second.fits |= found.fits;
  }

  static std::vector<std::string> other_names(const Section& section, const Row& row, std::size_t source) {
    std::vector<std::string> out;
    if (source == 0 && !row.also.empty()) out.push_back(whole_source(section, row, row.also));
    if (!section.also.empty() && !row.whole_names) out.push_back(cat(section.also, row.sources[source].name));
    if (!section.also.empty() && !row.whole_names && source == 0 && !row.also.empty())
      out.push_back(cat(section.also, row.also));
    return out;
  }

  // "X is [40, 96], and [expert_ffn hidden] = [42, 96]"; "" if the shape fits or is not known.
  std::string shape_fault(const NameKind& kind, std::string_view text, const TowerConfig* tower) const {
    if (!tower || !kind.sized) return "";
    try {
      const Shape shape = shape_of(text, *sizes_, *tower);
      if (std::ranges::equal(shape.dims(), kind.dims)) return "";
      return cat(kind.name, " has the shape ", to_string(Shape(kind.dims)), ", not [", text,
                 "] = ", to_string(shape));
    } catch (const Error&) {
      return cat(kind.name, " has a shape of which the config does not give the numbers: [", text, "]");
    }
  }

  const Family& family_;
  std::span<const NameKind> kinds_;
  const ModelConfig *numbers_, *sizes_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<bool> known_;                               // kinds: with the shape that a row says
  std::set<std::pair<const Section*, const Row*>> seen_;  // sections share rows
  std::map<std::string, Found> rows_;                     // by Megatron's name
  std::vector<std::string> order_;                        // of these names: the order of the family's table
};

// The shape in numbers, which a person replaces by words: "24 16".
std::string numbers_of(const NameKind& kind) {
  std::string out;
  for (i64 dim : kind.dims) out += cat(out.empty() ? "" : " ", dim);
  return out;
}

}  // namespace

bool may_hold(const Family& family, const ModelConfig& model) {
  auto layers = [&](std::span<const Row> LayerRows::*list) {
    return std::ranges::any_of(family.sections, [&](const Section& s) {
      return s.layer && s.tower == Tower::kText && !(s.layer->*list).empty();
    });
  };
  return model.moe.experts > 0 ? layers(&LayerRows::moe)
                               : layers(&LayerRows::dense) || !layers(&LayerRows::moe);
}

Explained explained_by(const Family& family, std::span<const NameKind> kinds, const ModelConfig* numbers,
                       const ModelConfig* usual) {
  return Explanation(family, kinds, numbers, usual).explained();
}

MapFile draft_map(const Explained& nearest, std::span<const NameKind> kinds) {
  MapFile file;
  file.base = std::string(nearest.family->name);
  file.rows = nearest.unfit;
  for (std::size_t k : nearest.unknown) {
    MapRow row;
    row.sources.push_back({kinds[k].name, numbers_of(kinds[k])});
    row.todo = cat("no row of ", nearest.family->name, " reads this tensor: which parameter is it?");
    file.rows.push_back(std::move(row));
  }
  return file;
}

}  // namespace mckpt::impl
