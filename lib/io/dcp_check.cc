#include "io/dcp_check.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>

#include "core/name_hash.h"
#include "io/findings.h"
#include "io/pickle_value.h"

namespace mckpt {
namespace {

using Section = DcpKey::Section;

// The numbers of layers below one name, or of experts.
struct Series {
  std::vector<i64> numbers;
  i64 tensor = -1;  // one of those that showed them

  void add(i64 number, i64 tensor_of_it) {
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    tensor = tensor_of_it;
  }
  void settle() {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
  i64 count() const { return static_cast<i64>(numbers.size()); }
  bool from_zero() const { return count() == numbers.back() + 1; }
  // "3, 4 and 12" of what lies between 0 and the largest. pre: settled.
  std::string missing() const {
    std::vector<std::string> out;
    i64 next = 0;
    for (i64 n : numbers) {
      for (; next < n && out.size() < 10; next++) out.push_back(cat(next));
      next = n + 1;
    }
    return listed(out, 9);
  }
};

// The name of the parameter in the running model that a stored piece of it was split from: gated halves, the
// parts of a gated delta net, the fused down projection of MLA.
std::string fused_name(std::string_view parameter) {
  char half;
  std::string_view name = unsplit(parameter, half);
  if (half == 0) {
    std::size_t dot = name.rfind('.');
    std::string_view stem = name.substr(0, dot == name.npos ? 0 : dot), leaf = name.substr(stem.size());
    bool splits =
        stem.ends_with("in_proj.weight") || stem.ends_with("conv1d.weight") || stem.ends_with("conv1d.bias");
    constexpr std::array<std::string_view, 6> kParts = {".query", ".key", ".value", ".z", ".beta", ".alpha"};
    if (splits && std::find(kParts.begin(), kParts.end(), leaf) != kParts.end()) name = stem;
  }
  std::string out(name);
  for (std::string_view part : {"linear_q_down_proj.", "linear_kv_down_proj."})
    if (std::size_t at = out.find(part); at != out.npos)
      out.replace(at, part.size(), "linear_qkv_down_proj.");
  return out;
}

constexpr const char* kHalfLost =
    "the save was made by code that does not know of the other half, or a rank's file is missing: take an "
    "older checkpoint";
constexpr const char* kStateLost =
    "training cannot go on from these states; the weights are whole: reshard --weights-only, or export";
constexpr const char* kPieceForWhole =
    "an optimizer with plain tensors instead of DTensors was saved: one rank's piece stands for the whole, "
    "and "
    "the pieces of the others are lost; --weights-only leaves the states behind, --rank-states takes them "
    "from "
    "files of the ranks";
constexpr const char* kBiasesLost =
    "Megatron numbers the weights of experts globally and forgets their biases; save with "
    "--expert-model-parallel-size 1, or as torch_dist, to have all";
constexpr const char* kStagesLost = "save with --ckpt-format torch_dist, or without pipeline parallelism";

class NameChecks {
 public:
  NameChecks(const Store& store, DcpDialect dialect, const RunFacts& facts)
      : store_(store), dialect_(dialect), facts_(facts) {}

  std::vector<Finding> run(NamesOf names) {
    gather();
    for (const Entry& e : entries_) {
      if (names == NamesOf::kModel && e.key.section != Section::kModel) continue;
      check_half(e);
      check_moment(e);
    }
    if (names == NamesOf::kAll) {
      check_group_meta();
      check_trained();
    }
    check_layers();
    check_experts();
    check_pipeline();
    return findings_.take();
  }

 private:
  struct Entry {
    DcpKey key;
    i64 tensor;
  };
  // Tensors by the name of their parameter. Keys point into the store.
  using Tensors = NameMap<std::string_view, i64>;

  void gather();
  void gather_trained(i64 object);
  void check_half(const Entry& e);
  void check_moment(const Entry& e);
  void check_shape_of_state(const Entry& e);
  void check_group_meta();
  void check_trained();
  void check_layers();
  void check_layer_series(std::string_view before, const Series& layers);
  void check_experts();
  void check_expert_series(std::string_view before, std::string_view after, const Series& experts, i64 most);
  void check_pipeline();

  bool same_dims(i64 a, i64 b) const {
    return std::equal(store_.dims(a).begin(), store_.dims(a).end(), store_.dims(b).begin(),
                      store_.dims(b).end());
  }
  void add(Code code, i64 tensor, std::string message, const char* help = "", bool warning = false) {
    findings_.add({.code = code,
                   .tensor = tensor < 0 ? std::string() : std::string(store_.name(tensor)),
                   .message = std::move(message),
                   .help = help,
                   .warning = warning});
  }
  // By section and field: the model's under {kModel, ""}, moments under {kState, "exp_avg"}.
  const Tensors& section(Section s, std::string_view field) { return sections_[{s, field}]; }

