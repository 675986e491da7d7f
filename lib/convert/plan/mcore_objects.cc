// Objects are taken by name from the store and from what its view made, as pickles of protocol 2. Options of
// parameters are grouped by their bytes, as in state_dict_objects.h; the groups of experts are those of the
// parameters of experts.
#include "convert/plan/mcore_objects.h"

#include <algorithm>
#include <map>

#include "convert/dialects/fsdp/fsdp_run.h"
#include "convert/keys/key_table.h"
#include "convert/objects/kept_args.h"
#include "convert/objects/megatron_args.h"
#include "convert/objects/param_groups.h"
#include "convert/objects/scalar.h"
#include "convert/objects/source_args.h"
#include "convert/open/checkpoint.h"
#include "convert/output/fsdp_folder.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "hf/model.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/args.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/compose.h"
#include "io/pickle/write/copy.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kSchedule = "opt_param_scheduler.",
                           kOperations = "num_floating_point_operations_so_far";
constexpr std::string_view kParams = "params";

std::string args_of_model(const HfModel& model, const McoreRun& result, i64 iteration) {
  FsdpRun run;
  run.grid = result.run.grid, run.run = result.run.run;
  return pickle_args({*model.map, model.config.run, run, iteration, !result.state_form.empty(),
                      ArgsFormat::kTorchDist, result.run.pipeline});
}

// The options of one parameter: fields with their pickles.
using Options = PickledEntries;

class CommonMaker {
 public:
  CommonMaker(const CheckpointModel& source, const KeyTable& keys, const McoreRun& result)
      : source_(source), keys_(keys), result_(result) {}

  McoreObjects make();

 private:
  void gather();
  void take(std::string_view name, std::string pickle);
  std::string args();
  NormNames norms() const;
  void find_iteration();
  void add_optimizer(PickledEntries& entries);
  std::string optimizer_of(const std::vector<Options>& groups) const;
  std::vector<std::vector<Options>> groups() const;
  bool made_by_run() const { return !result_.state_form.empty(); }

  const CheckpointModel& source_;
  const KeyTable& keys_;
  const McoreRun& result_;
  std::map<std::string, std::string, std::less<>> whole_;  // args, iteration, ...
  PickledEntries schedule_;
  NameMap<std::string, Options> options_;  // by key
  i64 iteration_ = 0;
  bool renumbered_ = false;  // the source's object says another iteration, or there is none
  McoreObjects out_;
};

// Objects of the source that have a place; the others are counted and named by the caller.
void CommonMaker::take(std::string_view name, std::string pickle) {
  DcpKey key = split_key(DcpDialect::kFsdpDtensor, name);
  if (name == "args" || name == "checkpoint_version" || name == "iteration" || name == kOperations) {
    whole_.emplace(name, std::move(pickle));
  } else if (name.starts_with(kSchedule)) {
    schedule_.emplace_back(name.substr(kSchedule.size()), std::move(pickle));
  } else if (key.section == DcpKey::Section::kGroupMeta) {
    options_[*model_key(cat("model.", key.parameter))].emplace_back(key.field, std::move(pickle));
  }
}

void CommonMaker::gather() {
  std::map<std::string, i64, std::less<>> left;  // by the front of the name
  const Store& store = source_.store();
  for (const Object& o : store.objects()) {
    if (is_file(store, o) || is_common_state(o.name)) continue;
    std::string front = o.name.substr(0, o.name.find('.'));
    bool known = front == "args" || front == "checkpoint_version" || front == "iteration" ||
                 front == kOperations || o.name.starts_with(kSchedule) ||
                 o.name.starts_with(kGroupMetaSection);
    if (!known || (o.name.starts_with(kGroupMetaSection) && !made_by_run())) {
      left[front]++;
      continue;
    }
    std::string pickle = object_pickle(store, o);
    Pickle read({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}, {});
    take(o.name, copy_pickle(read.root()));
  }
  if (const PieceStore* pieces = source_.translated())
    for (const PieceStore::Made& made : pieces->made()) take(made.name, made.pickle);
  std::vector<std::string> names;
  for (const auto& [front, count] : left) names.push_back(front), out_.left_out += count;
  if (!names.empty()) out_.notes.note(cat("torch_dist has no place for ", listed(names)));
}

// Those of the source with the new grid; else those that the model's config gives.
std::string CommonMaker::args() {
  auto own = whole_.find("args");
  if (own == whole_.end()) return args_of_model(source_.model(), result_, iteration_);
  return kept_args(own->second,
                   {.map = keys_.map(),
                    .grid = result_.run.grid,
                    .pipeline = result_.run.pipeline,
                    .format = ArgsFormat::kTorchDist,
                    .has_states = made_by_run(),
                    .vocab_rows = result_.run.run.vocab_rows,
                    .source_rows = source_.setup().vocab_rows,
                    .iteration = renumbered_ ? std::optional(iteration_) : std::nullopt,
                    .norms = norms()},
                   out_.notes);
}

