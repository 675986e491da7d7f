// Builds the model, shards its modules, and unshards them. A group counts the modules that keep it unsharded
// (users_): the first one starts the gather, the last one frees the buffer.
#include "live/model/model.h"

#include <algorithm>
#include <functional>

#include "core/base/error.h"
#include "live/device/device.h"
#include "live/model/group.h"
#include "mappings/fsdp/layout.h"
#include "mappings/fsdp/units.h"
#include "mappings/model/cp_rows.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/same_host.h"

namespace mckpt::impl {
namespace {

// The parameters of this rank's cell, adjusted by the setup. Throws kBadLayout for norms that Megatron-FSDP
// would lose.
std::vector<ModelParameter> parameters_of(const ModelMap& map, const LiveSetup& setup, const Cell& cell) {
  std::vector<ModelParameter> parameters = map.parameters(setup.grid, cell, setup.run);
  refuse_lost_parts(parameters);
  setup.adjust(parameters);
  return parameters;
}

// This rank's cell. Throws kBadGrid if the job has another number of ranks than the grid, kBadLayout for
// pipeline stages.
Cell cell_in(const LiveSetup& setup, const Comm& world) {
  check_grid(setup.grid);
  refuse_pipeline(setup.grid);
  refuse_unlike_v2(setup.grid, setup.fsdp);
  if (setup.fsdp.fp8 != Fp8Recipe::kNone)
    throw Error(Code::kBadLayout, "a live model has no weights in 8 bits").help("leave out `fp8_recipe`");
  if (setup.grid.world() != world.size())
    throw Error(Code::kBadGrid, "the number of ranks of the job is not that of the grid")
        .expected(cat(setup.grid.world(), " (", to_string(setup.grid), ")"))
        .found(world.size())
        .help(cat("scripts/mpirun -n ", setup.grid.world(), " mckpt roundtrip ..."));
  return cell_of(setup.grid, world.rank());
}

// Collective. The ranks that share one copy of the buffers of a cell, ordered by shard. A set of such ranks
// is numbered by its replica and its cell.
std::unique_ptr<Comm> sharing(Comm& world, i64 cell, i64 cells, const FsdpPlace& place) {
  return world.split(static_cast<int>(place.replica * cells + cell), static_cast<int>(place.shard));
}

// Gives the embedding its second name, the output layer's, if the model ties them.
void tie_names(const std::vector<ModelParameter>& parameters, bool tied, ModuleTree& tree) {
  if (!tied) return;
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++)
    if (parameters[i].global_name.ends_with("embedding.word_embeddings.weight")) {
      std::string name = parameters[i].name;
      name.resize(name.size() - std::string_view("embedding.word_embeddings.weight").size());
      tree.tie(cat(name, "output_layer.weight"), i);
      return;
    }
}

}  // namespace

LiveModel::LiveModel(const ModelMap& map, LiveSetup setup, Comm& world, Device& device, Memory& gathered)
    : map_(map),
      setup_(std::move(setup)),
      world_(world),
      device_(device),
      gathered_(gathered),
      cell_(cell_in(setup_, world)),
      links_(device, world),
      parameters_(parameters_of(map, setup_, cell_)),
      tree_(parameters_),
      reads_(parameters_, tree_) {
  const Grid& g = setup_.grid;
  dense_.comm = sharing(world, cell_.tp, g.tp, dense_place(g, cell_));
  expert_.comm = sharing(world, cell_.ep * g.etp + cell_.etp, g.ep * g.etp, expert_place(g, cell_));
  host_ = ranks_of_host(world);
  world_ranks_ = &links_.between(world);
  host_ranks_ = &links_.between(*host_);
  gathers_ = device.lane();
  for (Sharers* sharers : {&dense_, &expert_}) sharers->ranks = &links_.between(*sharers->comm);
  tie_names(parameters_, map.model().tied, tree_);
  for (const ModelParameter& p : parameters_) {
    marks_.push_back(marks_of(p, g));
    tensors_.push_back(Tensor::meta(p.dtype, p.shape()));
  }
  seats_.resize(parameters_.size());
  buffers_.resize(parameters_.size());
  groups_.resize(tree_.size());
  held_.resize(tree_.size());
}