  const Store& store_;
  DcpDialect dialect_;
  const RunFacts& facts_;
  std::vector<Entry> entries_;
  std::map<std::pair<Section, std::string_view>, Tensors> sections_;
  std::string_view meta_is_ = "optimizer.param_to_group_meta";
  std::vector<std::string_view> group_meta_;  // parameters that it names, in the order of the file
  std::deque<std::string> listed_;            // what of these is not in the store's own names
  i64 language_layers_ = 0;                   // that have tensors
  Findings findings_;
};

void NameChecks::gather() {
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    DcpKey key = split_key(dialect_, store_.name(t));
    if (key.section == Section::kOther) continue;
    entries_.push_back({key, t});
    sections_[{key.section, key.field}].emplace(key.parameter, t);
  }
  for (i64 i = 0; i < std::ssize(store_.objects()); i++) {
    const Object& o = store_.objects()[static_cast<std::size_t>(i)];
    DcpKey key = split_key(dialect_, o.name);
    if (key.section == Section::kGroupMeta && (group_meta_.empty() || group_meta_.back() != key.parameter))
      group_meta_.push_back(key.parameter);
    if (dialect_ == DcpDialect::kStateDict && o.name.starts_with("optimizer.param_groups.") &&
        o.name.ends_with(".params"))
      gather_trained(i);
  }
  std::sort(group_meta_.begin(), group_meta_.end());
  group_meta_.erase(std::unique(group_meta_.begin(), group_meta_.end()), group_meta_.end());
}

// torch's state dicts list the names of each group's parameters.
void NameChecks::gather_trained(i64 object) {
  meta_is_ = "optimizer.param_groups";
  try {
    std::shared_ptr<const PickleValue> list = store_.object(object);
    if (!list) return;
    for (PickleValue name : list->items())
      if (name.is(PickleValue::Kind::kText)) group_meta_.push_back(listed_.emplace_back(name.text()));
  } catch (const Error&) {
    // Reported as an object.
  }
}

void NameChecks::check_half(const Entry& e) {
  char half;
  std::string_view stem = unsplit(e.key.parameter, half);
  if (half == 0) return;
  const Tensors& same = section(e.key.section, e.key.field);
  std::string partner = cat(stem, half == 'w' ? "_v" : "_w");
  auto other = same.find(partner);
  if (other == same.end())
    add(Code::kCounterpart, e.tensor, cat("the other half, '", escaped(partner), "', is not there"),
        e.key.section == Section::kModel ? kHalfLost : kStateLost);
  else if (half == 'w' && !same_dims(e.tensor, other->second))
    add(Code::kCounterpart, e.tensor,
        cat("its shape ", dims_to_string(store_.dims(e.tensor)), " differs from ",
            dims_to_string(store_.dims(other->second)), " of the other half, '", escaped(partner), "'"),
        e.key.section == Section::kModel ? "" : kPieceForWhole);
}

void NameChecks::check_moment(const Entry& e) {
  if (e.key.section != Section::kState || (e.key.field != "exp_avg" && e.key.field != "exp_avg_sq")) return;
  std::string_view other = e.key.field == "exp_avg" ? "exp_avg_sq" : "exp_avg";
  if (!section(Section::kState, other).contains(e.key.parameter))
    add(Code::kCounterpart, e.tensor, cat("its parameter has no ", other), kStateLost);
  // fully_shard's hooks number the parameters instead of naming them.
  if (dialect_ != DcpDialect::kMegatronFsdp) check_shape_of_state(e);
}

void NameChecks::check_shape_of_state(const Entry& e) {
  const Tensors& model = section(Section::kModel, {});
  if (model.empty()) return;
  auto parameter = model.find(e.key.parameter);
  if (parameter == model.end())
    return add(Code::kCounterpart, e.tensor,
               cat("the model has no parameter '", escaped(e.key.parameter), "'"));
  if (same_dims(e.tensor, parameter->second)) return;
  // Older torch_dist saves keep the state of a rank's flat buffer; its shape is written elsewhere.
  if (dialect_ == DcpDialect::kTorchDist && store_.dims(e.tensor).size() == 1) return;
  add(Code::kCounterpart, e.tensor,
      cat("its shape ", dims_to_string(store_.dims(e.tensor)), " differs from its parameter's ",
          dims_to_string(store_.dims(parameter->second))),
      kPieceForWhole);
}

void NameChecks::check_group_meta() {
  if (group_meta_.empty()) return;
  NameSet<std::string> with_state;
  for (const Entry& e : entries_) {
    if (e.key.section != Section::kState) continue;
    std::string name = fused_name(e.key.parameter);
    bool known = std::binary_search(group_meta_.begin(), group_meta_.end(), name) ||
                 std::binary_search(group_meta_.begin(), group_meta_.end(), e.key.parameter);
    if (!known && !with_state.contains(name))
      add(Code::kCounterpart, e.tensor, cat("its parameter is not in ", meta_is_), "", true);
    with_state.insert(std::move(name));
  }
  if (with_state.empty()) return;  // saved before the first step
  for (std::string_view parameter : group_meta_)
    if (!with_state.contains(fused_name(parameter)))
      findings_.add({.code = Code::kCounterpart,
                     .tensor = std::string(parameter),
                     .message = cat(meta_is_, " names the parameter, but it has no optimizer state"),
                     .help = kStateLost});
}

// Where nothing lists what was trained: parameters without states among others with them. Frozen ones have
// none, so this is no more than odd.
void NameChecks::check_trained() {
  const Tensors& trained = section(Section::kState, "exp_avg");
  if (trained.empty() || !group_meta_.empty() || dialect_ != DcpDialect::kFsdpDtensor) return;
  std::vector<std::string> without;
  i64 first = -1;
  for (const Entry& e : entries_) {
    bool weight = e.key.section == Section::kModel && !e.key.parameter.ends_with("_extra_state") &&
                  !e.key.parameter.ends_with("expert_bias");
    if (!weight || trained.contains(e.key.parameter)) continue;
    if (first < 0) first = e.tensor;
    without.emplace_back(e.key.parameter);
  }
  if (first >= 0)
    add(Code::kCounterpart, first,
        cat("no optimizer states of ", without.size(), " of ", without.size() + trained.size(),
            " parameters; that is right for frozen ones only: ", listed(without, 4)),
        kStateLost, true);
}

void NameChecks::check_layers() {
  std::map<std::string_view, Series> blocks;
  for (const Entry& e : entries_) {
    if (e.key.section != Section::kModel || e.key.parameter.ends_with("_extra_state")) continue;
    // Adapters may sit in any choice of layers.
    if (e.key.parameter.find("adapter") != e.key.parameter.npos) return;
    if (auto layer = numbered(e.key.parameter, "layers.")) blocks[layer->before].add(layer->number, e.tensor);
  }
  for (auto& [before, layers] : blocks) {
    layers.settle();
    check_layer_series(before, layers);
  }
}

void NameChecks::check_layer_series(std::string_view before, const Series& layers) {
  if (layers.count() <= layers.numbers.back())
    add(Code::kNumberGap, layers.tensor,
        cat("of the layers ", escaped(before), "0 to ", layers.numbers.back(), " there are no tensors of ",
            layers.missing()));
  bool of_language = before == "decoder.layers." || before == "language_model.decoder.layers.";
  if (of_language) language_layers_ = layers.count();
  if (of_language && facts_.layers && layers.count() < *facts_.layers)
    add(facts_.pipeline_stages.value_or(1) > 1 ? Code::kPipelineLoss : Code::kNumberGap, layers.tensor,
        cat("the run had ", *facts_.layers, " layers, but only ", layers.count(), " are stored"),
        facts_.pipeline_stages.value_or(1) > 1 ? kStagesLost : "");
}

void NameChecks::check_experts() {
  // One series for each tensor that an expert has, in each layer: the number is what sets them apart.
  std::map<std::pair<std::string_view, std::string_view>, Series> kinds;
  i64 most = facts_.experts.value_or(0);
  for (const Entry& e : entries_) {
    if (e.key.section != Section::kModel) continue;
    for (std::string_view stem :
         {"experts.linear_fc1.weight", "experts.linear_fc2.weight", "experts.linear_fc1.bias",
          "experts.linear_fc2.bias", "experts.local_experts."})
      if (auto expert = numbered(e.key.parameter, stem)) {
        kinds[{expert->before, expert->after}].add(expert->number, e.tensor);
        most = std::max(most, checked_add(expert->number, 1, "the number of experts"));
      }
  }
  for (auto& [kind, experts] : kinds) {
    experts.settle();
    if (experts.count() < most) check_expert_series(kind.first, kind.second, experts, most);
  }
}

void NameChecks::check_expert_series(std::string_view before, std::string_view after, const Series& experts,
                                     i64 most) {
  if (before.ends_with(".bias") && experts.from_zero() && most % experts.count() == 0)
    return add(
        Code::kNumberGap, experts.tensor,
        cat("the biases of experts were not renumbered: ", most / experts.count(),
            " expert-parallel ranks wrote theirs as ", escaped(before), "0 to ", experts.count() - 1,
            ", one over the other; those of ", most - experts.count(), " of ", most, " experts are lost"),
        kBiasesLost);
  std::string gap = experts.missing();
  add(Code::kNumberGap, experts.tensor,
      cat("there are ", most, " experts, but ", escaped(before), "N", escaped(after), " is there for only ",
          experts.count(), gap.empty() ? "" : cat("; missing: ", gap)));
}

// Stages that numbered their layers globally lose nothing, which shows where all layers are there.
void NameChecks::check_pipeline() {
  if (dialect_ != DcpDialect::kFsdpDtensor) return;
  i64 stages = facts_.pipeline_stages.value_or(1);
  for (const Object& o : store_.objects())
    if (auto stage = numbered(o.name, "rng_state.(")) stages = std::max(stages, stage->number + 1);
  if (stages <= 1) return;
  bool whole = facts_.layers && language_layers_ >= *facts_.layers;
  add(Code::kPipelineLoss, -1,
      cat("the run had ", stages, " pipeline stages; fsdp_dtensor keeps only one layer of each number",
          whole ? ", but all layers are there: the stages must have counted on" : ""),
      whole ? "" : kStagesLost, whole);
}

}  // namespace

std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunFacts& facts,
                                 NamesOf names) {
  return NameChecks(store, dialect, facts).run(names);
}

}  // namespace mckpt
