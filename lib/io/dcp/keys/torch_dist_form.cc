// Each name is looked at once, for a few words that only one form has.
#include "io/dcp/keys/torch_dist_form.h"

#include "core/base/text.h"
#include "io/dcp/keys/bridge_adapter.h"
#include "io/dcp/keys/key.h"

namespace mckpt::impl {
namespace {

bool has(std::string_view name, std::string_view word) { return name.find(word) != name.npos; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The text after the word; "" if the name does not have it.
std::string_view behind(std::string_view name, std::string_view word) {
  std::size_t at = name.find(word);
  return at == name.npos ? std::string_view() : name.substr(at + word.size());
}

std::string_view how_many(bool one, bool each) {
  if (one && each) return "one tensor, and a tensor each";
  return one ? "one tensor" : each ? "a tensor each" : "";
}

}  // namespace

void TorchDistForm::tensor(std::string_view name) {
  // One of several optimizers: "chained_1.optimizer.state.exp_avg.decoder..."
  std::string_view own = name.starts_with("chained_") ? behind(name, ".") : name;
  if (is_of_optimizer(own)) return optimizer(own);
  if (is_bridge_adapter(name)) {
    adapter_++;
    return;
  }
  model_ = true;
  if (std::string_view layer = behind(name, "decoder.layers."); !layer.empty())
    (is_digit(layer[0]) ? indexed_ : stacked_) = true;
  if (std::string_view expert = behind(name, ".experts.experts."); !expert.empty())
    (is_digit(expert[0]) ? experts_indexed_ : experts_stacked_) = true;
}

void TorchDistForm::object(std::string_view name) {
  extra_states_ |= has(name, "._extra_state/");
  optimizer(name);
}

void TorchDistForm::optimizer(std::string_view name) {
  std::string_view state = behind(name, "optimizer.state.");
  states_ |= !state.empty();
  main_ |= state.starts_with("fp32_param.");
  momentum_ |= state.starts_with("momentum_buffer.");
  reshardable_ |= state.starts_with("param.");
  std::string_view group = behind(name, "optimizer.distributed.dp_group_idx_");
  buckets_ |= has(group, ".bucket_idx_");
  gathered_ |= has(group, ".param_state");
}

std::vector<std::pair<std::string, std::string>> TorchDistForm::facts() const {
  std::vector<std::pair<std::string, std::string>> out;
  auto add = [&](std::string name, std::string_view value) {
    if (!value.empty()) out.emplace_back(std::move(name), value);
  };
  add("layers", how_many(stacked_, indexed_));
  add("experts", how_many(experts_stacked_, experts_indexed_));
  // Muon's states have no sharding type; its embeddings and norms are trained by Adam, and stored otherwise.
  std::vector<std::string_view> forms;
  if (states_)
    forms.push_back(momentum_      ? "by parameter"
                    : main_        ? "fully_sharded_model_space"
                    : reshardable_ ? "fully_reshardable"
                                   : "by parameter");
  if (buckets_) forms.push_back("dp_reshardable, by buckets of the run");
  if (gathered_) forms.push_back("dp_zero_gather_scatter, by ranks of the run");
  if (adapter_ > 0)
    add("adapter", cat(counted(adapter_, "tensor"), " of Megatron-Bridge, ",
                       model_ ? "not merged into the base" : "without its base"));
  std::string all;
  for (std::string_view form : forms) all += cat(all.empty() ? "" : ", and ", form);
  add("optimizer", all);
  if (model_ && !extra_states_) add("extra states", "none");
  return out;
}

}  // namespace mckpt::impl
