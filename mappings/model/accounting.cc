// Compares the tensors of the files with those that the tables need: finds the form of the experts, pairs
// tensors and parameters, and reports everything that has no partner.
//
//   tensors of the file    a  b  c  d       b has all experts, so many parameters read it: checked once
//   sources of the rows    a  b  b     e    c has a row in `unread` (a copy, or not needed): accepted
//                                           d: "unmatched"; e: "missing"
//
// All mismatches are collected and thrown as one error, because a wrong config makes hundreds of them.
#include "mappings/model/accounting.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "core/items/shape.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/layer_counts.h"
#include "mappings/model/named_unread.h"
#include "mappings/model/source_parts.h"
#include "mappings/model/source_table.h"
#include "mappings/model/walk.h"
#include "mappings/name_pattern.h"
#include "mappings/needs.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {
namespace {

// Ends of names that only quantised models have: scales, zero points, packed values.
constexpr std::string_view kPackedSuffixes[] = {"_scale_inv",   "_blocks",        "_scales", ".weight_scale",
                                                ".qweight",     ".qzeros",        ".scales", ".absmax",
                                                ".input_scale", ".weight_packed", ".SCB"};

// The types of counts and of tables of numbers.
bool is_counter_type(DType dtype) { return dtype == DType::kI64 || dtype == DType::kI32; }

// The types that weights have in training; other tensors cannot be parameters.
bool is_parameter_type(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

bool is_packed_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  return (info.kind == DTypeKind::kFloat && info.bits <= 8) || info.kind == DTypeKind::kQuantized;
}

// All experts: files are not divided among ranks.
i64 expert_end(const ModelConfig& model) { return model.moe.experts; }

// How many fused tensors of a layer have the shape of each orientation.
struct Votes {
  i64 fused = 0, hub = 0;
  std::string fused_tensor, hub_tensor;
};

// Counts a fused tensor whose shape shows which dimension is first; a square one shows nothing.
void vote(const Site& site, const Row& row, const ModelConfig& model, const SourceTable& sources,
          Votes& votes) {
  i32 at = sources.find(present_name(site, row, 0, 0, sources));
  if (at < 0 || !sources[at].header_known) return;
  Shape found(sources[at].dims), mine = shape_of(row.sources[0].shape, model, *site.tower);
  Shape turned = {mine[0], mine[2], mine[1]};
  if (mine == turned || found != mine) return;
  bool hub = row.needs == Needs::kExpertsHub;
  (hub ? votes.hub : votes.fused)++;
  (hub ? votes.hub_tensor : votes.fused_tensor) = sources[at].name;
}

// Throws kAmbiguousLayout with a tensor of each form.
[[noreturn]] void refuse_mixed(std::string_view a, std::string_view b) {
  throw Error(Code::kAmbiguousLayout, "experts are stored in two forms at once")
      .note(cat("one is ", escaped(a)))
      .note(cat("another is ", escaped(b)))
      .help(
          "`expert_layout` apart, fused or hub chooses one form; the tensors of the other form are then refused by name");
}

// Finds the form of the experts of one section by names and shapes.
class FormFinder {
 public:
  FormFinder(const Family& family, const ModelConfig& model, const SourceTable& sources)
      : family_(family), model_(model), sources_(sources) {}

  // Notes in which forms the file has the experts of this layer.
  void look(const Site& site) {
    if (!site.layer || site.layer->ffn != Ffn::kMoe) return;
    for (const Row& row : site.section->layer->moe) {
      if (!is_expert_form(row.needs) || !known(row.needs)) continue;
      std::string name = present_name(site, row, 0, 0, sources_);
      if (sources_.find(name) < 0) continue;
      (row.needs == Needs::kExpertsApart ? apart_ : whole_) = name;
      if (row.needs != Needs::kExpertsApart) vote(site, row, model_, sources_, votes_);
    }
  }

  // The form of the section. Throws kAmbiguousLayout if two forms are there.
  Needs form() const {
    if (!apart_.empty() && !whole_.empty()) refuse_mixed(apart_, whole_);
    if (!apart_.empty()) return Needs::kExpertsApart;
    if (whole_.empty()) return family_.expert_forms.empty() ? Needs::kExpertsFused : family_.expert_forms[0];
    if (votes_.fused > 0 && votes_.hub > 0) refuse_mixed(votes_.fused_tensor, votes_.hub_tensor);
    if (votes_.hub > 0) return Needs::kExpertsHub;
    if (votes_.fused > 0) return Needs::kExpertsFused;
    // Shapes fit neither form, or are not known: assume the usual form. Shapes are checked later.
    for (Needs form : family_.expert_forms)
      if (form != Needs::kExpertsApart) return form;
    return Needs::kExpertsFused;
  }

