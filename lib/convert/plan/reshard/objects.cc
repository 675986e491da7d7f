// Copies, changes and makes the objects of a resharded checkpoint. Sources are taken in this order, and the
// first one that has an object of a name wins: optimizer objects of the ranks' files, objects of the
// checkpoint, objects made by the view, other objects of the ranks' files, and last those that Megatron
// cannot do without.
#include "convert/plan/reshard/objects.h"
#include "convert/jobs/carry_object.h"

#include <algorithm>

#include "convert/dialects/fsdp/fsdp_run.h"
#include "convert/dialects/ranks/rank_states.h"
#include "convert/objects/args_patch.h"
#include "convert/objects/megatron_args.h"
#include "convert/objects/param_groups.h"
#include "convert/objects/run_objects.h"
#include "convert/objects/source_args.h"
#include "convert/open/checkpoint.h"
#include "convert/open/source_model.h"
#include "convert/plan/reshard/reshard_source.h"
#include "convert/plan/run_config.h"
#include "convert/views/piece_store.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "hf/folder/assets.h"
#include "hf/model.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/dcp/write/layout.h"
#include "io/file/folder.h"
#include "io/pickle/write/copy.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

const std::string kArgs = "args", kIteration = "iteration", kVersion = "checkpoint_version";

// One pass over all sources of objects; take() is called once.
class ReshardObjects {
 public:
  // All arguments outlive this.
  ReshardObjects(const ReshardSource& source, const FsdpRun& run, std::optional<i64> iteration,
                 DcpLayout& layout)
      : source_(source), run_(run), iteration_(iteration), layout_(layout) {}

  ReshardedObjects take();

 private:
  void add_made(const std::string& name, std::string pickle);
  void add_stored();
  void add_missing();
  bool has_states() const;
  std::string with_grid(std::string args);
  void set_if_there(std::string& args, std::string_view name, const ArgValue& value);
  void note_left_out();

  const ReshardSource& source_;
  const FsdpRun& run_;
  std::optional<i64> iteration_;
  DcpLayout& layout_;
  NameSet<std::string> names_;  // objects of the result
  ReshardedObjects out_;
};

// Args of another format may lack the fields by which fused tensors are read, and give a grid with pipeline
// stages.
std::string ReshardObjects::with_grid(std::string args) {
  bool other_format = source_.model().translated() != nullptr;
  const i64 rows = run_.run.vocab_rows;
  const std::optional<i64> divisor = other_vocab_divisor(args, source_.model().map(), rows, run_.grid.tp);
  for (auto [name, value] : grid_args(run_.grid)) {
    // A field that an earlier conversion gave another value is there twice, and is put, not replaced.
    bool there = args.find(name) != args.npos;
    bool done = replace_integer(args, name, value) || (there && put_value(args, name, value)) ||
                (other_format && put_value(args, name, value, kAlwaysThere));
    if (!done && (other_format || there)) out_.notes.warn(cat("args: ", name, " keeps its old value"));
  }
  if (other_format) {
    for (std::string_view name : pipeline_args()) set_if_there(args, name, std::monostate());
    set_if_there(args, kFsdpArg, true);
    set_if_there(args, kFormatArg, "fsdp_dtensor");
  }
  if (rows != source_.model().setup().vocab_rows && !replace_integer(args, kPaddedVocab, rows) &&
      !put_value(args, kPaddedVocab, rows, kAlwaysThere))
    out_.notes.warn(cat("args: ", kPaddedVocab, " keeps its old value"));
  if (divisor && !replace_integer(args, kVocabDivisor, *divisor)) set_if_there(args, kVocabDivisor, *divisor);
  return args;
}

void ReshardObjects::set_if_there(std::string& args, std::string_view name, const ArgValue& value) {
  if (args.find(name) != args.npos && !put_value(args, name, value))
    out_.notes.warn(cat("args: ", name, " keeps its old value"));
}

void ReshardObjects::add_made(const std::string& name, std::string pickle) {
  if (source_.drops_object(name) || !names_.insert(name).second) return;
  if (name == kIteration && iteration_) pickle = pickle_integer(*iteration_);
  if (name == kArgs) pickle = with_grid(std::move(pickle));
  layout_.add_object({name, nesting_dots(name)}, 0, pickle);
}

void ReshardObjects::add_stored() {
  const Store& store = source_.model().store();
  for (const Object& o : store.objects()) {
    if (is_file(store, o)) continue;
    if (source_.drops_object(o.name)) {
      out_.left_out++;
    } else if (o.name == kArgs || (o.name == kIteration && iteration_)) {
      add_made(o.name, object_pickle(store, o));
    } else if (names_.insert(o.name).second) {
      add_carried(store, o, layout_, source_.named(o.name), 0, out_.records);
    }
  }
}

