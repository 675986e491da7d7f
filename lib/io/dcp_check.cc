#include "io/dcp_check.h"

#include <algorithm>
#include <array>
#include <charconv>
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

class NameChecks {
 public:
  NameChecks(const Store& store, DcpDialect dialect, const RunFacts& facts)
      : store_(store), dialect_(dialect), facts_(facts) {}

  std::vector<Finding> run() {
    gather();
    for (const Entry& e : entries_) {
      check_half(e);
      check_moment(e);
    }
    check_group_meta();
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
  void check_half(const Entry& e);
  void check_moment(const Entry& e);
  void check_shape_of_state(const Entry& e);
  void check_group_meta();
  void check_layers();
  void check_layer_series(std::string_view before, const Series& layers);
  void check_experts();
  void check_pipeline();

  bool same_dims(i64 a, i64 b) const {
    return std::equal(store_.dims(a).begin(), store_.dims(a).end(), store_.dims(b).begin(),
                      store_.dims(b).end());
  }
  void add(Code code, i64 tensor, std::string message, bool warning = false) {
    findings_.add({.code = code,
                   .tensor = tensor < 0 ? std::string() : std::string(store_.name(tensor)),
                   .message = std::move(message),
                   .warning = warning});
  }
  // By section and field: the model's under {kModel, ""}, moments under {kState, "exp_avg"}.
  const Tensors& section(Section s, std::string_view field) { return sections_[{s, field}]; }

  const Store& store_;
  DcpDialect dialect_;
  const RunFacts& facts_;
  std::vector<Entry> entries_;
  std::map<std::pair<Section, std::string_view>, Tensors> sections_;
  std::vector<std::string_view> group_meta_;  // parameters, in the order of the file
  Findings findings_;
};

void NameChecks::gather() {
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    DcpKey key = split_key(dialect_, store_.name(t));
    if (key.section == Section::kOther) continue;
    entries_.push_back({key, t});
    sections_[{key.section, key.field}].emplace(key.parameter, t);
  }
  for (const Object& o : store_.objects()) {
    DcpKey key = split_key(dialect_, o.name);
    if (key.section == Section::kGroupMeta && (group_meta_.empty() || group_meta_.back() != key.parameter))
      group_meta_.push_back(key.parameter);
  }
  std::sort(group_meta_.begin(), group_meta_.end());
  group_meta_.erase(std::unique(group_meta_.begin(), group_meta_.end()), group_meta_.end());
}

void NameChecks::check_half(const Entry& e) {
  char half;
  std::string_view stem = unsplit(e.key.parameter, half);
  if (half == 0) return;
  const Tensors& same = section(e.key.section, e.key.field);
  std::string partner = cat(stem, half == 'w' ? "_v" : "_w");
  auto other = same.find(partner);
  if (other == same.end())
    add(Code::kCounterpart, e.tensor, cat("the other half, '", escaped(partner), "', is not there"));
  else if (half == 'w' && !same_dims(e.tensor, other->second))
    add(Code::kCounterpart, e.tensor,
        cat("its shape ", dims_to_string(store_.dims(e.tensor)), " differs from ",
            dims_to_string(store_.dims(other->second)), " of the other half, '", escaped(partner), "'"));
}

void NameChecks::check_moment(const Entry& e) {
  if (e.key.section != Section::kState || (e.key.field != "exp_avg" && e.key.field != "exp_avg_sq")) return;
  std::string_view other = e.key.field == "exp_avg" ? "exp_avg_sq" : "exp_avg";
  if (!section(Section::kState, other).contains(e.key.parameter))
    add(Code::kCounterpart, e.tensor, cat("its parameter has no ", other));
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
          dims_to_string(store_.dims(parameter->second))));
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
      add(Code::kCounterpart, e.tensor, "its parameter has no optimizer.param_to_group_meta", true);
    with_state.insert(std::move(name));
  }
  if (with_state.empty()) return;  // saved before the first step
  for (std::string_view parameter : group_meta_)
    if (!with_state.contains(fused_name(parameter)))
      findings_.add(
          {.code = Code::kCounterpart,
           .tensor = std::string(parameter),
           .message = "optimizer.param_to_group_meta names the parameter, but it has no optimizer state"});
}

void NameChecks::check_layers() {
  std::map<std::string_view, Series> blocks;
  for (const Entry& e : entries_) {
    if (e.key.section != Section::kModel) continue;
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
  if (of_language && facts_.layers && layers.count() < *facts_.layers)
    add(facts_.pipeline_stages.value_or(1) > 1 ? Code::kPipelineLoss : Code::kNumberGap, layers.tensor,
        cat("the run had ", *facts_.layers, " layers, but only ", layers.count(), " are stored"));
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
    if (experts.count() == most) continue;
    std::string gap = experts.missing();
    add(Code::kNumberGap, experts.tensor,
        cat("there are ", most, " experts, but ", escaped(kind.first), "N", escaped(kind.second),
            " is there for only ", experts.count(), gap.empty() ? "" : cat("; missing: ", gap)));
  }
}

void NameChecks::check_pipeline() {
  if (dialect_ != DcpDialect::kFsdpDtensor) return;
  i64 stages = facts_.pipeline_stages.value_or(1);
  for (const Object& o : store_.objects())
    if (auto stage = numbered(o.name, "rng_state.(")) stages = std::max(stages, stage->number + 1);
  if (stages > 1)
    add(Code::kPipelineLoss, -1,
        cat("the run had ", stages, " pipeline stages; fsdp_dtensor keeps only one layer of each number"));
}

// The field of a Namespace or of a dict as a number; nothing when it is not one.
std::optional<i64> number_field(const PickleValue& args, std::string_view name) {
  const PickleValue* value =
      args.is(PickleValue::Kind::kObject) ? args.as_object().field(name) : args.find(name);
  if (value == nullptr || !value->is_int()) return std::nullopt;
  return value->as_int();
}

// One line "  key: 12" of the section below "model:".
std::optional<i64> yaml_number(std::string_view line, std::string_view key) {
  if (!line.starts_with("  ")) return std::nullopt;
  line.remove_prefix(2);
  if (!line.starts_with(key) || !line.substr(key.size()).starts_with(": ")) return std::nullopt;
  line.remove_prefix(key.size() + 2);
  i64 number = 0;
  auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() && end == line.data() + line.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

RunFacts run_facts(const PickleValue& args) {
  RunFacts facts;
  facts.layers = number_field(args, "num_layers");
  facts.experts = number_field(args, "num_experts");
  facts.pipeline_stages = number_field(args, "pipeline_model_parallel_size");
  facts.tensor_ranks = number_field(args, "tensor_model_parallel_size");
  facts.expert_tensor_ranks = number_field(args, "expert_tensor_parallel_size");
  return facts;
}

RunFacts run_facts_of_yaml(std::string_view text) {
  RunFacts facts;
  bool in_model = false;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    if (line[0] != ' ' && line[0] != '#' && line[0] != '-') in_model = line == "model:";
    if (!in_model) continue;
    if (auto n = yaml_number(line, "num_layers")) facts.layers = n;
    if (auto n = yaml_number(line, "num_moe_experts")) facts.experts = n;
    if (auto n = yaml_number(line, "pipeline_model_parallel_size")) facts.pipeline_stages = n;
    if (auto n = yaml_number(line, "tensor_model_parallel_size")) facts.tensor_ranks = n;
    if (auto n = yaml_number(line, "expert_tensor_parallel_size")) facts.expert_tensor_ranks = n;
  }
  return facts;
}

std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunFacts& facts) {
  return NameChecks(store, dialect, facts).run();
}

}  // namespace mckpt
