// Reads the fields of the two kinds of files. Fields that DeepSpeed added in time may be missing; what is
// there must be of the type that DeepSpeed writes.
#include "io/zero/states.h"

#include <algorithm>
#include <charconv>

#include "core/base/error.h"
#include "io/pickle/pickle.h"
#include "io/torch/table/table.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

// More ranks than any cluster has.
constexpr i64 kMostRanks = i64{1} << 20;

// A field of a dict; None if it is not there, or if the value is not a dict.
PickleValue field(PickleValue dict, std::string_view name) {
  const PickleValue* v = dict.find(name);
  return v == nullptr ? PickleValue() : *v;
}

PickleValue needed(PickleValue dict, std::string_view name, Kind kind) {
  PickleValue v = field(dict, name);
  if (v.is(kind)) return v;
  throw Error(Code::kBadTorchFile, cat("this is not a file of DeepSpeed ZeRO: '", name, "' is missing"))
      .expected(kind_name(kind))
      .found(kind_name(v.kind()));
}

i64 integer_or(PickleValue v, i64 otherwise) { return v.is_int() ? v.as_int() : otherwise; }
std::string text_or_none(PickleValue v) { return v.is(Kind::kText) ? std::string(v.text()) : ""; }

// {"a": torch.Size((4, 6)), ...} in the order of the dict.
ZeroGroup read_shapes(PickleValue dict) {
  if (!dict.is(Kind::kDict))
    throw Error(Code::kBadPickle, "the shapes of parameters are not a dict").found(kind_name(dict.kind()));
  ZeroGroup group;
  NameSet<std::string_view> names;
  for (PickleEntry e : dict.entries()) {
    std::string_view name = e.key.to_text("the name of a parameter");
    std::vector<i64> sizes;
    for (PickleValue size : e.value.items()) sizes.push_back(size.to_int("a dimension of a parameter"));
    if (!e.value.is(Kind::kTuple) && !e.value.is(Kind::kList))
      throw Error(Code::kBadPickle, "the shape of a parameter is not a tuple").tensor(name);
    if (!names.insert(name).second) throw Error(Code::kBadPickle, "a parameter is listed twice").tensor(name);
    group.push_back({name, Shape(sizes)});
  }
  return group;
}

std::vector<ZeroGroup> read_groups(PickleValue list) {
  std::vector<ZeroGroup> groups;
  for (PickleValue shapes : list.items()) groups.push_back(read_shapes(shapes));
  if (list.is(Kind::kDict)) groups.push_back(read_shapes(list));
  return groups;
}

// Experts that are cut over other ranks than the rest of the model.
void refuse_expert_groups(PickleValue dict) {
  for (const char* name : {"ds_autoep_layers", "autoep_layers", "ds_zero_partition_groups"})
    if (!field(dict, name).is_none())
      throw Error(Code::kUnsupportedTorchFile,
                  "experts of the model are cut over ranks of their own (AutoEP)")
          .found(cat("the field ", name))
          .help("DeepSpeed's ds_to_universal.py joins them");
}

// An enum's member, ZeroStageEnum(2), or a number.
i64 read_stage(PickleValue v) {
  if (v.is(Kind::kObject)) v = v.as_object().args.at(0);
  const i64 stage = integer_or(v, 0);
  if (stage >= 1 && stage <= 3) return stage;
  throw Error(Code::kUnsupportedTorchFile, "the file does not say that it is of ZeRO 1, 2 or 3")
      .found(v.is_int() ? cat("zero_stage ", stage) : cat("zero_stage is ", kind_name(v.kind())))
      .help(
          "DeepSpeed's own zero_to_fp32.py refuses it too: save it again with ZeRO, or load it where it was saved");
}

void check_ranks(i64 ranks, std::string_view what = "partition_count") {
  if (ranks < 1 || ranks > kMostRanks)
    throw Error(Code::kBadPickle, cat(what, " is not a number of ranks"))
        .expected(cat("1 to ", kMostRanks))
        .found(ranks);
}

// One number, or one for each group: groups of experts have fewer ranks.
i64 read_ranks(PickleValue v) {
  i64 ranks = integer_or(v, 0);
  for (PickleValue n : v.items()) ranks = std::max(ranks, n.to_int("partition_count"));
  check_ranks(ranks);
  return ranks;
}

// Reads the file of one rank.
class OptimizerReader {
 public:
  OptimizerReader(const TorchTable& table, PickleValue dict) : table_(table), rows_(table), dict_(dict) {}

