// Two passes: the first one finds the parts of every fused parameter and of each of its states, the second
// adds all tensors in their order, a whole one in the place of its first part.
#include "convert/dialects/state_dict/whole_parameters.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "io/values/same_bytes.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/rule.h"

namespace mckpt::impl {
namespace {

// A part of a parameter by the name of its key.
struct PartName {
  const ModelParameter* parameter;
  std::size_t part;  // of so many
  std::size_t count;
  i64 first_row, rows;
};

// The parts of one whole tensor; -1: not found.
struct Whole {
  const ModelParameter* parameter = nullptr;
  std::vector<i64> tensors;
  bool complete() const { return std::ranges::find(tensors, -1) == tensors.end(); }
};

// A whole tensor is identified by its parameter and, if it is a state, the field and whether it is one value
// for the whole part.
using WholeId = std::tuple<const ModelParameter*, std::string, bool>;

// Makes the parameters of one store whole; run() is called once.
class MakingWhole {
 public:
  MakingWhole(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup)
      : out_(std::make_unique<PieceStore>(std::move(store))),
        source_(out_->source()),
        parameters_(map.parameters(Grid{}, Cell{}, setup)) {
    for (const ModelParameter& p : parameters_)
      for (KeySplit split : {p.split, rule_named(p.row->rule).parts})
        if (split != KeySplit::kNone) add_parts(p, split, map.model());
  }

  WholeParameters run(bool weights_only) {
    for (i64 t = 0; t < source_.tensor_count(); t++) find(t);
    if (!weights_only) refuse_unlike_values();
    for (i64 t = 0; t < source_.tensor_count(); t++) add(t);
    for (i64 o = 0; o < std::ssize(source_.objects()); o++) out_->add_object(source_.objects()[o].name, o);
    return {std::move(out_), std::move(made_whole_)};
  }

 private:
  struct Place {
    const PartName* part = nullptr;  // null: the tensor is no part of anything
    std::string field;
    bool value = false;  // without dimensions
    WholeId id() const { return {part->parameter, field, value}; }
  };

  void add_parts(const ModelParameter& p, KeySplit split, const ModelConfig& model) {
    std::vector<Piece> pieces = pieces_of(split, model, {p.shape()}, Part{});
    for (std::size_t i = 0; i < pieces.size(); i++)
      parts_.try_emplace(piece_key(split, p.global_name, pieces[i]),
                         PartName{&p, i, pieces.size(), pieces[i].first_row, pieces[i].rows});
  }

  // A state without dimensions is one value for the part.
  Place place_of(i64 t) const {
    std::string_view name = source_.name(t);
    Place out;
    std::optional<std::string> key = model_key(name);
    if (!key)
      if (std::optional<StateName> state = state_name(name)) {
        key = std::move(state->key);
        out.field = name.substr(name.rfind('.') + 1);
      }
    if (!key) return out;
    auto found = parts_.find(*key);
    if (found == parts_.end()) return out;
    const Shape& whole = found->second.parameter->shape();
    std::span<const i64> dims = source_.dims(t);
    bool rows = !dims.empty() && dims[0] == found->second.rows &&
                std::ranges::equal(dims.subspan(1), whole.dims().subspan(1));
    out.value = dims.empty() && !out.field.empty();
    if (rows || out.value) out.part = &found->second;
    return out;
  }

  void find(i64 t) {
    Place place = place_of(t);
    if (!place.part) return;
    Whole& whole = wholes_[place.id()];
    whole.tensors.resize(place.part->count, -1);
    whole.tensors[place.part->part] = t;
  }

  // Only the value of the first part is taken, and the view hides the others, so they are compared here.
  void refuse_unlike_values() const {
    std::vector<std::pair<i64, i64>> pairs;
    for (const auto& [id, whole] : wholes_)
      if (std::get<bool>(id) && whole.complete())
        for (std::size_t i = 1; i < whole.tensors.size(); i++)
          pairs.emplace_back(whole.tensors[0], whole.tensors[i]);
    std::vector<bool> same = have_same_bytes(source_, pairs, default_threads());
    auto unlike = std::ranges::find(same, false);
    if (unlike == same.end()) return;
    auto [first, other] = pairs[unlike - same.begin()];
    throw Error(Code::kUnaccounted, "the parts of one parameter have different values of a state")
        .file(source_.root())
        .tensor(source_.name(other))
        .expected(cat("the value of ", escaped(source_.name(first))))
        .found("another value or type")
        .help("`weights_only` skips the states");
  }

  void add(i64 t) {
    std::span<const i64> own = source_.dims(t);
    std::vector<i64> dims(own.begin(), own.end());
    Place place = place_of(t);
    if (!place.part || !wholes_[place.id()].complete())
      return out_->add(std::string(source_.name(t)), std::move(dims), {{t}});
    const std::vector<i64>& tensors = wholes_[place.id()].tensors;
    if (t != *std::ranges::min_element(tensors)) return;
    const ModelParameter& p = *place.part->parameter;
    std::vector<StorePiece> pieces;
    i64 to_row = 0;
    for (i64 part : tensors) {
      i64 rows = dims.empty() ? -1 : source_.dims(part)[0];
      pieces.push_back({part, {}, 0, rows, to_row});
      to_row += rows;
      if (dims.empty()) break;  // one value, which all parts have
    }
    if (!dims.empty()) dims[0] = to_row;
    bool state = !place.field.empty();
    if (!state) made_whole_.insert(p.global_name);
    out_->add(state ? cat(kStateFront, p.global_name, ".", place.field) : cat(kModelFront, p.global_name),
              std::move(dims), std::move(pieces));
  }

  std::unique_ptr<PieceStore> out_;
  const Store& source_;
  std::vector<ModelParameter> parameters_;
  NameMap<std::string, PartName> parts_;
  std::map<WholeId, Whole> wholes_;
  NameSet<std::string> made_whole_;
};

}  // namespace

WholeParameters whole_parameters(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                 bool weights_only) {
  return MakingWhole(std::move(store), map, setup).run(weights_only);
}

}  // namespace mckpt::impl
