// The rows of the base are walked over the layers of the model, so a row that only some layers lack is found,
// too. Rows for the tensors that are left are then put together from their roles, and sorted into Megatron's
// order.
#include "mappings/map_file/draft.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/map_file/name_kinds.h"
#include "mappings/map_file/recognise.h"
#include "mappings/map_file/rows.h"
#include "mappings/model/accounting.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_table.h"
#include "mappings/model/walk.h"
#include "mappings/registry.h"
#include "mappings/rule.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kUsualLayers = "decoder.layers.{L}.";

// The order in which Megatron registers the parameters: before the layers, in a layer, after the layers.
constexpr std::string_view kBefore[] = {"embedding.word_embeddings.weight",
                                        "embedding.position_embeddings.weight"};
constexpr std::string_view kInLayer[] = {"self_attention.core_attention.softmax_offset",
                                         "self_attention.linear_proj.weight",
                                         "self_attention.linear_proj.bias",
                                         "self_attention.linear_proj.post_layernorm.weight",
                                         "self_attention.linear_proj.post_layernorm.bias",
                                         "self_attention.linear_qkv.layer_norm_weight",
                                         "self_attention.linear_qkv.layer_norm_bias",
                                         "self_attention.linear_qkv.weight",
                                         "self_attention.linear_qkv.bias",
                                         "self_attention.q_layernorm.weight",
                                         "self_attention.q_layernorm.bias",
                                         "self_attention.k_layernorm.weight",
                                         "self_attention.k_layernorm.bias",
                                         "pre_mlp_layernorm.weight",
                                         "pre_mlp_layernorm.bias",
                                         "mlp.router.weight",
                                         "mlp.router.bias",
                                         "mlp.router.expert_bias",
                                         "mlp.experts.linear_fc1.weight{E}",
                                         "mlp.experts.linear_fc2.weight{E}",
                                         "mlp.shared_experts.linear_fc1.weight",
                                         "mlp.shared_experts.linear_fc2.weight",
                                         "mlp.linear_fc1.layer_norm_weight",
                                         "mlp.linear_fc1.layer_norm_bias",
                                         "mlp.linear_fc1.weight",
                                         "mlp.linear_fc1.bias",
                                         "mlp.linear_fc2.weight",
                                         "mlp.linear_fc2.bias",
                                         "mlp.linear_fc2.post_layernorm.weight",
                                         "mlp.linear_fc2.post_layernorm.bias"};
constexpr std::string_view kAfter[] = {"decoder.final_layernorm.weight", "decoder.final_layernorm.bias",
                                       "output_layer.weight", "output_layer.bias"};

// The place of a name in that order, and all names in it.
class Order {
 public:
  explicit Order(std::string_view layers) {
    std::string_view outer = layers.substr(0, layers.size() - kUsualLayers.size());  // "language_model."
    for (std::string_view name : kBefore) names_.push_back(cat(outer, name));
    first_of_layer_ = std::ssize(names_);
    for (std::string_view name : kInLayer) names_.push_back(cat(layers, name));
    end_of_layer_ = std::ssize(names_);
    for (std::string_view name : kAfter) names_.push_back(cat(outer, name));
  }

  // The whole name; one that the order does not have is that of a row without a place.
  std::string whole(std::string_view leaf) const {
    for (const std::string& name : names_)
      if (name.ends_with(leaf) && (name.size() == leaf.size() || name[name.size() - leaf.size() - 1] == '.'))
        return name;
    return std::string(leaf);
  }
  // Rows that have no name yet are the last of the layers, or of all.
  i64 place(const MapRow& row) const {
    auto at = std::ranges::find(names_, row.megatron);
    if (at != names_.end()) return at - names_.begin();
    bool in_layers = row.sources[0].name.find("{L}") != std::string::npos;
    return in_layers ? end_of_layer_ - 1 : std::ssize(names_);
  }
  // The names from which a row may follow, the nearest first: those before it of its own part.
  std::vector<std::string> before(const std::string& name) const {
    auto at = std::ranges::find(names_, name);
    if (at == names_.end()) return {};
    i64 n = at - names_.begin(), first = n < first_of_layer_ ? 0
                                         : n < end_of_layer_ ? first_of_layer_
                                                             : end_of_layer_;
    std::vector<std::string> out(names_.begin() + first, at);
    std::ranges::reverse(out);
    return out;
  }

 private:
  std::vector<std::string> names_;
  i64 first_of_layer_ = 0, end_of_layer_ = 0;
};

// The prefix of the layers of the base's text model.
std::string layers_of(const Family* base) {
  if (base)
    for (const Section& section : base->sections)
      if (section.scope == Scope::kLayers && section.tower == Tower::kText &&
          section.megatron.ends_with(kUsualLayers))
        return std::string(section.megatron);
  return std::string(kUsualLayers);
}

