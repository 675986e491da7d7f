// Groups are found by the bytes of the options: parameters whose options have equal pickles, apart from the
// step, are of one group. Groups are numbered by their first parameters, in the order of the model.
#include "convert/plan/reshard/state_dict_objects.h"
#include "convert/plan/run_config.h"
#include "convert/jobs/carry_object.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include "convert/keys/key_table.h"
#include "convert/objects/source_args.h"
#include "convert/open/checkpoint.h"
#include "convert/plan/reshard/reshard_source.h"
#include "convert/views/piece_store.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/write/paths.h"
#include "io/pickle/pickle.h"
#include "io/pickle/value.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

// The options of one parameter, in the order of the source.
struct StateDictObjects::Options {
  struct Field {
    std::string name;
    const Object* stored;  // null: made by a view
    std::string pickle;
  };
  std::vector<Field> fields;
  std::optional<float> step;

  // Equal for parameters of one group: all options but the step.
  std::string text() const {
    std::string out;
    for (const Field& f : fields) out += cat(f.name, " ", f.pickle.size(), " ", f.pickle);
    return out;
  }
};

// Parameters with equal options.
struct StateDictObjects::Group {
  const Options* options;
  std::vector<std::string> parameters;
};

namespace {

std::string pickle_texts(std::span<const std::string> texts) {
  PickleWriter p;
  p.op(Op::kEmptyList), p.op(Op::kMark);
  for (const std::string& text : texts) p.text(text);
  p.op(Op::kAppends);
  return p.finish();
}

std::optional<float> number_in(const std::string& pickle) {
  Pickle read({reinterpret_cast<const u8*>(pickle.data()), pickle.size()}, {});
  PickleValue v = read.root();
  if (v.is_int()) return static_cast<float>(v.as_int());
  if (v.is(PickleValue::Kind::kFloat)) return static_cast<float>(v.as_float());
  return std::nullopt;
}

bool is_listed(std::string_view object) { return object.starts_with(kGroupListSection); }

}  // namespace

StateDictObjects::StateDictObjects(const ReshardSource& source, const KeyTable& keys,
                                   const Companions& states)
    : source_(source) {
  note_left_out();
  if (source.weights_only()) return;
  keep_list();
  if (items_.empty()) make_list(keys, states);
}

void StateDictObjects::keep_list() {
  std::multimap<i64, const Object*> in_order;
  for (const Object& o : source_.model().store().objects())
    if (is_listed(o.name)) in_order.emplace(source_.place_of(o.name), &o);
  for (const auto& [place, o] : in_order) items_.push_back({source_.named(o->name), o});
}

// The options of every parameter of which the source has any, by its key.
NameMap<std::string, StateDictObjects::Options> StateDictObjects::options_by_key() const {
  NameMap<std::string, Options> options;
  auto add = [&](std::string_view name, const Object* stored, std::string pickle) {
    DcpKey key = split_key(DcpDialect::kFsdpDtensor, name);
    if (key.section != DcpKey::Section::kGroupMeta) return;
    Options& of = options[*model_key(cat("model.", key.parameter))];
    if (key.field == "step")
      of.step = number_in(pickle);
    else
      of.fields.push_back({std::string(key.field), stored, std::move(pickle)});
  };
  const Store& store = source_.model().store();
  for (const Object& o : store.objects())
    if (o.name.starts_with(kGroupMetaSection)) add(o.name, &o, object_pickle(store, o));
  if (const PieceStore* pieces = source_.model().translated())
    for (const PieceStore::Made& made : pieces->made()) add(made.name, nullptr, made.pickle);
  return options;
}