LiveModel::~LiveModel() = default;

void LiveModel::refuse_unsharded(i32 module, const char* what) const {
  for (i32 m : sharded_)
    if (tree_.contains(module, m))
      for (const std::unique_ptr<LiveGroup>& group : groups_[m])
        if (group->unsharded())
          throw Error(Code::kBadLayout,
                      cat("a module cannot be ", what, " while it, or one inside it, is unsharded"))
              .found(cat("unsharded: ", m == 0 ? "the model" : tree_[m].name))
              .help("reshard that module first");
}

// The parameters of the module and of the modules inside it that no other sharded module has. Tied weights
// belong to the module of their first name.
std::vector<i32> LiveModel::members_for(i32 module) const {
  std::vector<i32> members;
  for (i32 p : tree_.parameters_below(module)) {
    if (parameters_[p].buffer() || !tree_.contains(module, tree_.home_of(p))) continue;
    i32 owner = seat(p).module;
    if (owner < 0 || owner == module) members.push_back(p);
    if (owner >= 0 && !tree_.contains(module, owner))
      throw Error(Code::kBadLayout, "a module must be sharded before the modules that contain it")
          .tensor(parameters_[p].name)
          .expected(cat(tree_[module].name, " before ", owner == 0 ? "the model" : tree_[owner].name));
  }
  return members;
}

// The new groups are made before the old ones are dropped.
void LiveModel::fully_shard(i32 module) {
  refuse_unsharded(module, "sharded again");
  std::vector<GroupMember> members;
  for (i32 p : members_for(module)) members.push_back({p, module == 0 ? kNoUnit : module});
  std::vector<std::unique_ptr<LiveGroup>> groups;
  std::vector<FsdpGroup> packed;
  if (!members.empty()) packed = pack_groups(parameters_, members, setup_.grid, setup_.fsdp);
  for (FsdpGroup& group : packed) {
    const ModelParameter& first = parameters_[group.bucket.members[0]];
    bool main = first.trainable || setup_.fsdp.saves_state_dict();
    LiveGroup::How how{setup_.fsdp.strategy, place_in(group, setup_.grid, cell_).shard, first.dtype,
                       main ? setup_.main_dtype : std::nullopt};
    DeviceRanks& ranks = group.bucket.expert ? *expert_.ranks : *dense_.ranks;
    LiveGroup::Home home{device_, gathered_, ranks, *gathers_};
    groups.push_back(std::make_unique<LiveGroup>(std::move(group), how, home));
    const std::vector<i64>& of = groups.back()->bucket().members;
    for (i64 m = 0; m < std::ssize(of); m++) seats_[of[m]] = {groups.back().get(), m, module};
  }
  for (const std::unique_ptr<LiveGroup>& before : groups_[module]) {
    before->drop();
    users_.erase(before.get());
  }
  groups_[module] = std::move(groups);
  if (std::ranges::find(sharded_, module) == sharded_.end())
    sharded_.insert(std::ranges::upper_bound(sharded_, module), module);
}

// Modules have larger numbers than the modules around them, which are sharded after them.
void LiveModel::wrap() {
  refuse_without_stacks(parameters_, setup_.fsdp);
  std::vector<i32> units;
  if (has_units(grouping_of(setup_.fsdp)))
    for (const auto& [number, module] : UnitOwners(setup_.fsdp).modules(parameters_))
      units.push_back(tree_.find(module.name));
  std::ranges::sort(units, std::greater());
  for (i32 m : units) fully_shard(m);
  fully_shard(0);
}

const std::vector<std::unique_ptr<LiveGroup>>& LiveModel::groups_of(i32 module) const {
  return groups_[module];
}

