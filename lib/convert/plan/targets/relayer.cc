// Plans a relayering. Names are translated over the physical layers of the pattern: the names of the source's
// form are read, and the names of the result's form are written. The steps:
//
//   open the source   -->   pattern, from the options or the args   -->   forms of source and result
//       -->   migration (which tensor, which name)   -->   new args   -->   layout and job
#include "convert/plan/targets/relayer.h"

#include "convert/facts/megatron_args.h"
#include "convert/facts/pattern_args.h"
#include "convert/facts/source_args.h"
#include "convert/jobs/chunk_job.h"
#include "convert/layers/layer_forms.h"
#include "convert/layers/moved_chunks.h"
#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/plan/iteration.h"
#include "convert/plan/target.h"
#include "core/base/error.h"
#include "core/hybrid/keys.h"
#include "core/hybrid/kind.h"
#include "core/hybrid/names.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "io/dcp/check/check.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using GroupNames = RelayerOptions::GroupNames;
using GptLayers = RelayerOptions::GptLayers;

// The source with its pattern, and the migration of its names. The constructor does all planning except the
// layout.
class Relayering {
 public:
  Relayering(const Store& store, const RelayerOptions& options);

  // The objects of the result: those with new args are written into the layout, the others become tasks.
  std::vector<CarriedRecord> add_objects(DcpLayout& layout);
  std::string target_text() const;
  ChangedFiles changed_files();

  const Store& store() const { return store_; }
  bool nested() const { return dialect_ == DcpDialect::kFsdpDtensor; }
  const LayerMigration& migration() const { return migration_; }

  Notes notes;

 private:
  LayerPattern source_pattern() const;
  void check_pattern(const LayerPattern& pattern) const;
  bool may_lack_mixers() const;
  LayerForm source_form() const;
  LayerForm target_form() const;
  void check_ways(LayerForm from, LayerForm to) const;
  void follow_pipes(const LayerPattern& result);
  void add_notes(LayerForm from, LayerForm to);

  const RelayerOptions options_;
  const LayerWay way_ = options_.way;
  const Store& store_;
  const DcpDialect dialect_;
  std::optional<SourceArgs> args_;
  LayerPattern pattern_;
  std::vector<ArgChange> changes_;
  LayerMigration migration_;
};

Relayering::Relayering(const Store& store, const RelayerOptions& options)
    : options_(options), store_(store), dialect_(*dcp_dialect(store)) {
  for (const std::string& folder : folders_left_behind(store_))
    notes.warn(cat("the folder ", escaped(folder), " of the source is not copied"));
  args_.emplace(store_);
  pattern_ = source_pattern();
  check_pattern(pattern_);
  LayerForm from = source_form(), to = target_form();
  check_ways(from, to);
  LayerNames source(pattern_, from),
      target(pattern_, to, dialect_ == DcpDialect::kTorchDist ? kOldMtpModule : kMtpModule);
  migration_ = migrate_layers(store_, dialect_, source, target, options_.how);
  if (args_->value()) {
    LayerPattern result = parse_pattern(target_text(), Dialect::kGrouped);
    changes_ = args_for_layers(*args_->value(), result, is_gpt(to),
                               is_gpt(to) ? target.layers() : result.physical_layers());
    if (!is_gpt(to)) follow_pipes(result);
  }
  add_notes(from, to);
}

// The stages of the args stay, so the pipes of the pattern say how many chunks of layers each stage has.
void Relayering::follow_pipes(const LayerPattern& result) {
  const RunSizes run = run_sizes(*args_->value());
  const i64 segments = std::ssize(result.segments), stages = run.pipeline_stages.value_or(0);
  if (stages > 0 && segments > 1 && (stages == 1 || segments % stages != 0))
    return notes.warn(
        cat("the pattern has ", segments, " segments, and the args ", counted(stages, "stage"),
            stages == 1 ? ", on which Megatron refuses the |" : ", among which they do not divide",
            ": give the new run another pattern or pipeline"));
  if (stages <= 1) return;
  const i64 chunks = std::max<i64>(1, segments / stages);
  if (run.pipeline_chunks.value_or(1) == chunks) return;
  changes_.push_back({std::string(kChunksArg), chunks > 1 ? ArgValue(chunks) : ArgValue()});
}

