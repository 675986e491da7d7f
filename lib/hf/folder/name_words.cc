#include "hf/folder/name_words.h"

#include <algorithm>

#include "core/base/text.h"
#include "io/dcp/keys/key.h"

namespace mckpt::impl {
namespace {

// The first part of names outside every model, beside names of optimizers (is_of_optimizer). A number may
// follow.
constexpr std::string_view kBeside[] = {"param_groups",
                                        "lr_scheduler",
                                        "lr_schedulers",
                                        "scheduler",
                                        "schedulers",
                                        "opt_param_scheduler",
                                        "train_state",
                                        "trainer_state",
                                        "dataloader",
                                        "data_loader",
                                        "rng",
                                        "rng_state",
                                        "rng_states",
                                        "torch_rng_state",
                                        "cuda_rng_state",
                                        "random_states",
                                        "extra_state",
                                        "extra_states",
                                        "grad_scaler",
                                        "loss_scaler",
                                        "rerun_state_machine"};
// Whole names of counters.
constexpr std::string_view kCounters[] = {"step",  "steps",      "global_step", "iteration",
                                          "epoch", "epochs_run", "seed",        "consumed_samples"};
// The last part of what a file of an optimizer alone has behind "state.".
constexpr std::string_view kMoments[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer",
                                         "step"};
// Parts of the names of states, beside the moments.
constexpr std::string_view kOfStates[] = {"state", "param_groups", "distributed"};
// The first part of names of whole models.
constexpr std::string_view kOfWholeModels[] = {"model.",  "lm_head.", "tok_embeddings.", "backbone.",
                                               "module.", "score.",   "_forward_module."};
// The last part of names.
constexpr std::string_view kComputed[] = {"inv_freq", "original_inv_freq", "_extra_state"};
constexpr std::string_view kWrappers[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }
// "actor_optimizer", as programs with several models name their optimizers.
bool is_named_optimizer(std::string_view word) {
  return word.ends_with("_optimizer") || word.ends_with("_optim");
}
std::string_view first_part(std::string_view name) { return name.substr(0, name.find_first_of(".:/")); }

}  // namespace

bool is_beside_model(std::string_view name) {
  if (is_of_optimizer(name) || has(kBeside, section_word(name)) || has(kCounters, name)) return true;
  return first_part(name) == "state" && has(kMoments, last_part(name));
}

bool is_in_optimizer(std::string_view name) {
  while (!is_of_optimizer(name) && !is_named_optimizer(section_word(name))) {
    const std::size_t end = name.find_first_of(".:/");
    if (end == name.npos) return false;
    name.remove_prefix(end + 1);
  }
  return true;
}

bool is_of_states(std::string_view name) { return has(kMoments, last_part(name)) || is_in_optimizer(name); }

bool is_certain_state(std::string_view name) {
  if (!is_of_states(name)) return false;
  bool certain = false;
  each_part(name, [&](std::string_view part) {
    certain |= has(kOfStates, part) || (part.size() < name.size() && has(kMoments, part));
  });
  return certain;
}

bool is_of_whole_model(std::string_view name) {
  return std::ranges::any_of(kOfWholeModels, [&](std::string_view first) { return name.starts_with(first); });
}

bool is_computed(std::string_view name) { return has(kComputed, last_part(name)); }

bool is_computed_by_all(std::string_view name) {
  const std::string_view last = last_part(name);
  if (!is_computed(name) || last == "_extra_state" || last.size() == name.size()) return is_computed(name);
  return last_part(name.substr(0, name.size() - last.size() - 1)) == "rotary_emb";
}

// `module` is a wrapper too where it is directly inside of one: in front of everything, others decide. Empty
// parts are parts like others: ".weight" begins with one.
std::string without_wrappers(std::string_view name) {
  std::string out;
  bool wrapped = false, begun = false;
  each_part(name, [&](std::string_view part) {
    wrapped = has(kWrappers, part) || (wrapped && part == "module" && begun);
    if (wrapped) return;
    out += cat(begun ? "." : "", part);
    begun = true;
  });
  return out.empty() ? std::string(name) : out;
}

}  // namespace mckpt::impl