class Drafter {
 public:
  Drafter(const SourceTable& tensors, ModelConfig model, const Family* base)
      : tensors_(tensors),
        model_(std::move(model)),
        base_(base),
        kinds_(name_kinds(tensors)),
        order_(layers_of(base)),
        read_(static_cast<std::size_t>(tensors.size())) {
    for (const NameKind& kind : kinds_) names_.insert(kind.name);
  }

  MapFile draft() {
    file_.base = base_ ? std::string(base_->name) : std::string(kNoBase);
    if (base_) keep_rows_of_base();
    for (const NameKind& kind : kinds_)
      if (!read_[kind.tensors[0]]) add(kind);
    complete_rows();
    question_incomplete_rows();
    std::ranges::stable_sort(file_.rows, {}, [&](const MapRow& row) { return order_.place(row); });
    if (base_) place_rows();
    return std::move(file_);
  }

 private:
  // Marks the tensors that rows of the base read; collects the rows that find no tensor, or one of another
  // shape.
  void keep_rows_of_base() {
    if (i64 depths = mtp_depths_in(*base_, model_, tensors_); !model_.mtp.stated || depths == 0)
      model_.mtp.depths = depths;
    std::vector<Needs> forms = forms_of_experts();
    std::map<std::string, bool> fits;  // rows that apply, by name
    std::vector<std::pair<std::string, i32>> readers;
    each_site(*base_, model_, [&](const Site& site) {
      Needs form = forms[site.section - base_->sections.data()];
      each_row(site, model_, form, 0, model_.moe.experts, [&](const Row& row, i64 expert) {
        std::string name = cat(site.section->megatron, row.megatron);
        bool& good = fits.try_emplace(name, true).first->second;
        for (std::size_t s = 0; s < row.sources.size() && !row.sources[s].name.empty(); s++) {
          i32 t = tensors_.find(present_name(site, row, s, expert, tensors_));
          good = good && t >= 0 && has_shape(site, row.sources[s].shape, t) &&
                 !is_other_norm(row, tensors_[t].name);
          if (t >= 0) readers.emplace_back(name, t);
        }
      });
    });
    for (const auto& [name, t] : readers)
      if (fits[name]) read_[t] = true;
    for (const auto& [name, good] : fits)
      if (!good) unfit_.insert(name);
    for (const Unread& u : base_->unread)
      for (const NameKind& kind : kinds_)
        if (kind.name == kind_name(u.name))
          for (i32 t : kind.tensors) read_[t] = true;
  }

  // The norm that the base has before its MLP, in a model whose layers have norms of that part under other
  // names: then the one after attention is another norm.
  bool is_other_norm(const Row& row, std::string_view name) const {
    constexpr std::string_view kNorm = "post_attention_layernorm.weight";
    bool before_mlp = row.megatron.ends_with("linear_fc1.layer_norm_weight") ||
                      row.megatron.starts_with("pre_mlp_layernorm");
    return before_mlp && name.ends_with(kNorm) && std::ranges::any_of(names_, [](std::string_view other) {
             return other.ends_with(".pre_feedforward_layernorm.weight") ||
                    other.ends_with(".post_feedforward_layernorm.weight");
           });
  }

  std::vector<Needs> forms_of_experts() const {
    try {
      return expert_forms(*base_, model_, tensors_, {});
    } catch (const Error&) {  // in two forms at once: rows of neither fit
      return std::vector<Needs>(base_->sections.size(), Needs::kExpertsApart);
    }
  }

  bool has_shape(const Site& site, std::string_view text, i32 t) const {
    try {
      return !tensors_[t].header_known ||
             std::ranges::equal(shape_of(text, model_, *site.tower).dims(), tensors_[t].dims);
    } catch (const Error&) {
      return false;
    }
  }

  bool has_layers(Ffn ffn) const {
    return std::ranges::any_of(model_.text.layers, [&](const LayerSpec& l) { return l.ffn == ffn; });
  }

  // Adds what the tensors of the kind are.
  void add(const NameKind& kind) {
    Recognised r = recognise(kind, names_, model_);
    if (!r.unread.empty()) {
      file_.unread.push_back({kind.name, "", r.unread});
      return;
    }
    if (r.leaf == "output_layer.weight" && model_.tied && r.todo.empty()) {
      file_.unread.push_back({kind.name, embedding(), "the output layer is tied to the embedding"});
      return;
    }
    add(kind, r);
    // Both kinds of layers have the norm; Megatron gives it two names.
    constexpr std::string_view kNorm = "pre_mlp_layernorm.";
    if (r.leaf.starts_with(kNorm) && has_layers(Ffn::kDense)) {
      r.leaf = cat("mlp.linear_fc1.layer_norm_", r.leaf.substr(kNorm.size()));
      add(kind, r);
    }
  }