ReshardedObjects ReshardObjects::take() {
  const RankStates* ranks = source_.rank_states();
  // States from the ranks' own files come with the groups that these files give.
  if (ranks)
    ranks->each_run_object([&](const std::string& name, PickleValue value) {
      if (is_optimizer_key(name)) add_made(name, copy_pickle(value));
    });
  add_stored();
  if (const PieceStore* pieces = source_.model().translated())
    for (const PieceStore::Made& made : pieces->made()) add_made(made.name, made.pickle);
  if (ranks)
    ranks->each_run_object(
        [&](const std::string& name, PickleValue value) { add_made(name, copy_pickle(value)); });
  add_missing();
  out_.changed_files = files_with_grid(source_.model().store(), run_.grid);
  note_left_out();
  out_.has_states = has_states();
  return std::move(out_);
}

bool ReshardObjects::has_states() const {
  const Store& store = source_.store();
  for (i32 t = 0; t < store.tensor_count(); t++)
    if (state_name(store.name(t)) && !source_.drops_tensor(t)) return true;
  return false;
}

// A checkpoint of another format that becomes fsdp_dtensor gets the objects without which Megatron does not
// load it.
void ReshardObjects::add_missing() {
  if (!source_.model().translated()) return;
  const HfModel& model = source_.model().model();
  i64 iteration = iteration_ ? *iteration_ : iteration_of(source_.model().store().root()).value_or(0);
  if (!source_.any_model() && !names_.contains(kArgs))
    layout_.add_object({kArgs, {}}, 0,
                       pickle_args({*model.map, model.config.run, run_, iteration, has_states()}));
  if (!names_.contains(kVersion)) layout_.add_object({kVersion, {}}, 0, pickle_real(3.0));
  if (!names_.contains(kIteration)) {
    layout_.add_object({kIteration, {}}, 0, pickle_integer(iteration));
    if (iteration == 0)
      out_.notes.note("run     the source says no iteration, so 0 is written; schedules begin anew");
  }
}

void ReshardObjects::note_left_out() {
  std::vector<std::string> names;
  if (const RankStates* ranks = source_.rank_states())
    if (names = ranks->not_taken(); !names.empty())
      out_.notes.note(cat("the result has no place for these objects of the ranks' files: ", listed(names)));
  HiddenObjects hidden = hidden_objects(source_.model(), source_.weights_only());
  out_.left_out += hidden.count;
  if (!hidden.lost_options.empty()) out_.notes.warn(hidden.lost_options);
  if (!hidden.names.empty()) out_.notes.note(cat("fsdp_dtensor has no place for ", listed(hidden.names)));
}

}  // namespace

namespace {

std::string lost_options_of(const ParamGroups& groups) {
  if (groups.all().empty()) return "";
  return cat("the options of the optimizer are lost, such as lr and weight_decay of its ",
             counted(std::ssize(groups.all()), "group"),
             ": torch_dist does not list the parameters of a group, and for some parameters not exactly one group fits");
}

// Whether the view has the options of parameters, made of the groups of the optimizer.
bool has_options(const PieceStore& view) {
  return std::ranges::any_of(
      view.made(), [](const PieceStore::Made& made) { return made.name.starts_with(kGroupMetaSection); });
}

}  // namespace

HiddenObjects hidden_objects(const CheckpointModel& model, bool weights_only) {
  const Store& disk = model.on_disk();
  if (!model.translated() || dcp_dialect(disk) != DcpDialect::kTorchDist) return {};
  HiddenObjects out;
  i64 extra = 0;
  for (const Object& o : disk.objects())
    if (o.name.find("._extra_state/") != o.name.npos)
      extra++;
    else if (!is_common_state(o.name) && !is_file(disk, o))
      out.names.push_back(o.name);
  out.count = std::ssize(out.names) + extra;
  std::shared_ptr<const PickleValue> common = common_state_of(disk);
  const PickleValue* optimizer = common ? common->find("optimizer") : nullptr;
  if (optimizer && !weights_only && !has_options(*model.translated()))
    out.lost_options = lost_options_of(ParamGroups(*optimizer, nullptr));
  if (common)
    for (PickleEntry e : common->entries())
      if (e.key.is(PickleValue::Kind::kText) && e.key.text() != "optimizer" &&
          !take_run_object(e.key.text(), e.value, [](const auto&, PickleValue) {}))
        out.names.push_back(cat("common_state.", escaped(e.key.text())));
  if (extra > 0) out.names.push_back(cat(extra, " _extra_state objects"));
  return out;
}

SideFiles reshard_assets(const ReshardSource& source) {
  const CheckpointModel& model = source.model();
  const OpenOptions& opening = model.on_disk().opening();
  if (!source.any_model())
    return plan_assets(model.assets_path(),
                       tensor_table_json(model.map().sources(), model.model().expert_layout,
                                         model.model().map_text, original_files(model.model())),
                       opening);
  std::string assets = own_assets(model.on_disk());
  return assets.empty() ? SideFiles{}
                        : plan_assets(assets, tensor_table_text(Folder(assets, opening)), opening);
}

ReshardedObjects reshard_objects(const ReshardSource& source, const FsdpRun& run,
                                 std::optional<i64> iteration, DcpLayout& layout) {
  return ReshardObjects(source, run, iteration, layout).take();
}

}  // namespace mckpt::impl
