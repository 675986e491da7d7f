// convert group, ungroup, hybrid-to-gpt, gpt-to-hybrid: the layers of a checkpoint under the names that a
// model of another form has for them. No number changes, boxes and ranks stay.
#include <algorithm>

#include "convert/layers/moved_chunks.h"
#include "convert/layers/pattern_args.h"
#include "convert/plan/identity.h"
#include "convert/plan/iteration.h"
#include "io/dcp/dcp.h"
#include "io/dcp/run_args.h"
#include "runtime/comm/world.h"
#include "tools/checkpoint_model.h"
#include "tools/commands/convert_modes.h"
#include "tools/render/layer_move_text.h"
#include "tools/run_conversion.h"
#include "tools/source_args.h"

namespace mckpt {
namespace {

class LayerMove {
 public:
  LayerMove(CommandLine& line, LayerWay way) : flags_(line.flags()), way_(way) { parse(line); }
  Exit run();

 private:
  void parse(CommandLine& line);
  void open();
  LayerPattern source_pattern() const;
  bool may_lack_mixers() const;
  LayerForm source_form() const;
  LayerForm target_form() const;
  void check_ways(LayerForm from, LayerForm to) const;
  std::string target_text() const;
  std::vector<CarriedRecord> add_objects(DcpLayout& layout, bool nested);
  Notes notes(LayerForm from, LayerForm to) const;
  ConversionPlan plan();

  const GlobalFlags& flags_;
  LayerWay way_;
  ConvertOptions options_;
  std::optional<std::string> pattern_flag_;
  std::string keys_ = "auto", layers_ = "auto", norms_ = "keep";
  std::vector<std::string> accept_;
  MigrationOptions how_;