Opened open_source(const RelayerOptions& options) {
  std::unique_ptr<Store> store = open_store(options.source, options.files);
  std::optional<DcpDialect> dialect = dcp_dialect(*store);
  if (dialect != DcpDialect::kTorchDist && dialect != DcpDialect::kFsdpDtensor)
    throw Error(Code::kUnknownFormat, "the layers of a checkpoint of this format cannot be renamed")
        .file(store->root())
        .expected("DCP torch_dist or DCP fsdp_dtensor")
        .found(format_text(store->format()));
  const CheckedPart parts = options.how.weights_only ? CheckedPart::kModel : CheckedPart::kAll;
  std::vector<Finding> damage = refuse_damage(*store, parts, options.accept);
  return open_plain(std::move(store), options.source, std::move(damage));
}

LayerPattern Relayering::source_pattern() const {
  std::optional<std::string> text = options_.pattern;
  bool of_source = way_ == LayerWay::kUngroup || way_ == LayerWay::kToGpt;
  if (!text && of_source && args_->value()) text = pattern_of_args(*args_->value());
  if (text) return parse_pattern(*text, Dialect::kGrouped);
  throw Error(Code::kUsage, of_source ? "the checkpoint does not say which layer pattern it has"
                                      : "the layer pattern of the result is missing")
      .file(store_.root())
      .help(of_source ? "`pattern` gives the pattern of the source"
                      : "`pattern` gives the pattern that the result has");
}

void Relayering::check_pattern(const LayerPattern& pattern) const {
  if ((way_ == LayerWay::kUngroup || way_ == LayerWay::kGroup) && !pattern.has_groups())
    throw Error(Code::kBadPattern, "the pattern has no groups, so no name would change")
        .found(pattern.text)
        .help("`pattern` gives one with [ and ]");
  if (way_ == LayerWay::kGroup && options_.keys != GroupNames::kMember) refuse_same_keys(pattern);
}

// Whether the source may lack all M layers, as a result of gpt-to-hybrid does: if the options say so, or if
// the source's own pattern has the same layers, so that the given pattern is not a mistake.
bool Relayering::may_lack_mixers() const {
  if (options_.how.without_mixers) return true;
  std::optional<LayerPattern> own = pattern_of_run(store_);
  return own && physical_symbols(*own) == physical_symbols(pattern_);
}

LayerForm Relayering::source_form() const {
  using F = LayerForm;
  std::vector<F> forms;
  if (way_ == LayerWay::kToHybrid)
    forms = dialect_ == DcpDialect::kTorchDist ? std::vector{F::kStacked, F::kGpt} : std::vector{F::kGpt};
  else if (!pattern_.has_groups())
    forms = {F::kFlat};
  else if (way_ == LayerWay::kGroup)
    forms = {F::kFlat, F::kMember, F::kLogical};
  else
    forms = {F::kLogical, F::kMember, F::kFlat};
  return detect_form(store_, dialect_, pattern_, forms, may_lack_mixers());
}

LayerForm Relayering::target_form() const {
  bool stacks = dialect_ == DcpDialect::kTorchDist;
  if (way_ == LayerWay::kToGpt) {
    if (options_.layers == GptLayers::kStacked && !stacks)
      throw Error(Code::kUsage, "fsdp_dtensor has no stacked layers").help("leave `layers` out");
    return stacks && options_.layers != GptLayers::kIndexed ? LayerForm::kStacked : LayerForm::kGpt;
  }
  if (options_.keys != GroupNames::kAuto && !pattern_.has_groups())
    throw Error(Code::kUsage, "`keys` says how groups are named, but the pattern has no groups")
        .found(pattern_.text)
        .help("leave `keys` out, or give a pattern with [ and ]");
  if (way_ == LayerWay::kUngroup || !pattern_.has_groups()) return LayerForm::kFlat;
  bool member = options_.keys == GroupNames::kAuto ? !stacks : options_.keys == GroupNames::kMember;
  return member ? LayerForm::kMember : LayerForm::kLogical;
}

