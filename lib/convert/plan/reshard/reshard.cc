// Plans a resharding: the tensors by Resharding, the facts of the run by the writer of fsdp_dtensor or, for a
// state dict of v2, by the writer of its list of groups.
#include "convert/plan/reshard/reshard.h"

#include <algorithm>

#include "convert/dialects/fsdp/packed_by.h"
#include "convert/dialects/fsdp/write_facts.h"
#include "convert/dialects/ranks/states.h"
#include "convert/dialects/state_dict/write_groups.h"
#include "convert/facts/kept_args.h"
#include "convert/facts/megatron_args.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/plan/iteration.h"
#include "convert/plan/reshard/plain.h"
#include "convert/plan/reshard/resharding.h"
#include "convert/plan/result_ranks.h"
#include "convert/plan/run_config.h"
#include "convert/plan/setting_identity.h"
#include "convert/plan/target.h"
#include "convert/plan/vocab_change.h"
#include "core/base/error.h"
#include "core/hybrid/spelled.h"
#include "hf/model.h"
#include "io/dcp/run/args.h"
#include "io/store/store.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Kept names have no line: they are another mode, "reshard by key".
PlanIdentity settings_of(const ReshardOptions& options) {
  PlanIdentity text("reshard", MCKPT_VERSION);
  set_run(text, options.grid, options.fsdp, options.frozen);
  set_vocab(text, options.vocab);
  const ReshardSourceOptions& from = options.from;
  text.set("iteration", options.iteration.value_or(0)).set("weights_only", from.weights_only);
  text.set("any_model", from.checkpoint.any_model).set("fsdp_module", options.modules.text());
  text.set("rank_states", from.rank_states.has_value());
  text.set("source_tp", from.checkpoint.source_tp.value_or(0));
  text.set("source_etp", from.checkpoint.source_etp.value_or(0));
  if (from.checkpoint.spelling) text.set("spelling", to_string(*from.checkpoint.spelling));
  text.set("source_ep", from.source_ep.value_or(0)).set("source_hsdp", from.source_hsdp.value_or(0));
  return text;
}

NormNames norms_of(const std::optional<Spelling>& given) {
  if (!given) return NormNames::kOfAll;
  return has_unfused_norms(*given) ? NormNames::kOfMegatron : NormNames::kOfTransformerEngine;
}

class ReshardTarget final : public Target {
 public:
  ReshardTarget(const Opened& source, const ReshardOptions& options);
  void write_frame(const FramePlace& to) const override { impl::write_frame(plan_->layout, to); }

 private:
  WrittenFacts lay_out(const ReshardOptions& options);
  WrittenFacts write_facts(const ReshardOptions& options);
  void add_notes(const Notes& of_objects);
  void add_rank_states(const Opened& source);

  Resharding r_;
  std::optional<FsdpPlan> plan_;
  std::vector<i32> source_of_;  // by key of the layout: a tensor of the source
  std::optional<PlannedChunks> chunks_;
  std::optional<FusedTables> fused_;
};

ReshardTarget::ReshardTarget(const Opened& source, const ReshardOptions& options)
    : r_(*source.sharded, options) {
  add_rank_states(source);
  r_.match_states();
  options.frozen.refuse_unmatched(r_.target_keys().parameters());
  WrittenFacts written = lay_out(options);
  add_notes(written.notes);
  source_of_ = r_.source_of(plan_->layout);
  chunks_.emplace(plan_->layout, source_of_);
  fused_.emplace(r_.fused_tensors(*plan_, source_of_));
  const Store& on_disk = source.on_disk();
  if (options.rank == 0) object_files = &on_disk;
  read = &r_.source();
  job = std::make_unique<ChunkJob>(reshard_job(*read, *chunks_, &*fused_, std::move(written.records)));
  proof = r_.proof(plan_->layout);
  proof.rule = [this](i64, i64 tensor) { return r_.rule_of(*fused_, tensor); };
  proof.left_out = [this](i64 tensor) { return r_.left_out(tensor); };
  dropped_objects = written.left_out;
  FsdpFolder::Beside others;
  others.files = files_beside(source.store(), files_with_grid(source.store(), options.grid));
  others.assets = r_.from().assets();
  // The entries of torch_dist's common state are objects now.
  std::erase_if(others.files.copies, [](const SideFile& file) { return file.name == kCommonFile; });
  std::optional<i64> iteration = iteration_of_result(
      on_disk, options.iteration, !r_.v2() && r_.from().has_states(),
      [&] { return source.sharded->facts().iteration(); }, notes);
  identified.result = plan_iteration(*this, plan_->layout, options.target, iteration, std::move(others));
  identified.settings = settings_of(options), identified.source = r_.from().identity();
  set_run(*this, fsdp_format(options.fsdp), options.grid, plan_->layout);
}

WrittenFacts ReshardTarget::lay_out(const ReshardOptions& options) {
  WrittenFacts out;
  RunFacts facts;
  SharedObjects groups;
  if (r_.v2()) {
    const ReshardSource& from = r_.from();
    const SavedPlaces places{[&](const std::string& object) { return from.named(object); },
                             [&](std::string_view object) { return from.place_of(object); }};
    facts = from.facts();
    groups = group_list(facts, r_.target_keys(), r_.states(), places, from.weights_only(), out);
  }
  plan_.emplace(
      r_.target_keys(), r_.run(), [&](std::vector<ModelParameter>& p) { r_.store_as_source(p); }, r_.states(),
      groups);
  r_.carry_tensors(plan_->layout);
  return r_.v2() ? std::move(out) : write_facts(options);
}