std::vector<LiveGroup*> LiveModel::groups() const {
  std::vector<LiveGroup*> out;
  for (i32 m : sharded_)
    for (const std::unique_ptr<LiveGroup>& group : groups_[m]) out.push_back(group.get());
  return out;
}

std::span<u8> LiveModel::buffer_bytes(i32 parameter) const {
  const Block& block = buffers_[parameter];
  return {block.data(), static_cast<std::size_t>(block.bytes())};
}

std::optional<Tensor> LiveModel::stored_shard(i32 parameter) const {
  const Seat& s = seat(parameter);
  if (!s.group || !s.group->loaded()) return std::nullopt;
  ItemRange items = s.group->stored_items_of(s.member);
  if (items.empty()) return std::nullopt;
  const PackedParameter& packed = s.group->buffer().parameters[s.member];
  i64 first = packed.offset + items.begin - s.group->stored_items().begin;
  const Shape& shape = parameters_[parameter].shape();
  Shape rows = shape.rank() > 0 ? shape.with_dim(0, items.items() / packed.row_items) : shape;
  return Tensor::over(s.group->stored_type(), rows,
                      s.group->stored().data() + dtype_bytes(s.group->stored_type(), first), device_);
}

void LiveModel::allocate() {
  check_memory_room();
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++) {
    const ModelParameter& parameter = parameters_[p];
    if (!parameter.buffer() && !seat(p).group)
      throw Error(Code::kBadLayout, "a parameter is in no group: its module is not sharded")
          .tensor(parameter.name);
    if (!parameter.buffer() || buffers_[p].data()) continue;
    buffers_[p] = Block(device_.weights(), dtype_bytes(parameter.dtype, parameter.shape().items()));
    tensors_[p] = Tensor::over(parameter.dtype, parameter.shape(), buffers_[p].data(), device_);
  }
  for (LiveGroup* group : groups()) group->allocate();
}

i64 LiveModel::received_bytes() const {
  i64 bytes = 0;
  for (LiveGroup* group : groups()) bytes += group->received_bytes();
  return bytes;
}

// Checks the memory for all weights at once, because allocated memory that was not written yet still counts
// as free. Collective over the ranks of a host if they share its memory.
void LiveModel::check_memory_room() const {
  i64 bytes = 0;
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++) {
    const ModelParameter& parameter = parameters_[p];
    if (parameter.buffer() && !buffers_[p].data())
      bytes += dtype_bytes(parameter.dtype, parameter.shape().items());
  }
  for (LiveGroup* group : groups())
    if (!group->loaded()) bytes += group->weight_bytes();
  if (device_.is_host()) host_->all_reduce({&bytes, 1}, Reduce::kSum);
  if (bytes > 0) device_.weights().check_room(bytes);
}

void LiveModel::wait_for_writes() const {
  for (LiveGroup* group : groups()) group->writes().wait();
}

void LiveModel::drop() {
  refuse_unsharded(0, "dropped");
  for (LiveGroup* group : groups()) group->drop();
  for (i32 p = 0; p < static_cast<i32>(parameters_.size()); p++) {
    if (!parameters_[p].buffer()) continue;
    tensors_[p] = Tensor::meta(parameters_[p].dtype, parameters_[p].shape());
    buffers_[p] = Block();
  }
}

bool LiveModel::loaded() const {
  std::vector<LiveGroup*> all = groups();
  return !all.empty() && std::ranges::all_of(all, [](LiveGroup* g) { return g->loaded(); });
}

i64 LiveModel::weight_bytes() const {
  i64 bytes = 0;
  for (const Block& buffer : buffers_) bytes += buffer.bytes();
  for (LiveGroup* group : groups()) bytes += group->held_bytes();
  return bytes;
}