void Relayering::check_ways(LayerForm from, LayerForm to) const {
  if (options_.how.spelling && dialect_ == DcpDialect::kTorchDist)
    throw Error(Code::kUsage,
                "torch_dist has one name for what versions of Megatron spell otherwise in memory")
        .file(store_.root())
        .help("leave `spelling` out");
  if (options_.how.spelling && options_.how.norms != NormPlace::kKeep)
    throw Error(Code::kUsage, "`norms` and `spelling` both say the names of norms")
        .help("leave out one of the two");
  if (from == to)
    throw Error(Code::kUsage, "the layers of the checkpoint have these names already")
        .file(store_.root())
        .found(cat(form_name(from), " keys of ", pattern_.text));
  std::vector<i64> mixers = layers_of_kind(pattern_, LayerKind::kMamba);
  if (way_ != LayerWay::kToHybrid || mixers.empty() || options_.how.without_mixers) return;
  throw Error(Code::kNotHeld, "a GPT model has no weights for the M layers of the pattern")
      .found(cat(mixers.size(), " of ", pattern_.physical_layers(), " layers of ", pattern_.text))
      .help(
          "`without_mixers` leaves these layers out; the training run that loads the result must initialise them");
}

std::string Relayering::target_text() const {
  std::string text = pattern_.text;
  if (way_ == LayerWay::kUngroup) std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

std::vector<CarriedRecord> Relayering::add_objects(DcpLayout& layout) {
  std::vector<CarriedRecord> records;
  for (const MovedObject& m : migration_.objects) {
    const Object& o = store_.objects()[m.object];
    i32 rank = static_cast<i32>(rank_of_file(store_, o.file));
    if (std::optional<std::string> archive = args_->patched(m.object, changes_, notes)) {
      layout.add_archive({m.name, nesting_dots(m.name)}, rank, std::move(*archive));
    } else {
      DcpName name{m.name, nested() ? nesting_dots(m.name) : std::vector<i32>()};
      add_carried(store_, o, layout, std::move(name), rank, records);
    }
  }
  return records;
}

ChangedFiles Relayering::changed_files() {
  ChangedFiles changed;
  if (std::string common = args_->patched_file(changes_, notes); !common.empty())
    changed.emplace(kCommonFile, std::move(common));
  return changed;
}

void Relayering::add_notes(LayerForm from, LayerForm to) {
  notes.note(cat("keys    ", form_name(from), " -> ", form_name(to), ", pattern ", escaped(pattern_.text)));
  for (const std::string& name : migration_.dropped_objects)
    notes.note(cat("empty   ", escaped(name), " is left out: models of the new form have no such state"));
  if (!args_->value())
    notes.warn("the source has no args: give num_layers and the layer pattern to the new run");
}

// The number of objects of the source that have no place in the result. Objects that are files are not
// counted.
i64 dropped_objects_of(const Store& store, const LayerMigration& migration) {
  i64 dropped = -std::ssize(migration.objects);
  for (const Object& o : store.objects()) dropped += !is_file(store, o);
  return dropped;
}

class RelayerTarget final : public Target {
 public:
  RelayerTarget(const Opened& source, const RelayerOptions& options)
      : r_(source.store(), options), layout_(ranks_of_files(r_.store())) {
    const Store& store = r_.store();
    if (!r_.nested()) layout_.leave_out_paths();
    if (options.rank == 0) object_files = &store;
    chunks_.emplace(store, r_.migration(), layout_, r_.nested());
    job = std::make_unique<ChunkJob>(chunks_->job(r_.add_objects(layout_)));
    proof = {side_of(store), side_of(layout_), r_.migration().dropped, {}, {}};
    dropped_objects = dropped_objects_of(store, r_.migration());
    FsdpFolder::Beside others = all_beside(store, r_.changed_files());
    notes.append(r_.notes);
    format = r_.nested() ? "fsdp_dtensor" : "torch_dist";
    identified.result =
        plan_iteration(*this, layout_, options.target, iteration_of(store.root()), std::move(others));
    identified.settings.emplace(name_of(options.way), MCKPT_VERSION);
    identified.settings->set("pattern", r_.target_text());
    if (options.how.spelling) identified.settings->set("spelling", to_string(*options.how.spelling));
  }
  void write_frame(const FramePlace& to) const override { impl::write_frame(layout_, to); }

 private:
  Relayering r_;
  DcpLayout layout_;
  std::optional<MovedChunks> chunks_;
};

}  // namespace

std::string_view name_of(LayerWay way) {
  constexpr std::string_view kNames[] = {"ungroup", "group", "hybrid-to-gpt", "gpt-to-hybrid"};
  return kNames[static_cast<int>(way)];
}

Conversion plan_relayer(const RelayerOptions& options) {
  return plan(open_source(options),
              [&](Opened& source) { return std::make_unique<RelayerTarget>(source, options); });
}

}  // namespace mckpt::impl