  ZeroOptimizerStates read() {
    refuse_expert_groups(dict_);
    out_.stage = read_stage(field(dict_, "zero_stage"));
    out_.ranks = read_ranks(field(dict_, "partition_count"));
    add_parts(out_.stage == 3 ? "fp32_flat_groups" : "single_partition_of_fp32_groups");
    add_ranks();
    add_numbers();
    add_addresses();
    add_states(out_.stage == 3 ? "optimizer_state_dict" : "base_optimizer_state");
    return std::move(out_);
  }

 private:
  // The row of a tensor that is a vector of whole bytes, item after item; -1 if it is none. A tensor that
  // could not be read has a finding in the table.
  i64 vector_row(std::string_view name) const {
    const i64 row = rows_.row(name);
    if (row < 0) return row;
    if (table_.dims(row).size() == 1 && table_.strides(row).empty() &&
        dtype_info(table_.dtype(row)).bits % 8 == 0)
      return row;
    throw Error(Code::kBadShards, "a rank's part of the weights is not a vector")
        .tensor(name)
        .found(dims_to_string(table_.dims(row)));
  }

  void add_parts(std::string_view field_name) {
    const i64 count = needed(dict_, field_name, Kind::kList).size();
    for (i64 g = 0; g < count; g++)
      out_.groups.push_back({.part = vector_row(cat("optimizer_state_dict.", field_name, ".", g))});
  }

  void add_ranks() {
    for (auto& group : out_.groups) group.ranks = out_.ranks;
    each_group("partition_count", [&](auto& group, PickleValue v) {
      group.ranks = v.to_int("partition_count");
      check_ranks(group.ranks);
      if (group.ranks != out_.ranks && (out_.stage == 3 || out_.ranks % group.ranks != 0))
        throw Error(Code::kUnsupportedTorchFile,
                    "groups of parameters are cut over numbers of ranks that do not divide each other")
            .found(cat(out_.ranks, " and ", group.ranks, ", with ZeRO ", out_.stage));
    });
  }

  template <typename Visit>
  void each_group(std::string_view field_name, Visit&& visit) {
    std::size_t g = 0;
    for (PickleValue v : field(dict_, field_name).items())
      if (g < out_.groups.size()) visit(out_.groups[g++], v);
  }

  void add_numbers() {
    each_group("group_paddings",
               [](auto& group, PickleValue v) { group.padding = v.to_int("a group's padding"); });
    each_group("param_alignment_paddings", [](auto& group, PickleValue v) {
      for (PickleValue gap : v.items()) group.gaps.push_back(gap.to_int("a parameter's padding"));
    });
    for (const auto& group : out_.groups)
      if (group.padding < 0 || std::ranges::any_of(group.gaps, [](i64 gap) { return gap < 0; }))
        throw Error(Code::kBadPickle, "a number of padded items is negative");
  }

  void add_addresses() {
    each_group("param_slice_mappings", [](auto& group, PickleValue v) {
      group.addresses.emplace();
      for (PickleEntry e : v.entries()) {
        const PickleObject* o = e.value.is(Kind::kObject) ? &e.value.as_object() : nullptr;
        const PickleValue *begin = o ? o->field("start") : nullptr, *items = o ? o->field("numel") : nullptr;
        if (begin == nullptr || items == nullptr || !e.key.is(Kind::kText)) return group.addresses.reset();
        (*group.addresses)[e.key.text()] = {begin->to_int("start"), items->to_int("numel")};
      }
    });
  }

  // {"state": {0: {"exp_avg": T}}}, or of an elastic checkpoint [{"exp_avg": T}].
  void add_states(std::string_view field_name) {
    PickleValue states = field(dict_, field_name);
    i64 g = 0;
    for (PickleValue group : states.items()) add_states(group, g++, cat("optimizer_state_dict.", field_name));
    for (PickleEntry e : field(states, "state").entries())
      if (e.key.is_int())
        add_states(e.value, e.key.as_int(), cat("optimizer_state_dict.", field_name, ".state"));
    PickleValue count = field(dict_, "base_optimizer_state_step");
    for (PickleValue group : field(states, "param_groups").items())
      if (count.is_none()) count = field(group, "step");
    if (!out_.step && count.is_int()) out_.step = static_cast<double>(count.as_int());
  }

