#include "convert/open/other_model.h"

#include <algorithm>
#include <string>

#include "convert/facts/unlike_args.h"
#include "convert/open/source_model.h"
#include "core/base/error.h"
#include "hf/model.h"
#include "io/store/finding.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMost = 3;

Error other_model(const Store& store, const HfModel& model, const UnlikeArgs& unlike, bool sizes) {
  std::vector<std::string> expected, found, notes;
  for (const UnlikeArg& u : unlike.all) {
    const bool of_size = u.unlike == Unlike::kSizes || u.unlike == Unlike::kShown;
    if (sizes ? !of_size : u.unlike != Unlike::kBytes) continue;
    if (expected.size() == kMost) continue;
    expected.push_back(cat(u.name, " ", u.in_run));
    found.push_back(cat(u.name, " ", u.in_config));
    if (!u.means.empty()) notes.push_back(cat(u.name, " says ", u.means));
  }
  const bool is_own = model.path == own_assets(store);
  Error e(Code::kContradiction, is_own ? "config.json, which is kept with the checkpoint, is of another model"
                                       : "the assets are of another model than the checkpoint");
  e.file(cat(model.path, "/config.json"))
      .expected(cat(listed(expected, kMost), ", as in ", unlike.where, " of ", escaped(store.root(), 4096)))
      .found(listed(found, kMost));
  for (std::string& note : notes) e.note(std::move(note));
  return e.help(cat("give the folder of the checkpoint's own model with `assets`",
                    sizes ? std::string()
                          : cat("; if the facts in ", unlike.where, " are wrong, `accept` ",
                                code_name(Code::kContradiction), " goes by config.json")));
}

// "rotary_base is 1000000 in the args of the run; config.json says 10000 (rope_theta)".
Finding warning_of(const UnlikeArg& u, const UnlikeArgs& unlike, const HfModel& model) {
  Finding out{.code = Code::kContradiction, .file = cat(model.path, "/config.json"), .warning = true};
  out.message =
      cat(u.name, " is ", u.in_run, " in ", unlike.where, " of the run, and ", u.in_config, " by config.json",
          u.key.empty() ? std::string() : cat(" (", u.key, ")"), u.why.empty() ? "" : ": ", u.why);
  out.help = "a model with this config.json computes something else than the run did, if the run is right";
  return out;
}

}  // namespace

std::vector<Finding> refuse_other_model(const Store& store, const HfModel& model,
                                        std::span<const Code> accepted) {
  const UnlikeArgs unlike = unlike_args(store, model);
  auto is = [](Unlike kind) { return [kind](const UnlikeArg& u) { return u.unlike == kind; }; };
  if (std::ranges::any_of(unlike.all, is(Unlike::kSizes))) throw other_model(store, model, unlike, true);
  const bool accepts = std::ranges::find(accepted, Code::kContradiction) != accepted.end();
  if (!accepts && std::ranges::any_of(unlike.all, is(Unlike::kBytes)))
    throw other_model(store, model, unlike, false);
  std::vector<Finding> out;
  for (const UnlikeArg& u : unlike.all)
    if (u.unlike != Unlike::kShown) out.push_back(warning_of(u, unlike, model));
  return out;
}

void add_config_fact(Store& store) {
  try {
    const std::string assets = own_assets(store);
    if (assets.empty()) return;
    const HfModel model = open_hf_model(assets, {.files = store.opening(), .leave_unlike_copies = true});
    const UnlikeArgs unlike = unlike_args(store, model);
    std::string text;
    for (const UnlikeArg& u : unlike.all)
      if (u.unlike != Unlike::kShown)
        text += cat(text.empty() ? "" : "; ", u.name, " ", u.in_run, ", not ", u.in_config);
    if (!text.empty()) store.add_fact("against config.json", cat(unlike.where, ": ", text));
  } catch (const Error& e) {  // `verify` says what is wrong with the config or the args
    if (e.code() == Code::kInterrupted) throw;
  }
}

}  // namespace mckpt::impl