 private:
  bool known(Needs form) const {
    return std::find(family_.expert_forms.begin(), family_.expert_forms.end(), form) !=
           family_.expert_forms.end();
  }

  const Family& family_;
  const ModelConfig& model_;
  const SourceTable& sources_;
  std::string apart_, whole_;  // a tensor of that form
  Votes votes_;
};

// Marks the tensors that rows read. watch(), one pass over all sites, unread() and empty(), then report().
class Accountant {
 public:
  Accountant(const ModelConfig& model, const SourceTable& sources, Mismatches& mismatches)
      : model_(model),
        sources_(sources),
        mismatches_(mismatches),
        layers_(std::ssize(model.text.layers)),
        read_(static_cast<std::size_t>(sources.size())),
        always_read_(read_.size()) {}

  i64 parameters() const { return parameters_; }

  // Counts the parameters of the site and marks the tensors that they read. The copy of a tied output layer
  // is not a parameter of its own.
  void site(const Site& site, Needs form) {
    each_row(site, model_, form, 0, expert_end(model_), [&](const Row& row, i64 expert) {
      if (site.section->stage != Stage::kTiedOutput) parameters_++;
      each_source(site, row, model_,
                  [&](std::size_t s, i64 part, const Site& of) { source(of, row, s, part, expert); });
    });
  }

  // Notes which parameters read the tensors of the entry.
  void watch(const Unread& entry) { readers_.watch(named_by(entry, model_, sources_)); }

  // Adds the tensors that are not read for a known reason. pre: all sites were visited.
  void unread(const Unread& entry, std::vector<UnreadTensor>& out) {
    for (i32 at : named_by(entry, model_, sources_)) {
      if (entry.of_map && always_read_[at]) refuse_read(sources_[at].name);
      if (read_[at]) continue;
      read_[at] = true;
      out.push_back({at, entry.copy_of.empty() ? -1 : find(entry.copy_of), entry.reason});
    }
  }

  // Why an entry of a map file has no effect in this model; "": it has. pre: watch(), and as unread().
  std::string without_effect(const Unread& entry) const {
    return readers_.note(named_by(entry, model_, sources_), sources_);
  }

  // Adds matrices without items that no row reads: transformers writes the shared experts of a model that has
  // none of them. pre: as unread().
  void empty(std::vector<UnreadTensor>& out) {
    for (i32 i = 0; i < sources_.size(); i++) {
      const std::span<const i64> dims = sources_[i].header_known ? sources_[i].dims : std::span<const i64>();
      if (read_[i] || dims.size() < 2 || std::ranges::find(dims, 0) == dims.end()) continue;
      read_[i] = true;
      out.push_back({i, -1, "it has no items"});
    }
  }

  // Reports missing tensors, and tensors that no row reads; nothing of a file is dropped without a word.
  void report() {
    std::vector<bool> beyond(read_.size());
    for (i32 i = 0; i < sources_.size(); i++)
      beyond[i] = !read_[i] && layers_.is_beyond(sources_[i].name, sources_);
    const std::string sentence = layers_.sentence();
    for (auto& [layer, text] : missing_) add("missing", std::move(text), layers_.is_absent(layer), sentence);
    for (i32 i = 0; i < sources_.size(); i++)
      if (!read_[i])
        add("unmatched", cat(escaped(sources_[i].name), " is read by no parameter (unexpected)"), beyond[i],
            sentence);
  }

 private:
  // The tensor of that name, or the one that a parameter reads under another spelling of it; -1.
  i32 find(std::string_view name) const {
    const i32 at = sources_.find(name);
    if (at >= 0) return at;
    const auto other = respelt_.find(name);
    return other == respelt_.end() ? -1 : other->second;
  }

  [[noreturn]] static void refuse_read(std::string_view name) {
    throw Error(Code::kBadMap, "the map names a tensor under \"unread\", and a row reads it")
        .tensor(name)
        .help("take the tensor out of \"unread\", or the row out of the table with \"remove\"");
  }