  std::unique_ptr<Store> store_;
  DcpDialect dialect_ = DcpDialect::kPlain;
  std::optional<SourceArgs> args_;
  LayerPattern pattern_;
  std::vector<ArgChange> changes_;
  LayerMigration migration_;
};

void LayerMove::parse(CommandLine& line) {
  const LayerWayText& text = text_of(way_);
  options_.declare(line, "a torch_dist or fsdp_dtensor checkpoint: a run's folder, or one iteration of it",
                   "the folder of the checkpoints of the new run");
  options_.declare_resume(line);
  line.option("--pattern PATTERN", pattern_flag_, text.pattern_help);
  if (way_ == LayerWay::kGroup || way_ == LayerWay::kToHybrid)
    line.option("--keys NAMES", keys_,
                "how groups are named: auto (as the format of SRC stores them), logical or member")
        .choices({"auto", "logical", "member"});
  if (way_ == LayerWay::kToGpt)
    line.option(
            "--layers FORM", layers_,
            "stacked: one tensor for all layers; indexed: one for each layer; auto: as GPT models have them")
        .choices({"auto", "stacked", "indexed"});
  if (way_ == LayerWay::kToGpt)
    line.flag("--without-mixers", how_.without_mixers, "drop the M layers, which a GPT model does not have");
  if (way_ == LayerWay::kToHybrid)
    line.flag("--without-mixers", how_.without_mixers,
              "write a result without the M layers, which the training run has to initialise");
  if (way_ == LayerWay::kToGpt || way_ == LayerWay::kToHybrid)
    line.option("--norms PLACE", norms_,
                "norms of * and - layers: fused (in the linear layer after them, as in hybrid models), apart "
                "(in the layer) or keep")
        .choices({"keep", "fused", "apart"});
  line.flag("--weights-only", how_.weights_only, "do not copy the states of the optimizer");
  declare_accept(line, accept_);
  line.description(text.description);
  line.description(
      "Weights, optimizer states and objects are copied bit for bit and keep the chunks and files of the "
      "ranks that wrote them. num_layers and the pattern in the args are replaced. A key that has no place "
      "in the result is an error that names it.");
  line.description("`mckpt pattern` explains a pattern. Under mpirun the ranks share the work.");
  for (const char* example : text.examples) line.example(example);
  line.parse();
  options_.check();
  if (norms_ != "keep") how_.norms = norms_ == "fused" ? NormPlace::kFused : NormPlace::kApart;
}

void LayerMove::open() {
  store_ = open_store(options_.source);
  std::optional<DcpDialect> dialect = dcp_dialect(*store_);
  if (dialect != DcpDialect::kTorchDist && dialect != DcpDialect::kFsdpDtensor)
    throw Error(Code::kUnknownFormat, "the layers of such a checkpoint cannot be renamed")
        .file(store_->root())
        .expected("DCP torch_dist or DCP fsdp_dtensor")
        .found(store_->format());
  dialect_ = *dialect;
  refuse_damage(*store_, how_.weights_only ? NamesOf::kModel : NamesOf::kAll, accept_, flags_);
  for (const std::string& folder : folders_left_behind(*store_))
    warn(flags_, cat("the folder ", escaped(folder), " of the source does not go along"));
  args_.emplace(*store_);
}

LayerPattern LayerMove::source_pattern() const {
  std::optional<std::string> text = pattern_flag_;
  bool of_source = way_ == LayerWay::kUngroup || way_ == LayerWay::kToGpt;
  if (!text && of_source && args_->value()) text = pattern_of_args(*args_->value());
  if (!text)
    throw Error(Code::kUsage, of_source ? "the checkpoint does not say of which layer pattern it is"
                                        : "the layer pattern of the result is missing")
        .file(store_->root())
        .help(cat("--pattern PATTERN   ", text_of(way_).pattern_help));
  LayerPattern pattern = parse_pattern(*text, Dialect::kGrouped);
  if ((way_ == LayerWay::kUngroup || way_ == LayerWay::kGroup) && !pattern.has_groups())
    throw Error(Code::kBadPattern, "the pattern has no groups, so no name would change")
        .found(*text)
        .help("--pattern gives one with [ and ]");
  for (const GroupHazard& h : group_hazards(pattern))
    if (way_ == LayerWay::kGroup && h.same_keys && keys_ != "member")
      throw Error(Code::kBadPattern, "two layers of a group would have the same names")
          .found(cat("[", pattern.symbols(pattern.items[static_cast<std::size_t>(h.logical_index)]), "]"))
          .help("a group is safe with at most one of M, one of * G D +, and one of - E");
  return pattern;
}

// What was made of a GPT model lacks the M layers: where that is asked for, and where the source's own
// pattern has these layers, so that it is no slip in the one that is given.
bool LayerMove::may_lack_mixers() const {
  if (how_.without_mixers) return true;
  std::optional<LayerPattern> own = pattern_of_run(*store_);
  return own && physical_symbols(*own) == physical_symbols(pattern_);
}

LayerForm LayerMove::source_form() const {
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
  return detect_form(*store_, dialect_, pattern_, forms, may_lack_mixers());
}

LayerForm LayerMove::target_form() const {
  bool stacks = dialect_ == DcpDialect::kTorchDist;
  if (way_ == LayerWay::kToGpt) {
    if (layers_ == "stacked" && !stacks)
      throw Error(Code::kUsage, "fsdp_dtensor has no stacked layers").help("leave --layers out");
    return stacks && layers_ != "indexed" ? LayerForm::kStacked : LayerForm::kGpt;
  }
  if (keys_ != "auto" && !pattern_.has_groups())
    throw Error(Code::kUsage, "--keys says how groups are named, and the pattern has none")
        .found(pattern_.text)
        .help("leave --keys out, or give a pattern with [ and ]");
  if (way_ == LayerWay::kUngroup || !pattern_.has_groups()) return LayerForm::kFlat;
  bool member = keys_ == "auto" ? !stacks : keys_ == "member";
  return member ? LayerForm::kMember : LayerForm::kLogical;
}

void LayerMove::check_ways(LayerForm from, LayerForm to) const {
  if (from == to)
    throw Error(Code::kUsage, "the checkpoint has these names already")
        .file(store_->root())
        .found(cat(form_name(from), " keys of ", pattern_.text));
  std::vector<i64> mixers = layers_of_kind(pattern_, LayerKind::kMamba);
  if (way_ != LayerWay::kToHybrid || mixers.empty() || how_.without_mixers) return;
  throw Error(Code::kNotHeld, "a GPT model has no weights for the M layers of the pattern")
      .found(cat(mixers.size(), " of ", pattern_.physical_layers(), " layers of ", pattern_.text))
      .help("--without-mixers leaves them out; the run that loads the result has to begin them");
}

std::string LayerMove::target_text() const {
  std::string text = pattern_.text;
  if (way_ == LayerWay::kUngroup) std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

std::vector<CarriedRecord> LayerMove::add_objects(DcpLayout& layout, bool nested) {
  std::vector<CarriedRecord> records;
  for (const MovedObject& m : migration_.objects) {
    const Object& o = store_->objects()[static_cast<std::size_t>(m.object)];
    i32 rank = static_cast<i32>(rank_of_file(*store_, o.file));
    if (std::optional<std::string> pickle = args_->patched(m.object, changes_, flags_)) {
      layout.add_object({m.name, nesting_dots(m.name)}, rank, *pickle);
    } else {
      DcpName name{m.name, nested ? nesting_dots(m.name) : std::vector<i32>()};
      records.push_back(carry_object(*store_, o, layout, std::move(name), rank));
    }
  }
  return records;
}

Notes LayerMove::notes(LayerForm from, LayerForm to) const {
  Notes out;
  out.note(cat("keys    ", form_name(from), " -> ", form_name(to), ", pattern ", escaped(pattern_.text)));
  for (const std::string& name : migration_.dropped_objects)
    out.note(cat("empty   ", escaped(name), " is left out: models of the new form have no such state"));
  if (!args_->value())
    out.warn("the source has no args: give num_layers and the layer pattern to the new run");
  return out;
}

ConversionPlan LayerMove::plan() {
  open();
  pattern_ = source_pattern();
  LayerForm from = source_form(), to = target_form();
  check_ways(from, to);
  LayerNames source(pattern_, from),
      target(pattern_, to, dialect_ == DcpDialect::kTorchDist ? "transformer_layer" : "mtp_model_layer");
  migration_ = migrate_layers(*store_, dialect_, source, target, how_);
  if (args_->value()) {
    LayerPattern result = parse_pattern(target_text(), Dialect::kGrouped);
    changes_ = args_for_layers(*args_->value(), result, is_gpt(to),
                               is_gpt(to) ? target.layers() : result.physical_layers());
  }

  ConversionPlan c;
  auto& layout = c.parts.make<DcpLayout>(ranks_of_files(*store_));
  bool nested = dialect_ == DcpDialect::kFsdpDtensor;
  if (!nested) layout.leave_out_paths();
  c.sums = std::make_unique<ReadSums>();
  if (launch().rank == 0) expect_object_files(*c.sums, *store_);
  auto& chunks = c.parts.make<MovedChunks>(*store_, migration_, layout, nested);
  c.job = std::make_unique<ChunkJob>(chunks.job(add_objects(layout, nested)));

  c.sources = {store_->root()};
  c.store = store_.get();
  c.proof = {side_of(*store_), side_of(layout), migration_.dropped, {}, {}};
  for (const Object& o : store_->objects()) c.dropped_objects += !is_file(*store_, o);
  c.dropped_objects -= std::ssize(migration_.objects);
  ChangedFiles changed;
  if (std::string common = args_->patched_file(changes_, flags_); !common.empty())
    changed.emplace(kCommonFile, std::move(common));
  c.notes = notes(from, to);
  FsdpFolder::Beside beside = all_beside(*store_, changed);
  std::string metadata = plan_iteration(c, layout, options_.target, iteration_of(store_->root()), beside);
  c.identity = PlanIdentity(text_of(way_).name)
                   .add(source_identity(*store_))
                   .add(target_text())
                   .add(metadata)
                   .add(beside.identity())
                   .text();
  return c;
}

Exit LayerMove::run() {
  return run_conversion([this] { return plan(); }, "convert", options_, flags_);
}

}  // namespace

Exit convert_ungroup(CommandLine& line) { return LayerMove(line, LayerWay::kUngroup).run(); }
Exit convert_group(CommandLine& line) { return LayerMove(line, LayerWay::kGroup).run(); }
Exit convert_hybrid_to_gpt(CommandLine& line) { return LayerMove(line, LayerWay::kToGpt).run(); }
Exit convert_gpt_to_hybrid(CommandLine& line) { return LayerMove(line, LayerWay::kToHybrid).run(); }

}  // namespace mckpt