  void add(const NameKind& kind, const Recognised& r) {
    std::string whole = r.leaf.empty() ? "" : order_.whole(r.leaf);
    auto at = std::ranges::find_if(
        file_.rows, [&](const MapRow& row) { return !whole.empty() && row.megatron == whole; });
    MapRow::Source source{kind.name, r.shape};
    if (at != file_.rows.end() && at->rule == r.rule && roles(r.rule) > 1) {
      // Roles come in any order; they are kept in that of the rule.
      std::size_t slot = static_cast<std::size_t>(r.slot);
      if (at->sources.size() <= slot) at->sources.resize(slot + 1);
      if (at->sources[slot].name.empty()) {
        at->sources[slot] = std::move(source);
        if (at->todo.empty()) at->todo = r.todo;
        return;
      }
    }
    MapRow row;
    row.megatron = at == file_.rows.end() ? whole : "";
    row.rule = r.rule;
    row.needs = r.needs;
    row.split = r.split;
    row.buffer = r.buffer;
    row.todo =
        at == file_.rows.end() ? r.todo : cat("another tensor is ", whole, " already: which of them is it?");
    row.sources.resize(static_cast<std::size_t>(roles(r.rule) > 1 ? r.slot + 1 : 1));
    row.sources.back() = std::move(source);
    if (row.todo.empty()) row.todo = question_of_layers(kind, whole);
    file_.rows.push_back(std::move(row));
  }

  static std::size_t roles(std::string_view rule) { return rule.empty() ? 1 : rule_named(rule).roles.size(); }

  // A kind that not all layers of its part have.
  std::string question_of_layers(const NameKind& kind, std::string_view whole) const {
    if (kind.layers.empty()) return "";
    std::vector<i64> expected;
    std::string_view part = layer_kind_of(whole);
    for (i64 n = 0; n < std::ssize(model_.text.layers); n++) {
      Ffn ffn = model_.text.layers[n].ffn;
      if (part == "attention" || (part == "moe") == (ffn == Ffn::kMoe)) expected.push_back(n);
    }
    bool norm = whole.find("layer_norm_") != whole.npos || whole.find("pre_mlp_layernorm") != whole.npos;
    if (expected == kind.layers || norm) return "";
    return cat("of ", counted(std::ssize(expected), "layer"), " that would have it by its place, ",
               kind.layers.size(), " have it: which layers have it, and why?");
  }

  // A row that replaces one of the base takes what that one read as well: `up` beside a gate, where the base
  // has a plain MLP.
  void complete_rows() {
    for (const NameKind& kind : kinds_) {
      if (!read_[kind.tensors[0]]) continue;
      Recognised r = recognise(kind, names_, model_);
      if (r.leaf.empty() || roles(r.rule) < 2) continue;
      std::string whole = order_.whole(r.leaf);
      for (const MapRow& row : file_.rows)
        if (row.megatron == whole && row.rule == r.rule) {
          add(kind, r);
          break;
        }
    }
  }

  // A row that lacks a source, such as queries without keys.
  void question_incomplete_rows() {
    for (MapRow& row : file_.rows) {
      std::size_t needed = roles(row.rule);
      bool complete = row.sources.size() == needed &&
                      std::ranges::none_of(row.sources, [](const auto& s) { return s.name.empty(); });
      if (complete) continue;
      std::erase_if(row.sources, [](const MapRow::Source& s) { return s.name.empty(); });
      row.todo = cat("the rule ", row.rule, " takes ", counted(static_cast<i64>(needed), "tensor"), ", ",
                     listed(rule_named(row.rule).roles, needed), "; ",
                     row.sources.size() == 1 ? "only this one was" : "only these were", " found");
    }
  }

  std::string embedding() const {
    for (const NameKind& kind : kinds_)
      if (recognise(kind, names_, model_).leaf == kBefore[0]) return kind.name;
    return "";
  }

  // Rows of the base that find nothing are replaced or removed; new rows follow one that is there.
  void place_rows() {
    std::set<std::string> there;
    for (const Section& section : base_->sections)
      for (const RowList& list : row_lists(section))
        for (const Row& row : list.rows) there.insert(cat(section.megatron, row.megatron));
    for (const std::string& name : unfit_)
      if (std::ranges::none_of(file_.rows, [&](const MapRow& row) { return row.megatron == name; })) {
        file_.remove.push_back(name);
        there.erase(name);
      }
    for (MapRow& row : file_.rows) {
      if (row.megatron.empty() || !there.insert(row.megatron).second) continue;
      for (const std::string& name : order_.before(row.megatron))
        if (name != row.megatron && there.contains(name)) {
          row.after = name;
          break;
        }
      if (row.after.empty() && row.todo.empty()) row.todo = "which row does it follow? Name it in \"after\"";
    }
  }

  const SourceTable& tensors_;
  ModelConfig model_;
  const Family* base_;
  std::vector<NameKind> kinds_;
  KindNames names_;
  Order order_;
  std::vector<bool> read_;       // by rows of the base, or known not to be read
  std::set<std::string> unfit_;  // rows of the base that find no tensor, or one of another shape
  MapFile file_;
};

}  // namespace

MapFile draft_map(const SourceTable& tensors, ModelConfig model, const Family* base) {
  return Drafter(tensors, std::move(model), base).draft();
}

}  // namespace mckpt::impl