  void add(std::string kind, std::string what, bool of_layers, const std::string& sentence) {
    of_layers && !sentence.empty() ? mismatches_.add_of_layer(std::move(kind), std::move(what), sentence)
                                   : mismatches_.add(std::move(kind), std::move(what));
  }

  // Finds one source, and checks its type and shape.
  void source(const Site& site, const Row& row, std::size_t s, i64 part, i64 expert) {
    std::string name = present_name(site, row, s, expert, sources_);
    i32 at = sources_.find(name);
    layers_.needed(site, at >= 0);
    if (at < 0) {
      const bool shown = missing_.size() < kMostTexts;
      missing_.emplace_back(site.numbers['L'],
                            shown ? cat(name, ", for ", megatron_name(site, row, expert)) : "");
      return;
    }
    if (row.needs == Needs::kAlways) always_read_[at] = true;
    if (readers_.awaits(at)) readers_.read(at, megatron_name(site, row, expert));
    // A fused tensor is checked once, not for each of its experts.
    if (read_[at]) return;
    read_[at] = true;
    if (!row.also.empty() || !site.section->also.empty())
      respelt_.emplace(source_name(site, row, row.sources[s].name, expert), at);
    const SourceTensor& tensor = sources_[at];
    if (!tensor.header_known) return;
    if (row.counter ? !is_counter_type(tensor.dtype) : !is_parameter_type(tensor.dtype))
      mismatches_.add("wrong type", cat(name, row.counter ? ": int64 or int32" : ": a floating-point type",
                                        " is expected, not ", dtype_name(tensor.dtype)));
    Shape expected = shape_of_part(row.sources[s], model_, *site.tower, part);
    if (!std::equal(tensor.dims.begin(), tensor.dims.end(), expected.dims().begin(), expected.dims().end()))
      mismatches_.wrong_shape(name, to_string(expected), row.sources[s].shape, dims_to_string(tensor.dims));
  }

  const ModelConfig& model_;
  const SourceTable& sources_;
  Mismatches& mismatches_;
  LayerCounts layers_;
  static constexpr std::size_t kMostTexts = 1000;
  std::vector<std::pair<i64, std::string>> missing_;  // with their layers; the first have texts
  std::vector<bool> read_;
  std::vector<bool> always_read_;  // by rows without a condition
  UnreadReaders readers_;
  std::map<std::string, i32, std::less<>> respelt_;  // by the first spelling
  i64 parameters_ = 0;
};

}  // namespace

// Counts all and keeps the first texts. Without a text it is only counted.
void Mismatches::add(std::string kind, std::string what) {
  if (!what.empty() && shown_.size() < kShown) shown_.push_back(cat(kind, ": ", what));
  count(std::move(kind));
}

void Mismatches::add_of_layer(std::string kind, std::string what, const std::string& layers) {
  layers_ = layers;
  if (of_layers_++ < kShownOfLayers) return add(std::move(kind), std::move(what));
  count(std::move(kind));
}

void Mismatches::wrong_shape(std::string_view name, std::string_view expected, std::string_view of,
                             std::string_view found) {
  add("wrong shape",
      cat(escaped(name), ": expected ", expected, of.empty() ? "" : cat(" (", of, ")"), ", found ", found));
}

void Mismatches::count(std::string kind) {
  auto found = std::find_if(counts_.begin(), counts_.end(), [&](const auto& c) { return c.first == kind; });
  if (found == counts_.end())
    counts_.emplace_back(std::move(kind), 1);
  else
    found->second++;
}

void Mismatches::refuse_any() const {
  if (!empty()) throw error();
}

// One error: how many of each kind, and the first of them.
Error Mismatches::error() const {
  std::string summary;
  i64 total = 0;
  for (const auto& [kind, count] : counts_) {
    summary += cat(summary.empty() ? "" : ", ", count, " ", kind);
    total += count;
  }
  Error e(Code::kUnaccounted, layers_.empty() ? cat("the tensors and the model do not match: ", summary)
                                              : cat(layers_, ": ", summary));
  for (const std::string& line : shown_) e.note(line);
  if (i64 more = total - static_cast<i64>(shown_.size()); more > 0) e.note(cat("and ", more, " more"));
  return e.help(
      "compare config.json with the tensors: `mckpt ls` lists them, `mckpt mappings show` the parameters of the family");
}

