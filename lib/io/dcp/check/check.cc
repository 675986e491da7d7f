// Which tensors belong together: halves, moments and their parameters, trained parameters and their states.
//
// The losses found here come from real save paths: a save that knows only one half of a gated tensor, and
// an optimizer with plain tensors instead of DTensors, of which DCP takes one rank's piece for the whole.
#include "io/dcp/check/check.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "io/dcp/check/counts.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/param_groups.h"
#include "io/dcp/keys/without_states.h"
#include "io/dcp/run/sizes.h"
#include "io/store/findings.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using Section = DcpKey::Section;

constexpr const char* kHalfLost =
    "the save was made by code that does not know of the other half, or a rank's file is missing: take an older checkpoint";
constexpr const char* kStateLost =
    "training cannot continue from these states; the weights are complete: reshard with `weights_only`, or export";
constexpr const char* kPieceForWhole =
    "an optimizer with plain tensors instead of DTensors was saved: one rank's piece is stored as the whole, and the pieces of the others are lost; `weights_only` skips the states, `rank_states` reads them from files of the ranks";

// One pass over the names; used once. Keys point into the store's names, which outlive it.
class NameChecks {
 public:
  NameChecks(const Store& store, DcpDialect dialect, const RunSizes& facts)
      : store_(store), dialect_(dialect), facts_(facts) {}

  std::vector<Finding> run(CheckedPart part) {
    gather();
    for (const Entry& e : entries_) {
      if (part == CheckedPart::kModel && e.key.section != Section::kModel) continue;
      check_half(e);
      check_moment(e);
    }
    if (part == CheckedPart::kAll) {
      check_group_meta();
      check_trained();
    }
    check_counts(store_, dialect_, facts_, entries_, findings_);
    return findings_.take();
  }

 private:
  using Entry = DcpEntry;
  // Tensors by the name of their parameter. Keys point into the store.
  using Tensors = NameMap<std::string_view, i64>;

  // Sorts the store's names into sections, and lists the parameters that were trained.
  void gather();
  void gather_trained();
  void check_half(const Entry& e);
  void check_moment(const Entry& e);
  void check_shape_of_state(const Entry& e);
  void check_group_meta();
  void check_trained();

  bool same_dims(i64 a, i64 b) const {
    return std::equal(store_.dims(a).begin(), store_.dims(a).end(), store_.dims(b).begin(),
                      store_.dims(b).end());
  }
  void add(Code code, i64 tensor, std::string message, const char* help = "", bool warning = false) {
    findings_.add(store_, code, tensor, std::move(message), help, warning);
  }
  // By section and field: the model's under {kModel, ""}, moments under {kState, "exp_avg"}.
  const Tensors& section(Section s, std::string_view field) { return sections_[{s, field}]; }

  const Store& store_;
  DcpDialect dialect_;
  const RunSizes& facts_;
  std::vector<Entry> entries_;
  std::map<std::pair<Section, std::string_view>, Tensors> sections_;
  std::string_view meta_is_ = "optimizer.param_to_group_meta";
  std::vector<std::string_view> group_meta_;  // parameters that it names, in the order of the file
  std::deque<std::string> listed_;            // what of these is not in the store's own names
  Findings findings_;
};

void NameChecks::gather() {
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    DcpKey key = split_key(dialect_, store_.name(t));
    if (key.section == Section::kOther) continue;
    entries_.push_back({key, t});
    sections_[{key.section, key.field}].emplace(key.parameter, t);
  }
  for (i64 i = 0; i < std::ssize(store_.objects()); i++) {
    const Object& o = store_.objects()[i];
    DcpKey key = split_key(dialect_, o.name);
    if (key.section == Section::kGroupMeta && (group_meta_.empty() || group_meta_.back() != key.parameter))
      group_meta_.push_back(key.parameter);
  }
  if (dialect_ == DcpDialect::kStateDict) gather_trained();
  std::sort(group_meta_.begin(), group_meta_.end());
  group_meta_.erase(std::unique(group_meta_.begin(), group_meta_.end()), group_meta_.end());
}

// torch's state dicts list the names of each group's parameters. A list that cannot be read is reported as an
// object.
void NameChecks::gather_trained() {
  for (const ListedGroup& group : listed_groups(store_, [](i64, const Error&) {})) {
    meta_is_ = "optimizer.param_groups";
    for (const std::string& name : group.names) group_meta_.push_back(listed_.emplace_back(name));
  }
}