WrittenFacts ReshardTarget::write_facts(const ReshardOptions& options) {
  const ReshardSource& from = r_.from();
  const HfModel& model = r_.model().model();
  const FsdpRun& run = r_.run();
  const i64 iteration =
      options.iteration ? *options.iteration : iteration_of(r_.model().store().root()).value_or(0);
  const MegatronArgs made = fsdp_args(*model.map, model.config.run, run, iteration, from.has_states());
  const FsdpResult result{.map = r_.model().map(),
                          .grid = run.grid,
                          .vocab_rows = run.run.vocab_rows,
                          .source_rows = r_.model().setup().vocab_rows,
                          .iteration = options.iteration,
                          .weights_only = from.weights_only(),
                          .other_format = r_.model().of_other_form(),
                          .pattern = r_.pattern(),
                          .made = from.any_model() ? nullptr : &made,
                          .made_iteration = iteration,
                          .norms = norms_of(from.spelling())};
  WrittenFacts out;
  const RunFacts facts = facts_for_fsdp(from.facts(), result, out);
  out.records =
      write_fsdp_facts(facts, plan_->layout, [&](const std::string& object) { return from.named(object); });
  if (from.rank_states())
    if (std::vector<std::string> names = from.rank_states()->not_taken(); !names.empty())
      out.notes.note(cat("the result has no place for these objects of the ranks' files: ", listed(names)));
  return out;
}

void ReshardTarget::add_rank_states(const Opened& source) {
  const RankStates* states = r_.from().rank_states();
  if (!states) return;
  oddities.push_back({states->root(), states->findings()});
  folders = source.folders;
  folders.push_back(states->root());
}

void ReshardTarget::add_notes(const Notes& of_objects) {
  notes.append(r_.notes);
  if (i64 parts = r_.model().on_disk().tensor_count(), whole = r_.source().tensor_count();
      r_.v2() && parts > whole)
    notes.note(cat("parts   ", counted(parts, "tensor"), " on disk are counted as ", whole,
                   ", fused parameters and their states whole"));
  notes.append(of_objects);
}

// The result is packed as the source if boxes show that its run had weights in 8 bits, which no args tell.
// Returns a note; "" for another source. Throws kUsage where the result cannot be packed so.
std::string keep_fp8(const Store& source, ReshardOptions& o) {
  const std::optional<PackedBy> by = o.keep_fp8 ? packed_by(source) : std::nullopt;
  if (!by || !by->fits() || by->recipes.empty()) return "";
  if (o.from.checkpoint.any_model)
    return "packed  the source is packed as by a run with weights in 8 bits, the result as by one without";
  const bool v2 = o.fsdp.engine == Engine::kV2;
  const bool blocks = std::ranges::count(by->recipes, Fp8Recipe::kMxfp8) > 0;
  if (v2 ? !blocks : o.fsdp.strategy != Strategy::kOptimGradsParams)
    throw Error(
        Code::kUsage,
        "the boxes of the source are those of weights in 8 bits, and the run of the result cannot have them")
        .file(source.root())
        .expected(v2 ? "matrices of whole blocks of 32 rows and columns, for MXFP8"
                     : "`strategy` optim_grads_params")
        .help("`fp8_recipe` none packs as a run without them");
  o.fsdp.fp8 = v2 ? Fp8Recipe::kMxfp8 : by->recipes[0];
  return "packed  as the source is, by a run with weights in 8 bits; `fp8_recipe` none packs as one without";
}

Conversion plan_known(std::unique_ptr<Store> store, ReshardOptions options) {
  const std::string kept = keep_fp8(*store, options);
  const OpenAs how{.source = options.source, .how = opening_of(options.from)};
  return plan(open_sharded(std::move(store), how), [&](Opened& source) {
    refuse_many_ranks(options.grid.world(), source.store());
    auto target = std::make_unique<ReshardTarget>(source, options);
    if (!kept.empty()) target->notes.note(kept);
    return target;
  });
}

}  // namespace

void refuse_contradictions(const ReshardOptions& o) {
  refuse_contradictions(o.from);
  refuse_unlike_v2(o.grid, o.fsdp);
  bool v2 = o.fsdp.saves_state_dict();
  if (!o.modules.empty() && (!v2 || !o.from.checkpoint.any_model))
    throw Error(Code::kUsage, "`fsdp_module` is for `engine` v2 and models without tables")
        .help("give `any_model` and `engine` v2 too");
  if (!v2) return;
  if (o.from.keep_names)
    throw Error(Code::kUsage, "`engine` v2 gives the tensors its own names, `keep_names` keeps theirs")
        .help("leave one of them out");
  if (o.from.rank_states)
    throw Error(Code::kUsage, "states in files of the ranks are those of a run of `engine` v1")
        .help("reshard with `rank_states` first, and the result to `engine` v2");
}

Conversion plan_sharded_to_fsdp(std::unique_ptr<Store> store, const ReshardOptions& options) {
  refuse_contradictions(options);
  bool v2 = options.fsdp.saves_state_dict();
  if (is_plain_source(*store, options.from)) {
    std::vector<Finding> damage =
        refuse_damage(*store, parts_of(options.from), options.from.checkpoint.accept);
    if (v2)
      throw Error(Code::kUnknownFormat, "the names follow no convention, so they have no counterparts in v2")
          .file(options.source)
          .help("leave out `engine`");
    refuse_unknown_vocab(*store, options.vocab);
    return plan_plain_reshard(open_plain(std::move(store), options.source, std::move(damage)), options);
  }
  ReshardOptions how = options;
  how.from.checkpoint.names = v2 ? KeyNames::kWhole : KeyNames::kOfFsdp;
  return plan_known(std::move(store), std::move(how));
}

}  // namespace mckpt::impl