bool is_name_of_codes(std::string_view name) {
  return std::any_of(std::begin(kPackedSuffixes), std::end(kPackedSuffixes),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

Error quantized_error(std::string_view name, std::string message) {
  return Error(Code::kQuantized,
               message.empty() ? "a tensor of scales or packed values shows that the weights are quantised"
                               : std::move(message))
      .tensor(name)
      .help(
          "codes are decoded where their scales are beside them under known names; dequantise other models first");
}

void refuse_quantized(const SourceTable& sources) {
  for (i32 i = 0; i < sources.size(); i++) {
    const SourceTensor& t = sources[i];
    if (is_name_of_codes(t.name)) throw quantized_error(t.name);
    if (t.header_known && is_packed_type(t.dtype))
      throw quantized_error(t.name, cat("a tensor is of the quantised type ", dtype_name(t.dtype)));
  }
}

std::vector<Needs> expert_forms(const Family& family, const ModelConfig& model, const SourceTable& sources,
                                const MapOptions& options) {
  std::map<const Section*, FormFinder> finders;
  each_site(family, model, [&](const Site& site) {
    if (site.layer) finders.try_emplace(site.section, family, model, sources).first->second.look(site);
  });
  std::vector<Needs> forms;
  for (const Section& section : family.sections) {
    auto found = finders.find(&section);
    Needs form = options.expert_form ? *options.expert_form : Needs::kExpertsFused;
    if (!options.expert_form && found != finders.end()) form = found->second.form();
    forms.push_back(form);
  }
  return forms;
}

// Depth by depth, by the first tensor of its head.
i64 mtp_depths_in(const Family& family, const ModelConfig& model, const SourceTable& sources) {
  constexpr i64 kMost = 16;
  auto head = std::find_if(family.sections.begin(), family.sections.end(),
                           [](const Section& section) { return section.scope == Scope::kMtpHead; });
  if (head == family.sections.end() || model.mtp.layers.empty()) return 0;
  // Names without a number can be of one depth only.
  bool numbered = head->hugging_face.find('{') != std::string_view::npos;
  for (i64 depth = 0; depth < (numbered ? kMost : 1); depth++) {
    Numbers numbers;
    numbers['M'] = depth;
    numbers['F'] = depth * std::ssize(model.mtp.layers);
    numbers['N'] = std::ssize(model.text.layers) + depth;
    std::string name;
    append_name(name, head->hugging_face, numbers);
    append_name(name, head->rows[0].sources[0].name, numbers);
    if (sources.find(name) < 0) return depth;
  }
  return numbered ? kMost : 1;
}

// One pass over all sites, then the tensors that are left.
i64 account(const Family& family, const ModelConfig& model, const std::vector<Needs>& forms,
            const SourceTable& sources, std::vector<UnreadTensor>& unread, std::vector<std::string>& notes,
            Mismatches& mismatches) {
  Accountant accountant(model, sources, mismatches);
  for (const Unread& entry : family.unread)
    if (entry.of_map) accountant.watch(entry);
  each_site(family, model,
            [&](const Site& site) { accountant.site(site, forms[site.section - family.sections.data()]); });
  for (const Unread& entry : family.unread)
    if (holds(entry.needs, model, model.text, Needs::kExpertsFused)) accountant.unread(entry, unread);
  for (const Unread& entry : family.unread)
    if (std::string text = entry.of_map ? accountant.without_effect(entry) : ""; !text.empty())
      notes.push_back(std::move(text));
  accountant.empty(unread);
  accountant.report();
  return accountant.parameters();
}

std::string present_name(const Site& site, const Row& row, std::size_t source, i64 expert,
                         const SourceTable& sources) {
  std::string_view own = row.sources[source].name, also = source == 0 ? row.also : "";
  std::string name = source_name(site, row, own, expert);
  if (sources.find(name) >= 0) return name;
  auto is_there = [&](const std::string& other) { return sources.find(other) >= 0; };
  if (!also.empty())
    if (std::string other = source_name(site, row, also, expert); is_there(other)) return other;
  if (!site.section->also.empty())
    for (std::string_view leaf : {own, also})
      if (std::string other = other_source_name(site, row, leaf, expert); !leaf.empty() && is_there(other))
        return other;
  return name;
}

}  // namespace mckpt::impl
