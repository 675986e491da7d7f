// Counts layers and experts by the numbers in the names of tensors.
#include "io/dcp/check/counts.h"
#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/dcp/keys/attention_kinds.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/sizes.h"
#include "io/store/findings.h"
#include "io/store/store.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace mckpt::impl {
namespace {

using Section = DcpKey::Section;

// The numbers of the layers below one name, or of the experts below one.
struct Series {
  std::vector<i64> numbers;
  i64 tensor = -1;  // one of those that showed them

  void add(i64 number, i64 tensor_of_it) {
    if (numbers.empty() || numbers.back() != number) numbers.push_back(number);
    tensor = tensor_of_it;
  }
  // Sorts the numbers; needed before the questions below.
  void settle() {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  }
  i64 count() const { return static_cast<i64>(numbers.size()); }
  // Whether no number is left out: 0, 1, 2, ... pre: settled.
  bool from_zero() const { return count() - 1 == numbers.back(); }
  // "3, 4 and 12": the first numbers that are left out below the largest. pre: settled.
  std::string missing() const {
    std::vector<std::string> out;
    i64 next = 0;
    for (i64 n : numbers) {
      for (; next < n && out.size() < 10; next++) out.push_back(cat(next));
      next = checked_add(n, 1, "the number of a layer");
    }
    return listed(out, 9);
  }
};

constexpr const char* kBiasesLost =
    "Megatron numbers the weights of experts globally, but not their biases; save with expert_model_parallel_size 1, or as torch_dist, to keep all";
constexpr const char* kMixersLacking = "the training run that loads it has to initialise these layers";
constexpr const char* kStagesLost =
    "save with Megatron's ckpt_format torch_dist, or without pipeline parallelism";

// The three checks; used once. check_pipeline() uses the number of layers that check_layers() found.
class CountChecks {
 public:
  CountChecks(const Store& store, DcpDialect dialect, const RunSizes& facts,
              std::span<const DcpEntry> entries, Findings& findings)
      : store_(store), dialect_(dialect), facts_(facts), entries_(entries), findings_(findings) {}

  void run() {
    check_layers();
    check_stacked_layers();
    check_experts();
    check_routers();
    check_pipeline();
  }

 private:
  void check_layers();
  void check_layer_series(std::string_view before, const Series& layers);
  bool lacks_all_mixers(const Series& layers) const;
  void check_stacked_layers();
  void check_experts();
  void check_routers();
  void check_expert_series(std::string_view before, std::string_view after, const Series& experts, i64 most);
  void check_pipeline();

  void add(Code code, i64 tensor, std::string message, const char* help = "", bool warning = false) {
    findings_.add(store_, code, tensor, std::move(message), help, warning);
  }

