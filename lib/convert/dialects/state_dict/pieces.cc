// One pass over the tensors, whose fused parameters are taken apart along the table, and one over the
// objects. Options of an optimizer's group become options of each of its parameters.
#include "convert/dialects/state_dict/pieces.h"

#include <algorithm>
#include <map>

#include "convert/dialects/state_dict/table.h"
#include "convert/facts/scalar.h"
#include "convert/own/numbered_states.h"
#include "core/base/error.h"
#include "core/hybrid/names.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/param_groups.h"
#include "io/store/store.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

using Section = DcpKey::Section;

// The translation of one store; run() is called once. The model's map outlives it.
class Translation {
 public:
  Translation(std::unique_ptr<Store> store, DcpDialect dialect, const ModelMap* map, const RunSetup& setup,
              KeyTable::Cells cells, bool weights_only, bool keep_groups, const LayerPattern* members)
      : out_(std::make_unique<PieceStore>(std::move(store))),
        source_(out_->source()),
        dialect_(dialect),
        map_(map),
        cells_(cells),
        weights_only_(weights_only),
        keep_groups_(keep_groups),
        table_(map, setup) {
    if (!members) return;
    grouped_.emplace(*members, LayerForm::kMember);
    flat_.emplace(*members, LayerForm::kFlat);
  }

  TranslatedRun run() {
    if (dialect_ == DcpDialect::kMegatronFsdp && !weights_only_ && has_numbered_states(source_)) {
      numbered_ = numbered_states(source_, table_.parameters());
      group_of_ = numbered_.group_of;
    }
    by_parameter_ = (dialect_ == DcpDialect::kStateDict && !keep_groups_) || !group_of_.empty();
    for (i64 t = 0; t < source_.tensor_count(); t++) add_tensor(t);
    if (!keep_groups_) read_groups();
    for (i64 o = 0; o < std::ssize(source_.objects()); o++) add_object(o);
    for (const auto& [name, group] : group_of_) add_step(name, group);
    for (const auto& [name, t] : steps_)
      if (map_) add_one(t, name, kStateFront, ".step");
    return {std::move(out_), std::move(facts_)};
  }

 private:
  std::string key_of(std::string_view parameter) const;
  void add_tensor(i64 t);
  bool add_split(i64 t, std::string_view name, std::string_view front, std::string_view tail);
  void read_groups();
  void add_object(i64 o);
  RunFact& add_option(const std::string& parameter, std::string_view field);
  void add_step(const std::string& name, const std::string& group);
  void add_one(i64 t, const std::string& name, std::string_view front, std::string_view tail);

  std::unique_ptr<PieceStore> out_;
  const Store& source_;
  RunFacts facts_{.store = &source_};
  DcpDialect dialect_;
  const ModelMap* map_;
  KeyTable::Cells cells_;
  bool weights_only_, keep_groups_;
  std::optional<LayerNames> grouped_, flat_;  // of layers that get names without groups
  const StateDictTable table_;
  NumberedStates numbered_;    // of the hooks of Megatron-FSDP
  bool by_parameter_ = false;  // options of a group become options of its parameters
  std::vector<std::pair<std::string, std::string>>
      group_of_;                      // parameters, each with the number of its group
  NameMap<std::string, bool> names_;  // of parameters; whether each is a group of its own
  std::map<std::string, i64> steps_;  // 0-dimensional states, by parameter
};

std::string Translation::key_of(std::string_view parameter) const {
  std::string name = *model_key(cat("model.", parameter));
  if (!grouped_) return name;
  std::optional<NameFault> fault;
  const LayerName found = grouped_->find(name, fault);
  const bool layer = !fault && found.kind == LayerName::Kind::kLayer && found.depth < 0;
  return layer ? flat_->text(found) : name;
}

void Translation::add_tensor(i64 t) {
  DcpKey key = split_key(dialect_, source_.name(t));
  std::span<const i64> dims = source_.dims(t);
  if (key.section != Section::kModel && key.section != Section::kState)
    return out_->add(std::string(source_.name(t)), {dims.begin(), dims.end()}, {{t}});
  bool state = key.section == Section::kState;
  std::string name = key_of(key.parameter);
  if (state && dialect_ == DcpDialect::kMegatronFsdp) {
    auto numbered = numbered_.key_of.find(std::string(key.parameter));
    if (numbered == numbered_.key_of.end())
      return out_->add(std::string(source_.name(t)), {dims.begin(), dims.end()}, {{t}});
    name = numbered->second;
  }
  if (key.section == Section::kModel) names_.emplace(name, false);
  std::string_view front = state ? kStateFront : kModelFront;
  std::string tail = state ? cat(".", key.field) : "";
  bool step = state && key.field == "step" && dims.empty();
  if (step) steps_.emplace(name, t);
  if (step && map_) return;
  add_one(t, name, front, tail);
}