  void add_states(PickleValue dict, i64 g, const std::string& path) {
    if (g < 0 || g >= std::ssize(out_.groups)) return;
    for (PickleEntry e : dict.entries()) {
      if (!e.key.is(Kind::kText)) continue;
      const bool is_step = e.key.text() == "step" && !out_.step && out_.step_row < 0;
      if (is_step && e.value.is_int()) out_.step = static_cast<double>(e.value.as_int());
      const i64 row = rows_.row(cat(path, ".", g, ".", e.key.text()));
      if (row < 0) continue;
      out_.groups[g].states.push_back({e.key.text(), row});
      if (is_step && table_.dims(row).empty()) out_.step_row = row;
    }
  }

  const TorchTable& table_;
  ZeroRows rows_;
  PickleValue dict_;
  ZeroOptimizerStates out_;
};

}  // namespace

ZeroRows::ZeroRows(const TorchTable& table) {
  for (i64 row = 0; row < table.size(); row++) rows_[table.name(row)] = row;
}

i64 ZeroRows::row(std::string_view name) const {
  auto it = rows_.find(name);
  return it == rows_.end() ? -1 : it->second;
}

// DeepSpeed splits the optimizer's groups by experts, and names the groups of experts by their number of
// ranks: {"name": "ep_size_2", "moe": True}. The largest number is the number in the files.
i64 expert_ranks_of(PickleValue groups) {
  constexpr std::string_view kName = "ep_size_";
  i64 ranks = 0;
  for (PickleValue group : groups.items()) {
    const std::string name = text_or_none(field(group, "name"));
    if (!name.starts_with(kName)) continue;
    i64 n = 0;
    const char* end = name.data() + name.size();
    auto [at, error] = std::from_chars(name.data() + kName.size(), end, n);
    if (error == std::errc() && at == end && n <= kMostRanks) ranks = std::max(ranks, n);
  }
  return ranks;
}

ZeroModelStates read_zero_model(const TorchTable& table) {
  PickleValue root = table.pickle()->root();
  ZeroModelStates out;
  refuse_expert_groups(root);
  if (field(root, "module").is_none())
    throw Error(Code::kUnsupportedTorchFile,
                "the file has no weights in 'module': those of a pipeline are elsewhere");
  needed(root, "module", Kind::kDict);
  for (PickleValue name : needed(root, "buffer_names", Kind::kList).items())
    out.buffers.push_back(name.to_text("the name of a buffer"));
  if (PickleValue shapes = field(root, "param_shapes"); !shapes.is_none()) out.groups = read_groups(shapes);
  if (PickleValue frozen = field(root, "frozen_param_shapes"); !frozen.is_none())
    out.frozen = read_shapes(frozen);
  const PickleValue* list = root.find("frozen_param_shapes");  // files before DeepSpeed 0.9 do not have it
  out.leaves_out_frozen = list != nullptr && list->is_none();
  for (PickleEntry e : field(root, "shared_params").entries())
    out.shared.emplace_back(e.key.to_text("a shared parameter"), e.value.to_text("a shared parameter"));
  const PickleValue zero = field(field(root, "ds_config"), "zero_optimization");
  out.stage = integer_or(field(zero, "stage"), 0);
  const PickleValue turns = field(zero, "round_robin_gradients");
  out.takes_turns = turns.is(Kind::kBool) && turns.as_bool();
  out.ranks = integer_or(field(root, "dp_world_size"), -1);
  out.steps = integer_or(field(root, "global_steps"), -1);
  out.model_ranks = integer_or(field(root, "mp_world_size"), -1);
  if (out.model_ranks != -1) check_ranks(out.model_ranks, "mp_world_size");
  out.stages = integer_or(field(field(root, "checkpoint_parallel_dimensions"), "pp_degree"), -1);
  for (PickleValue experts : field(root, "num_experts").items())
    out.experts.push_back(experts.to_int("a number of experts"));
  out.expert_ranks = expert_ranks_of(field(field(root, "optimizer"), "param_groups"));
  out.version = text_or_none(field(root, "ds_version"));
  return out;
}

ZeroOptimizerStates read_zero_optimizer(const TorchTable& table) {
  PickleValue root = table.pickle()->root();
  ZeroOptimizerStates out = OptimizerReader(table, needed(root, "optimizer_state_dict", Kind::kDict)).read();
  out.version = text_or_none(field(root, "ds_version"));
  return out;
}

}  // namespace mckpt::impl