  const Store& store_;
  DcpDialect dialect_;
  const RunSizes& facts_;
  std::span<const DcpEntry> entries_;
  Findings& findings_;
  i64 language_layers_ = 0;  // that have tensors
};

// "3 layers", or "no layers" where the args have None.
std::string said(i64 count, std::string_view noun) {
  return count > 0 ? counted(count, noun) : cat("no ", noun, "s");
}

bool is_of_mtp(std::string_view layers) {
  return layers == "mtp.layers." || layers == "language_model.mtp.layers.";
}

bool is_of_language(std::string_view layers) {
  return layers == "decoder.layers." || layers == "language_model.decoder.layers.";
}

// Every block of layers ("decoder.layers.", "vision_model.decoder.layers.") is one series.
void CountChecks::check_layers() {
  std::map<std::string_view, Series> blocks;
  std::set<std::string_view> of_modules;
  for (const DcpEntry& e : entries_) {
    if (e.key.section != Section::kModel || e.key.parameter.ends_with("_extra_state")) continue;
    // Adapters may sit in any choice of layers.
    if (e.key.parameter.find("adapter") != e.key.parameter.npos) return;
    if (auto layer = numbered(e.key.parameter, "layers.")) {
      blocks[layer->before].add(layer->number, e.tensor);
      // "layers.3.weight" is a module of a sequence, some of which have no parameters.
      if (layer->after.find('.', 1) != layer->after.npos) of_modules.insert(layer->before);
    }
  }
  for (auto& [before, layers] : blocks) {
    if (!of_modules.contains(before) && !is_of_language(before)) continue;
    layers.settle();
    check_layer_series(before, layers);
  }
}

// Whether the missing layers are exactly the Mamba layers of the pattern. Such a checkpoint was made from a
// GPT model, which has none; no single layer was lost.
bool CountChecks::lacks_all_mixers(const Series& layers) const {
  if (facts_.mixers.empty() || !facts_.layers) return false;
  std::vector<i64> lacking;
  for (i64 l = 0; l < *facts_.layers; l++)
    if (!std::binary_search(layers.numbers.begin(), layers.numbers.end(), l)) lacking.push_back(l);
  return lacking == facts_.mixers && layers.numbers.back() < *facts_.layers &&
         std::none_of(entries_.begin(), entries_.end(), [](const DcpEntry& e) {
           return e.key.parameter.find(".mixer.") != e.key.parameter.npos;
         });
}

// The number of layers that the run had is known for the language model and for MTP.
void CountChecks::check_layer_series(std::string_view before, const Series& layers) {
  const bool of_language = is_of_language(before);
  if (of_language && lacks_all_mixers(layers)) {
    language_layers_ = *facts_.layers;
    return add(
        Code::kNumberGap, layers.tensor,
        "the pattern of the training run has M layers, but no tensor of them is stored, as in a checkpoint that was made of a GPT model",
        kMixersLacking, true);
  }
  if (layers.count() <= layers.numbers.back())
    add(Code::kNumberGap, layers.tensor,
        cat("the layers ", escaped(before), "0 to ", layers.numbers.back(),
            " have gaps; no tensors are stored of ", layers.missing()));
  if (of_language) language_layers_ = layers.count();
  if (of_language && facts_.layers && layers.count() < *facts_.layers)
    add(facts_.pipeline_stages.value_or(1) > 1 ? Code::kPipelineLoss : Code::kNumberGap, layers.tensor,
        cat("the training run had ", counted(*facts_.layers, "layer"), ", but only ", layers.count(),
            layers.count() == 1 ? " is stored" : " are stored"),
        facts_.pipeline_stages.value_or(1) > 1 ? kStagesLost : "");
  if (of_language && facts_.layers && layers.count() > *facts_.layers)
    add(Code::kNumberGap, layers.tensor,
        cat("the args of the training run say ", said(*facts_.layers, "layer"), ", but ", layers.count(),
            " are stored"));
  if (is_of_mtp(before) && facts_.mtp_layers && layers.count() != *facts_.mtp_layers)
    add(Code::kNumberGap, layers.tensor,
        cat("the args of the training run say ", said(*facts_.mtp_layers, "MTP layer"), ", but ",
            layers.count(), layers.count() == 1 ? " is stored" : " are stored"));
}

// The name of a parameter of all layers, or of all layers of one kind, which is left out.
std::string name_of_stack(std::string_view parameter) {
  for (std::string_view kind : {kSlidingKind, kGlobalKind}) {
    const std::string module = cat(kAttentionModule, kind, ".");
    if (const std::size_t at = parameter.find(module); at != parameter.npos)
      return cat(parameter.substr(0, at), kAttentionModule, ".", parameter.substr(at + module.size()));
  }
  return std::string(parameter);
}

// Where torch_dist has the same parameter of all layers in one tensor,
// "decoder.layers.mlp.linear_fc1.weight", its first dimension counts the layers. Where two kinds of layers
// are stacked apart, the two dimensions add up to it.
void CountChecks::check_stacked_layers() {
  if (dialect_ != DcpDialect::kTorchDist || !facts_.layers) return;
  constexpr std::string_view kLayers = "decoder.layers.";
  struct Stack {
    i64 layers, tensor;  // of its first kind
  };
  std::vector<Stack> stacks;
  std::map<std::string, std::size_t> stack_of;
  for (const DcpEntry& e : entries_) {
    if (e.key.section != Section::kModel) continue;
    const std::size_t at = e.key.parameter.find(kLayers), end = at + kLayers.size();
    if (at == std::string_view::npos || !is_of_language(e.key.parameter.substr(0, end))) continue;
    if (end == e.key.parameter.size() || (e.key.parameter[end] >= '0' && e.key.parameter[end] <= '9'))
      continue;
    std::span<const i64> dims = store_.dims(e.tensor);
    if (dims.empty()) continue;
    const auto [at_stack, fresh] = stack_of.try_emplace(name_of_stack(e.key.parameter), stacks.size());
    if (fresh) stacks.push_back({0, e.tensor});
    i64& layers = stacks[at_stack->second].layers;
    layers = checked_add(layers, dims[0], "the number of layers");
  }
  for (const Stack& stack : stacks)
    if (stack.layers != *facts_.layers)
      return add(Code::kNumberGap, stack.tensor,
                 cat("the args of the training run say ", said(*facts_.layers, "layer"), ", but ",
                     stack.layers, " are stored"));
}

// A router has a row for each expert, whatever the form of the experts.
void CountChecks::check_routers() {
  if (!facts_.experts) return;
  for (const DcpEntry& e : entries_) {
    if (e.key.section != Section::kModel || !e.key.parameter.ends_with(".mlp.router.weight")) continue;
    std::span<const i64> dims = store_.dims(e.tensor);
    if (dims.size() < 2 || dims[dims.size() - 2] == *facts_.experts) continue;
    return add(Code::kNumberGap, e.tensor,
               cat("the args of the training run say ", said(*facts_.experts, "expert"),
                   ", but the router has ", dims[dims.size() - 2]));
  }
}

void CountChecks::check_experts() {
  // One series for each tensor that an expert has, in each layer: the number is what sets them apart.
  std::map<std::pair<std::string_view, std::string_view>, Series> kinds;
  i64 most = facts_.experts.value_or(0);
  for (const DcpEntry& e : entries_) {
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

// Biases 0 to n-1 of a multiple of n experts are the known fault of Megatron's renumbering; any other gap
// is reported as it is.
void CountChecks::check_expert_series(std::string_view before, std::string_view after, const Series& experts,
                                      i64 most) {
  if (before.ends_with(".bias") && experts.from_zero() && most % experts.count() == 0)
    return add(Code::kNumberGap, experts.tensor,
               cat("the biases of experts were not renumbered: each of ", most / experts.count(),
                   " expert-parallel ranks wrote its biases as ", escaped(before), "0 to ",
                   experts.count() - 1, ", over those of the other ranks; the biases of ",
                   most - experts.count(), " of ", most, " experts are lost"),
               kBiasesLost);
  std::string gap = experts.missing();
  add(Code::kNumberGap, experts.tensor,
      cat("the model has ", most, " experts, but only ", experts.count(),
          experts.count() == 1 ? " of them has " : " of them have ", escaped(before), "N", escaped(after),
          gap.empty() ? "" : cat("; missing: ", gap)));
}

// fsdp_dtensor names layers by their number in the stage. Where the stages numbered them globally nothing
// is lost, and that shows by all layers being there. The number of stages comes from the args, or from the
// names of the random states, which contain it: "rng_state.(1, 0)".
void CountChecks::check_pipeline() {
  if (dialect_ != DcpDialect::kFsdpDtensor) return;
  i64 stages = facts_.pipeline_stages.value_or(1);
  for (const Object& o : store_.objects())
    if (auto stage = numbered(o.name, "rng_state.("))
      stages = std::max(stages, checked_add(stage->number, 1, "the number of stages"));
  if (stages <= 1) return;
  bool whole = facts_.layers.value_or(0) > 0 && language_layers_ >= *facts_.layers;
  add(Code::kPipelineLoss, -1,
      cat("the training run had ", stages,
          " pipeline stages; fsdp_dtensor keeps only one layer of each number",
          whole ? ", but all layers are stored: their numbers must have continued from stage to stage" : ""),
      whole ? "" : kStagesLost, whole);
}

}  // namespace

void check_counts(const Store& store, DcpDialect dialect, const RunSizes& facts,
                  std::span<const DcpEntry> entries, Findings& findings) {
  CountChecks(store, dialect, facts, entries, findings).run();
}

}  // namespace mckpt::impl