// A state that is one value for the whole parameter goes to each of its parts.
void Translation::add_one(i64 t, const std::string& name, std::string_view front, std::string_view tail) {
  if (add_split(t, name, front, tail)) return;
  std::span<const i64> dims = source_.dims(t);
  out_->add(cat(front, name, tail), {dims.begin(), dims.end()}, {{t}});
}

// Adds the parts of tensor t, which is the parameter `name` or a state of this parameter, if Megatron stores
// the parameter in parts, and the tensor has the shape of the whole parameter or no dimensions. False: the
// tensor is to be added whole.
bool Translation::add_split(i64 t, std::string_view name, std::string_view front, std::string_view tail) {
  std::span<const CheckpointKey> parts = table_.apart(name);
  if (parts.empty()) return false;
  std::span<const i64> dims = source_.dims(t);
  const ModelParameter& p = table_.parameter(parts[0]);
  const i64 cells = cells_of(p, cells_);
  bool whole = std::ranges::equal(dims, p.shape().dims());
  if (!dims.empty() && (!whole || cells < 1 || dims[0] % cells != 0)) return false;
  for (const CheckpointKey& part : parts) {
    if (!dims.empty() && !StateDictTable::divides(part, cells))
      throw Error(Code::kUnknownPartition, "this number of tensor-parallel ranks cannot have cut a parameter")
          .file(source_.root())
          .tensor(source_.name(t))
          .expected(cat("a divisor of its ", counted(part.shape[0], "row")))
          .found(cells)
          .help("give the number of ranks with `source_tp`, for experts with `source_etp`");
    std::vector<i64> own(dims.begin(), dims.end());
    std::vector<StorePiece> pieces;
    if (own.empty()) {
      pieces.push_back({t});
    } else {
      own[0] = part.shape[0];
      for (const StateDictTable::Rows& r : table_.rows(part, cells))
        pieces.push_back({t, {}, r.in_whole, r.count, r.in_part});
    }
    out_->add(cat(front, part.name, tail), std::move(own), std::move(pieces));
  }
  return true;
}

// Collects (parameter, group) pairs, from the lists of names in the groups and from flattened groups.
void Translation::read_groups() {
  if (dialect_ != DcpDialect::kStateDict) return;
  for (const ListedGroup& group : listed_groups(source_))
    for (const std::string& name : group.names) group_of_.emplace_back(key_of(name), group.group);
  for (const Object& o : source_.objects()) {
    std::optional<GroupField> field = group_field(o.name);
    if (!field) continue;
    auto parameter = names_.find(key_of(field->group));
    if (parameter != names_.end() && !std::exchange(parameter->second, true))
      group_of_.emplace_back(parameter->first, field->group);
  }
}

void Translation::add_object(i64 o) {
  const std::string& name = source_.objects()[o].name;
  std::optional<GroupField> field = group_field(name);
  bool placed = false;
  if (field && by_parameter_) {
    if (field->field == "params") return;  // the parameters of the options say it
    for (const auto& [parameter, group] : group_of_)
      if (group == field->group) add_option(parameter, field->field).object = o, placed = true;
  }
  // No parameter is known to be in the group: the object keeps its name, so that nothing is left out.
  if (placed) return;
  facts_.all.push_back(fact_named(name));
  facts_.all.back().object = o;
}

RunFact& Translation::add_option(const std::string& parameter, std::string_view field) {
  facts_.add(FactKind::kOption, "", std::string(field));
  facts_.all.back().parameter = parameter;
  return facts_.all.back();
}

// Megatron keeps the count of steps with the group, as an integer. torch keeps it as a 0-dimensional tensor
// for each parameter: its value is read and becomes an option.
void Translation::add_step(const std::string& name, const std::string& group) {
  auto step = steps_.find(name);
  std::string of_group = cat(kGroupListSection, group, ".step");
  bool group_has_step =
      std::ranges::any_of(source_.objects(), [&](const Object& o) { return o.name == of_group; });
  if (step == steps_.end() || group_has_step) return;
  add_option(name, "step").pickle = pickle_scalar(source_, step->second);
  if (map_) steps_.erase(step);
}

}  // namespace

TranslatedRun state_dict_pieces(std::unique_ptr<Store> store, DcpDialect dialect, const ModelMap* map,
                                const RunSetup& setup, KeyTable::Cells cells, bool weights_only,
                                bool keep_groups, const LayerPattern* members) {
  return Translation(std::move(store), dialect, map, setup, cells, weights_only, keep_groups, members).run();
}

}  // namespace mckpt::impl