// A `_w` needs its `_v`, in the model and in every field of the optimizer. Shapes are compared once, at
// `_w`.
void NameChecks::check_half(const Entry& e) {
  char half;
  std::string_view stem = unsplit(e.key.parameter, half);
  if (half == 0) return;
  const Tensors& same = section(e.key.section, e.key.field);
  std::string partner = cat(stem, half == 'w' ? "_v" : "_w");
  auto other = same.find(partner);
  if (other == same.end())
    add(Code::kCounterpart, e.tensor, cat("the other half, '", escaped(partner), "', is missing"),
        e.key.section == Section::kModel ? kHalfLost : kStateLost);
  else if (half == 'w' && !same_dims(e.tensor, other->second))
    add(Code::kCounterpart, e.tensor,
        cat("the shape ", dims_to_string(store_.dims(e.tensor)), " differs from the shape ",
            dims_to_string(store_.dims(other->second)), " of the other half, '", escaped(partner), "'"),
        e.key.section == Section::kModel ? "" : kPieceForWhole);
}

// pre: gather(). Adam has two moments of each parameter.
void NameChecks::check_moment(const Entry& e) {
  if (e.key.section != Section::kState || (e.key.field != "exp_avg" && e.key.field != "exp_avg_sq")) return;
  std::string_view other = e.key.field == "exp_avg" ? "exp_avg_sq" : "exp_avg";
  // Lion keeps exp_avg alone. Adafactor has exp_avg_sq of vectors alone, and two factors of it for matrices.
  const Tensors& others = section(Section::kState, other);
  bool factored = section(Section::kState, "exp_avg_sq_row").contains(e.key.parameter);
  if (!others.empty() && !others.contains(e.key.parameter) && !factored)
    add(Code::kCounterpart, e.tensor, cat("the parameter of this state has no ", other), kStateLost);
  // fully_shard's hooks number the parameters instead of naming them.
  if (dialect_ != DcpDialect::kMegatronFsdp) check_shape_of_state(e);
}

// A state has the shape of its parameter, and never exists without it.
void NameChecks::check_shape_of_state(const Entry& e) {
  const Tensors& model = section(Section::kModel, {});
  if (model.empty()) return;
  auto parameter = model.find(e.key.parameter);
  if (parameter == model.end())
    return add(Code::kCounterpart, e.tensor,
               cat("the model has no parameter '", escaped(e.key.parameter), "'"));
  if (same_dims(e.tensor, parameter->second)) return;
  // Older torch_dist saves keep the states item by item, as a rank's flat buffer has them; the shape is
  // written elsewhere.
  bool flat = store_.dims(e.tensor).size() == 1 ||
              store_.shape(e.tensor).items() == store_.shape(parameter->second).items();
  if (dialect_ == DcpDialect::kTorchDist && flat) return;
  add(Code::kCounterpart, e.tensor,
      cat("the shape ", dims_to_string(store_.dims(e.tensor)), " of the state differs from the shape ",
          dims_to_string(store_.dims(parameter->second)), " of its parameter"),
      kPieceForWhole);
}

// Compares the list of trained parameters with the states, in both directions. The list has the names of
// the running model, so pieces are first joined to their parameter.
void NameChecks::check_group_meta() {
  if (group_meta_.empty()) return;
  NameSet<std::string> with_state;
  for (const Entry& e : entries_) {
    if (e.key.section != Section::kState) continue;
    std::string name = parameter_of_piece(e.key.parameter);
    bool known = std::binary_search(group_meta_.begin(), group_meta_.end(), name) ||
                 std::binary_search(group_meta_.begin(), group_meta_.end(), e.key.parameter);
    if (!known && !with_state.contains(name))
      add(Code::kCounterpart, e.tensor, cat("the parameter of this state is not in ", meta_is_), "", true);
    with_state.insert(std::move(name));
  }
  if (with_state.empty()) return;  // saved before the first step
  for (std::string_view parameter : group_meta_)
    if (!with_state.contains(parameter_of_piece(parameter)))
      findings_.add({.code = Code::kCounterpart,
                     .tensor = std::string(parameter),
                     .message = cat(meta_is_, " names the parameter, but it has no optimizer state"),
                     .help = kStateLost});
}

// Where nothing lists what was trained: parameters without states among others with them. Frozen ones have
// none, so this is only odd.
void NameChecks::check_trained() {
  const Tensors& trained = section(Section::kState, "exp_avg");
  if (trained.empty() || !group_meta_.empty() || dialect_ != DcpDialect::kFsdpDtensor) return;
  std::vector<std::string> without;
  i64 first = -1;
  for (const Entry& e : entries_) {
    const bool weight = e.key.section == Section::kModel && !is_without_states(e.key.parameter);
    if (!weight || trained.contains(e.key.parameter)) continue;
    if (first < 0) first = e.tensor;
    without.emplace_back(e.key.parameter);
  }
  if (first >= 0)
    add(Code::kCounterpart, first,
        cat(without.size(), " of ", without.size() + trained.size(),
            without.size() == 1 ? " parameters has" : " parameters have",
            " no optimizer states, which only frozen parameters may lack: ", listed(without, 4)),
        kStateLost, true);
}

}  // namespace

std::vector<Finding> check_names(const Store& store, DcpDialect dialect, const RunSizes& facts,
                                 CheckedPart part) {
  return NameChecks(store, dialect, facts).run(part);
}

}  // namespace mckpt::impl
