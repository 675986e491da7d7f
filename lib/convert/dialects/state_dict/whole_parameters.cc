// Two passes: the first one finds the parts of every fused parameter and of each of its states, the second
// adds all tensors in their order, a whole one in the place of its first part.
#include "convert/dialects/state_dict/whole_parameters.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "convert/dialects/state_dict/table.h"
#include "convert/views/piece_store.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

// The parts of one whole tensor; -1: not found.
struct Whole {
  std::vector<i64> tensors;
  bool complete() const { return std::ranges::find(tensors, -1) == tensors.end(); }
};

// A whole tensor is identified by its parameter and, if it is a state, the field and whether it is one value
// for the whole part.
using WholeId = std::tuple<i32, std::string, bool>;

// Makes the parameters of one store whole; run() is called once.
class MakingWhole {
 public:
  MakingWhole(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup)
      : out_(std::make_unique<PieceStore>(std::move(store))), source_(out_->source()), table_(&map, setup) {}

  WholeParameters run(bool weights_only) {
    for (i64 t = 0; t < source_.tensor_count(); t++) find(t);
    if (!weights_only) refuse_unlike_values();
    for (i64 t = 0; t < source_.tensor_count(); t++) add(t);
    for (i64 o = 0; o < std::ssize(source_.objects()); o++) out_->add_object(source_.objects()[o].name, o);
    return {std::move(out_), std::move(made_whole_)};
  }

 private:
  struct Place {
    const CheckpointKey* part = nullptr;  // null: the tensor is part of nothing
    std::string field;
    bool value = false;  // without dimensions
    WholeId id() const { return {part->parameter, field, value}; }
  };

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
    const CheckpointKey* part = table_.find(*key);
    if (!part) return out;
    std::span<const i64> dims = source_.dims(t);
    out.value = dims.empty() && !out.field.empty();
    if (out.value || std::ranges::equal(dims, part->shape.dims())) out.part = part;
    return out;
  }

  void find(i64 t) {
    Place place = place_of(t);
    if (!place.part) return;
    Whole& whole = wholes_[place.id()];
    const std::span<const CheckpointKey> parts = table_.parts_with(*place.part);
    whole.tensors.resize(parts.size(), -1);
    whole.tensors[place.part - parts.data()] = t;
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
    const ModelParameter& p = table_.parameter(*place.part);
    std::vector<StorePiece> pieces;
    if (place.value) pieces.push_back({tensors[0]});  // one value, which all parts have
    auto tensor = tensors.begin();
    for (const CheckpointKey& part : table_.parts_with(*place.part))
      for (const StateDictTable::Rows& r : table_.rows(part, 1))
        if (!place.value) pieces.push_back({*tensor++, {}, r.in_part, r.count, r.in_whole});
    if (!place.value) dims[0] = p.shape()[0];
    bool state = !place.field.empty();
    if (!state) made_whole_.insert(p.global_name);
    out_->add(state ? cat(kStateFront, p.global_name, ".", place.field) : cat(kModelFront, p.global_name),
              std::move(dims), std::move(pieces));
  }

  std::unique_ptr<PieceStore> out_;
  const Store& source_;
  const StateDictTable table_;
  std::map<WholeId, Whole> wholes_;
  NameSet<std::string> made_whole_;
};

}  // namespace

WholeParameters whole_parameters(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                 bool weights_only) {
  return MakingWhole(std::move(store), map, setup).run(weights_only);
}

}  // namespace mckpt::impl