void StateDictObjects::make_list(const KeyTable& keys, const Companions& states) {
  NameMap<std::string, Options> options = options_by_key();
  std::vector<Group> groups;
  std::map<std::string, std::size_t> number;  // of the group with these options
  for (i32 k = 0; k < keys.size(); k++) {
    auto own = options.find(keys[k].name);
    if (own == options.end()) continue;
    auto [at, fresh] = number.try_emplace(own->second.text(), groups.size());
    if (fresh) groups.push_back({&own->second, {}});
    groups[at->second].parameters.push_back(keys[k].name);
    bool has_step = false;
    for (const Companion& c : states[k]) has_step |= c.value && c.name.text.ends_with(".step");
    if (!states[k].empty() && !has_step) add_step(keys[k].name, own->second);
  }
  note_list(groups, std::ssize(options));
  for (i64 g = 0; g < std::ssize(groups); g++) {
    for (const Options::Field& f : groups[g].options->fields)
      items_.push_back({state_dict_group(g, f.name), f.stored, f.stored ? "" : f.pickle});
    items_.push_back({state_dict_group(g, "params"), nullptr, pickle_texts(groups[g].parameters)});
  }
}

// `names`: of which the source has options.
void StateDictObjects::note_list(std::span<const Group> groups, i64 names) {
  if (i64 steps = std::ranges::count_if(items_, [](const Item& i) { return i.value.has_value(); }); steps > 0)
    notes_.note(
        cat("steps   ", counted(steps, "tensor"),
            " beside the ones counted below: the options of the parameters have the step, v2 has it as a state"));
  for (const Group& group : groups) names -= std::ssize(group.parameters);
  if (names > 0)
    notes_.warn(cat("the options of ", counted(names, "name"),
                    names == 1 ? " that is no parameter" : " that are no parameters",
                    " of the model are left out"));
}

void StateDictObjects::add_step(const std::string& parameter, const Options& options) {
  if (options.step) items_.push_back({state_dict_state(parameter, "step"), nullptr, "", options.step});
}

SharedObjects StateDictObjects::shared() {
  return {std::ssize(items_), [this](i64 index, i32 rank, DcpLayout& layout) {
            Item& item = items_[index];
            if (item.stored) {
              add_carried(source_.model().store(), *item.stored, layout, std::move(item.name), rank,
                          records_);
            } else if (item.value) {
              u32 bits = std::bit_cast<u32>(*item.value);
              std::array<u8, 4> bytes;
              for (std::size_t i = 0; i < bytes.size(); i++) bytes[i] = static_cast<u8>(bits >> (8 * i));
              layout.add_value(std::move(item.name), rank, DType::kF32, bytes);
            } else {
              layout.add_object(std::move(item.name), rank, item.pickle);
            }
          }};
}

// Named by the part in front of the first dot: the states of a schedule are a dozen objects. What a view made
// of entries of one object is named, but counts as no object.
void StateDictObjects::note_left_out() {
  std::vector<std::string> names;
  auto name_front = [&](std::string_view object) {
    std::string front(object.substr(0, object.find('.')));
    if (std::ranges::find(names, front) == names.end()) names.push_back(std::move(front));
  };
  const Store& store = source_.model().store();
  for (const Object& o : store.objects()) {
    if (is_file(store, o)) continue;
    if (is_optimizer_key(o.name)) {
      if (source_.weights_only()) left_out_++;
      continue;
    }
    left_out_++;
    name_front(o.name);
  }
  if (const PieceStore* pieces = source_.model().translated())
    for (const PieceStore::Made& made : pieces->made())
      if (!is_optimizer_key(made.name)) name_front(made.name);
  HiddenObjects hidden = hidden_objects(source_.model(), source_.weights_only());
  if (!hidden.lost_options.empty()) notes_.warn(hidden.lost_options);
  left_out_ += hidden.count;
  std::ranges::move(hidden.names, std::back_inserter(names));
  if (!names.empty()) notes_.note(cat("Megatron-FSDP v2 has no place for ", listed(names)));
}

ReshardedObjects StateDictObjects::placed(const Grid& grid) {
  return {.records = std::move(records_),
          .changed_files = files_with_grid(source_.model().store(), grid),
          .left_out = left_out_,
          .notes = std::move(notes_)};
}

}  // namespace mckpt::impl
