// Counts by kinds of names, so that a model of many layers or experts is as quick as a small one, and that a
// family which knows the experts alone is not the nearest.
#include "mappings/map_file/explained.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/map_file/name_kinds.h"
#include "mappings/needs.h"
#include "mappings/registry.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

bool has_experts(const Family& family) {
  return !family.expert_forms.empty() || std::ranges::any_of(family.sections, [](const Section& section) {
    return section.layer && section.layer->dense.empty() && !section.layer->moe.empty();
  });
}

bool has_dense_layers(const Family& family) {
  return std::ranges::any_of(
      family.sections, [](const Section& section) { return section.layer && !section.layer->dense.empty(); });
}

// A model need not have layers for multi-token prediction.
bool is_mtp(Scope scope) {
  return scope == Scope::kMtpHead || scope == Scope::kMtpLayers || scope == Scope::kMtpTail;
}

class Counter {
 public:
  Counter(const std::vector<NameKind>& kinds, const ModelConfig* usual, const ModelConfig* numbers)
      : kinds_(kinds), usual_(usual), numbers_(numbers) {
    for (std::size_t i = 0; i < kinds.size(); i++) by_name_.emplace(kinds[i].name, i);
  }

  Explained count(const Family& family) const {
    std::set<std::size_t> known;  // kinds that a row or an unread row explains
    std::map<std::string, bool>
        always;  // rows that all models of the family have, and whether they are found
    for (const Section& section : family.sections)
      for (const RowList& list : row_lists(section))
        for (const Row& row : list.rows) {
          if (!family_has(family, row.needs) && row.needs != Needs::kAlways) continue;
          bool found = look(section, row, known);
          bool counts = (row.needs == Needs::kAlways || is_expert_form(row.needs)) && concerns(list.kind) &&
                        !is_mtp(section.scope);
          if (counts) always[cat(section.megatron, row.megatron)] |= found;
        }
    for (const Unread& u : family.unread)
      if (auto at = by_name_.find(kind_name(u.name)); at != by_name_.end()) known.insert(at->second);
    Explained out{&family, 0, std::ssize(known), 0};
    for (std::size_t k : known) out.tensors += std::ssize(kinds_[k].tensors);
    out.missing = std::ranges::count_if(always, [](const auto& row) { return !row.second; });
    return out;
  }

  // False for a family without experts and a model with them, and for one all of whose layers have experts
  // and a model without.
  bool fits(const Family& family) const {
    if (!usual_) return true;
    return usual_->moe.experts > 0 ? has_experts(family) : has_dense_layers(family) || !has_experts(family);
  }

 private:
  // A model of experts need not have dense layers, nor any other model experts.
  bool concerns(std::string_view kind) const {
    if (!usual_) return true;
    return usual_->moe.experts > 0 ? kind != "dense" : kind != "moe";
  }

  // Adds the kinds of the row's sources; false if the model lacks one of them.
  bool look(const Section& section, const Row& row, std::set<std::size_t>& known) const {
    bool all = true;
    for (const Source& source : row.sources) {
      if (source.name.empty()) break;
      auto at = find(section, row, source.name);
      if (at == by_name_.end() && &source == &row.sources[0] && !row.also.empty())
        at = find(section, row, row.also);
      bool found = at != by_name_.end() && has_shape(kinds_[at->second], section, source.shape);
      if (found) known.insert(at->second);
      all &= found;
    }
    return all;
  }

  std::map<std::string, std::size_t>::const_iterator find(const Section& section, const Row& row,
                                                          std::string_view name) const {
    return by_name_.find(kind_name(cat(row.whole_names ? "" : section.hugging_face, name)));
  }

  bool has_shape(const NameKind& kind, const Section& section, std::string_view text) const {
    if (!numbers_ || !kind.sized) return true;
    try {
      const TowerConfig& tower = section.tower == Tower::kVision  ? numbers_->vision_tower
                                 : section.tower == Tower::kAudio ? numbers_->audio_tower
                                                                  : numbers_->text;
      return std::ranges::equal(shape_of(text, *numbers_, tower).dims(), kind.dims);
    } catch (const Error&) {
      return false;  // a size that such a model does not have
    }
  }

  const std::vector<NameKind>& kinds_;
  const ModelConfig* usual_;    // whether the model has experts
  const ModelConfig* numbers_;  // its sizes, as the family reads them
  std::map<std::string, std::size_t> by_name_;
};

}  // namespace

std::vector<Explained> explained_by_families(const SourceTable& tensors, const ModelConfig* usual,
                                             const FamilyNumbers& numbers) {
  std::vector<NameKind> kinds = name_kinds(tensors);
  struct Counted {
    Explained explained;
    bool fits;
  };
  std::vector<Counted> all;
  for (const Family* family : all_families()) {
    const ModelConfig* own = usual ? numbers(*family) : nullptr;
    const Counter counter(kinds, usual, own ? own : usual);
    all.push_back({counter.count(*family), counter.fits(*family)});
  }
  std::ranges::stable_sort(all, [](const Counted& a, const Counted& b) {
    return std::tuple(a.fits, a.explained.score(), -a.explained.missing) >
           std::tuple(b.fits, b.explained.score(), -b.explained.missing);
  });
  std::vector<Explained> out;
  for (const Counted& c : all) out.push_back(c.explained);
  return out;
}

}  // namespace mckpt::impl