// The groups that unsharding a module needs: the groups of its own parameters and of modules inside it that
// are not sharded on their own; and the groups of parameters that it, or a module around it, reads directly.
std::vector<LiveGroup*> LiveModel::groups_for(i32 module) const {
  std::vector<LiveGroup*> out;
  for (i32 p : tree_.parameters_below(module)) {
    const Seat& s = seat(p);
    if (!s.group || std::ranges::find(out, s.group) != out.end()) continue;
    bool inside = s.module > module && tree_.contains(module, s.module);
    if (!inside || reads_.around(module, p)) out.push_back(s.group);
  }
  for (i32 p : extra_parameters(module))
    if (LiveGroup* group = seat(p).group; std::ranges::find(out, group) == out.end()) out.push_back(group);
  return out;
}

i32 LiveModel::sharded_with(i32 module) const {
  while (module >= 0 && !std::ranges::binary_search(sharded_, module)) module = tree_[module].parent;
  return module;
}

// A module reads for the modules around it, up to the one that it is sharded with.
std::vector<i32> LiveModel::extra_parameters(i32 module) const {
  std::vector<i32> out;
  for (const DirectReads::Read& read : reads_.elsewhere()) {
    bool reads = tree_.contains(module, read.module) && sharded_with(read.module) <= module;
    const Seat& s = seat(read.parameter);
    if (reads && s.group && s.module != module) out.push_back(read.parameter);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Gives the tensors of a group's parameters their place in the whole buffer, or puts them back on the meta
// device.
void LiveModel::set_tensors(LiveGroup& group) {
  for (i64 m = 0; m < std::ssize(group.bucket().members); m++) {
    i32 p = static_cast<i32>(group.bucket().members[m]);
    i64 offset = group.buffer().parameters[m].offset;
    DType dtype = group.how().compute;
    const Shape& shape = parameters_[p].shape();
    tensors_[p] = group.unsharded()
                      ? Tensor::over(dtype, shape, group.whole() + dtype_bytes(dtype, offset), device_)
                      : Tensor::meta(dtype, shape);
  }
}

void LiveModel::unshard(i32 module) {
  prefetch(module);
  try {
    for (LiveGroup* group : held_[module]) group->finish_unshard();
  } catch (...) {
    let_go(module);
    throw;
  }
}

void LiveModel::prefetch(i32 module) {
  if (!loaded()) throw Error(Code::kBadLayout, "the model has no weights yet: it was not loaded");
  std::vector<LiveGroup*>& held = held_[module];
  if (!held.empty()) return;
  try {
    for (LiveGroup* group : groups_for(module)) {
      int& users = users_[group];
      held.push_back(group);  // counted from here on, so that let_go() undoes it after an error
      if (users++ > 0) continue;
      group->begin_unshard();
      set_tensors(*group);
    }
  } catch (...) {
    let_go(module);
    throw;
  }
}

void LiveModel::reshard(i32 module) {
  if (std::exception_ptr failed = let_go(module)) std::rethrow_exception(failed);
}

// Gives up the module's hold on its groups. All groups are let go, also after an error in one of them.
std::exception_ptr LiveModel::let_go(i32 module) {
  std::exception_ptr first;
  for (LiveGroup* group : std::exchange(held_[module], {})) {
    if (--users_[group] > 0) continue;
    try {
      group->reshard();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
    set_tensors(*group);
  }
  return first;
}

void LiveModel::refresh() {
  refuse_unsharded(0, "refreshed");
  wait_for_writes();  // of all groups, so that no group is refreshed if the writes of one have failed
  for (LiveGroup* group : groups()) group->begin_refresh();
  for (LiveGroup* group : groups()) group->finish_refresh();
}

Tensor LiveModel::cp_slice(i32 parameter) const {
  if (tensor(parameter).facts().meta)
    throw Error(Code::kBadLayout, "a parameter has no values while its module is sharded")
        .tensor(parameters_[parameter].name)
        .help("unshard its module first");
  return tensor(parameter).rows(cp_rows(parameters_[parameter], map_.model(), setup_.grid, cell_.cp));
}

}  // namespace mckpt::impl