// Only the norm in front of experts has a name that not all modules load.
NormNames CommonMaker::norms() const {
  if (keys_.map().model().moe.experts == 0) return NormNames::kOfAll;
  return result_.run.own_norms ? NormNames::kOfMegatron : NormNames::kOfTransformerEngine;
}

// The groups of the optimizers: one optimizer, or with expert parallelism a second one for experts.
std::vector<std::vector<Options>> CommonMaker::groups() const {
  const bool apart = result_.run.grid.ep > 1 && keys_.map().model().moe.experts > 0;
  std::vector<std::vector<Options>> out(apart ? 2 : 1);
  NameSet<std::string> seen[2];
  for (i32 k = 0; k < keys_.size(); k++) {
    const ModelParameter& p = keys_.parameter(keys_[k]);
    auto own = options_.find(p.global_name);
    if (own == options_.end()) own = options_.find(keys_[k].name);
    if (own == options_.end()) continue;
    const std::size_t optimizer = apart && p.expert() ? 1 : 0;
    Options options;
    for (const auto& [field, pickle] : own->second)
      options.emplace_back(field, field == kExpertGroup ? pickle_flag(optimizer == 1) : pickle);
    std::ranges::sort(options);
    std::string text = pickle_dict(options);
    if (seen[optimizer].insert(text).second) out[optimizer].push_back(std::move(options));
  }
  return out;
}

std::string CommonMaker::optimizer_of(const std::vector<Options>& groups) const {
  std::vector<std::string> dicts;
  for (const Options& options : groups) {
    PickledEntries fields;
    for (const auto& entry : options)
      if (entry.first != kParams) fields.push_back(entry);
    dicts.push_back(pickle_dict(fields));
  }
  PickledEntries inner{{"param_groups", pickle_list(dicts)}};
  PickleWriter form;
  form.text(result_.state_form);
  return pickle_dict(
      PickledEntries{{"optimizer", pickle_dict(inner)}, {"param_state_sharding_type", form.finish()}});
}

void CommonMaker::add_optimizer(PickledEntries& entries) {
  if (!made_by_run()) return;
  // Groups of a torch_dist checkpoint that cannot be told apart by parameter stay as they are.
  std::shared_ptr<const PickleValue> common = options_.empty() ? common_state_of(source_.on_disk()) : nullptr;
  if (const PickleValue* own = common ? common->find("optimizer") : nullptr) {
    entries.emplace_back("optimizer", copy_pickle(*own));
    return;
  }
  if (options_.empty())
    throw Error(Code::kNotHeld,
                "the checkpoint has states of the optimizer, but not the options of its parameters")
        .file(source_.store().root())
        .expected(cat("objects named ", kGroupMetaSection, "<parameter>.<option>"))
        .note("without them no group of a training run would find its step and its learning rate")
        .help("`weights_only` leaves the states out");
  std::vector<std::string> optimizers;
  for (const std::vector<Options>& of : groups()) optimizers.push_back(optimizer_of(of));
  entries.emplace_back("optimizer", optimizers.size() == 1 ? optimizers[0] : pickle_numbered(optimizers));
}

// That of the result, or else the one that the source's object says.
void CommonMaker::find_iteration() {
  auto own = whole_.find("iteration");
  std::optional<i64> said;
  if (own != whole_.end()) {
    Pickle read({reinterpret_cast<const u8*>(own->second.data()), own->second.size()}, {});
    if (read.root().is_int()) said = read.root().as_int();
  }
  iteration_ = result_.iteration.value_or(said.value_or(0));
  renumbered_ = result_.iteration && said != result_.iteration;
  if (result_.iteration || own == whole_.end())
    whole_.insert_or_assign("iteration", pickle_integer(iteration_));
}

McoreObjects CommonMaker::make() {
  gather();
  find_iteration();
  PickledEntries entries{{"args", args()}};
  auto version = whole_.find("checkpoint_version");
  entries.emplace_back("checkpoint_version", version == whole_.end() ? pickle_real(3.0) : version->second);
  entries.emplace_back("iteration", whole_.at("iteration"));
  add_optimizer(entries);
  if (!schedule_.empty()) entries.emplace_back("opt_param_scheduler", pickle_dict(schedule_));
  if (auto operations = whole_.find(kOperations); operations != whole_.end())
    entries.emplace_back(kOperations, operations->second);
  entries.emplace_back("content_metadata", pickle_content({result_.run.stacked, result_.state_form}));
  out_.common = common_file(entries);
  return std::move(out_);
}

}  // namespace

McoreObjects mcore_objects(const HfModel& model, const McoreRun& result) {
  const i64 iteration = result.iteration.value_or(0);
  PickledEntries entries{{"args", args_of_model(model, result, iteration)},
                         {"checkpoint_version", pickle_real(3.0)},
                         {"iteration", pickle_integer(iteration)},
                         {"content_metadata", pickle_content({result.run.stacked, ""})}};
  return {common_file(entries), 0, {}};
}

McoreObjects mcore_objects(const CheckpointModel& source, const KeyTable& keys, const McoreRun& result) {
  return CommonMaker(source, keys, result).make();
}

}  // namespace mckpt::impl
