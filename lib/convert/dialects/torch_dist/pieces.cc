// Every parameter of the model is searched in all forms and at all places that the table has
// (convert/dialects/torch_dist/table.h), for the model section and for each kind of state. The first tensor
// that exists and has the index is taken.
//
// The items that are taken of each tensor are counted, so that a tensor with more layers or experts than the
// model has is refused and does not lose any.
#include "convert/dialects/torch_dist/pieces.h"

#include <algorithm>
#include <map>

#include "convert/dialects/torch_dist/grouped_places.h"
#include "convert/dialects/torch_dist/read_facts.h"
#include "convert/dialects/torch_dist/table.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/hybrid/spellings.h"
#include "io/dcp/keys/buckets.h"
#include "io/dcp/keys/dialect.h"
#include "io/dcp/keys/key.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

constexpr const char* kSaveByParameter =
    "`weights_only` skips the states; to keep them, load and save the checkpoint once with a Megatron that saves them by parameter (fully_sharded_model_space without flattening, or fully_reshardable)";

// A parameter, and the forms in which the checkpoint may have it.
struct Sought {
  ModelParameter parameter;
  std::vector<SavedForm> forms{};
};

// fsdp_dtensor stores the parameters of Mamba mixers whole, one part after the other.
bool joins_parts(KeySplit split) { return split == KeySplit::kMambaInProj || split == KeySplit::kMambaConv; }

// The translation of one store; run() is called once.
class Translation {
 public:
  Translation(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup, OddStates odd)
      : out_(std::make_unique<PieceStore>(std::move(store))),
        source_(out_->source()),
        model_(map.model()),
        odd_use_(odd) {
    for (ModelParameter& p : map.parameters(Grid{}, Cell{}, setup)) sought_.push_back({std::move(p)});
  }

  TranslatedRun run() {
    gather();
    for (Sought& s : sought_) s.forms = torch_dist_forms(s.parameter, stored_name(s.parameter));
    for (const auto& [kind, names] : kinds_)
      for (const Sought& s : sought_) add(s, kind);
    add_rest();
    if (odd_use_ == OddStates::kRefused) refuse_gathered();
    if (!odd_.empty() && odd_use_ == OddStates::kRefused) refuse_odd();
    RunFacts facts = torch_dist_facts(
        source_, odd_use_ == OddStates::kIgnored ? std::vector<const ModelParameter*>() : with_states());
    return {std::move(out_), std::move(facts)};
  }

 private:
  using Names = NameMap<std::string_view, i64>;

  void gather();
  bool has(const ModelParameter& p, std::span<const SavedForm> forms, std::string_view kind) const;
  SavedName stored_name(ModelParameter& p) const;
  void add(const Sought& s, std::string_view kind);
  bool add_form(const ModelParameter& p, const SavedForm& form, std::string_view kind);
  void put_whole(std::string_view kind, const ModelParameter& p, std::vector<i64> dims, StorePiece piece);
  void join(StorePiece part, std::vector<i64>& dims, std::vector<StorePiece>& all) const;
  void add_rest();
  std::vector<const ModelParameter*> with_states() const;
  void refuse_rest_of(i64 t, i64 taken) const;
  void refuse_gathered() const;
  [[noreturn]] void refuse_odd() const;
  std::optional<StorePiece> find(std::string_view kind, const SavedName& name) const;
  std::vector<i64> dims_of(const StorePiece& piece) const {
    std::span<const i64> dims = source_.dims(piece.tensor).subspan(piece.at.size());
    return {dims.begin(), dims.end()};
  }
  bool is_flat(std::string_view kind, const SavedName& name, const StorePiece& piece) const;
  void put(std::string_view kind, std::string_view name, std::vector<i64> dims,
           std::vector<StorePiece> pieces);

  std::unique_ptr<PieceStore> out_;
  const Store& source_;
  const ModelConfig& model_;
  std::vector<Sought> sought_;
  OddStates odd_use_;
  std::map<std::string_view, Names, std::less<>> kinds_;  // "" is the model, "exp_avg" a state
  std::vector<i64> taken_;                                // by tensor of the source, items
  std::vector<i64> odd_;                                  // states that are not stored by parameter
};

void Translation::gather() {
  taken_.resize(static_cast<std::size_t>(source_.tensor_count()));
  kinds_[""];
  for (i64 t = 0; t < source_.tensor_count(); t++) {
    KeySection section = key_section(DcpDialect::kTorchDist, source_.name(t));
    if (section.optimizer && section.name.empty()) continue;
    std::string_view kind = section.optimizer ? section.front.substr(0, section.front.size() - 1) : "";
    kinds_[kind.substr(kind.rfind('.') + 1)].emplace(section.name, t);
  }
}

std::optional<StorePiece> Translation::find(std::string_view kind, const SavedName& name) const {
  const Names& names = kinds_.find(kind)->second;
  for (TorchDistPlace& place : torch_dist_places(name.text, name.in_stack)) {
    auto found = names.find(place.name);
    if (found == names.end()) continue;
    std::span<const i64> dims = source_.dims(found->second);
    bool inside = dims.size() >= place.at.size() &&
                  std::ranges::equal(place.at, dims.first(place.at.size()), std::less());
    if (inside) return StorePiece{found->second, std::move(place.at)};
  }
  return std::nullopt;
}

// Whether a state is stored as a flat list of items, as older saves have it: its shape differs from the shape
// of the weight.
bool Translation::is_flat(std::string_view kind, const SavedName& name, const StorePiece& piece) const {
  if (kind.empty()) return false;
  std::optional<StorePiece> weight = find("", name);
  return weight && !std::ranges::equal(source_.dims(weight->tensor), source_.dims(piece.tensor));
}

void Translation::put(std::string_view kind, std::string_view name, std::vector<i64> dims,
                      std::vector<StorePiece> pieces) {
  for (const StorePiece& piece : pieces) {
    Shape shape(dims_of(piece));
    i64& taken = taken_[piece.tensor];
    taken += piece.rows < 0 ? shape.items() : piece.rows * shape.row_items();
  }
  out_->add(kind.empty() ? cat(kModelFront, name) : cat(kStateFront, name, ".", kind), std::move(dims),
            std::move(pieces));
}

// Whether the section of that kind has a parameter in one of the forms.
bool Translation::has(const ModelParameter& p, std::span<const SavedForm> forms,
                      std::string_view kind) const {
  return std::ranges::any_of(forms, [&](const SavedForm& form) {
    return find(kind, torch_dist_rows(p, form, model_)[0].name).has_value();
  });
}

// The name under which the checkpoint has the parameter. torch_dist has one name for what a convolution or
// the final norm is called at run time, so these keep their usual names in the view; a norm keeps the stored
// name. Megatron's own modules save the norm in front of experts under the name that a fused one would have.
// Kinds of attention may be saved apart, and are not by programs that leave out Megatron-Bridge's layers.
SavedName Translation::stored_name(ModelParameter& p) const {
  auto stored = [&](const SavedName& name) { return has(p, torch_dist_forms(p, name), ""); };
  const SavedName usual{p.global_name};
  if (std::optional<SavedName> kind = name_by_kind(p, model_); kind && stored(*kind)) return *std::move(kind);
  if (std::optional<std::string> own = own_norm_of_experts(p))
    if (!stored(usual) && stored({*own})) return {*std::move(own)};
  std::optional<Respelt> other = other_name(p.global_name);
  if (!other || !stored({other->name})) return usual;
  if (stored(usual)) refuse_two_names(p.global_name, other->name);
  if (other_names()[other->row].why == SpellingKind::kUnfusedNorm) p.global_name = other->name;
  return {std::move(other->name)};
}

void Translation::add(const Sought& s, std::string_view kind) {
  for (const SavedForm& form : s.forms)
    if (add_form(s.parameter, form, kind)) return;
}

// Adds what the checkpoint has of a parameter in that form; false if it has nothing.
bool Translation::add_form(const ModelParameter& p, const SavedForm& form, std::string_view kind) {
  const bool apart = form.split != KeySplit::kNone;
  bool found = false;
  std::vector<StorePiece> all;
  std::vector<i64> whole;
  for (const TorchDistRow& row : torch_dist_rows(p, form, model_)) {
    std::optional<StorePiece> piece = find(kind, row.name);
    if (!piece || is_flat(kind, row.name, *piece)) continue;
    found = true;
    std::vector<i64> dims = dims_of(*piece);
    if (joins_parts(form.split)) {
      join(*std::move(piece), whole, all);
    } else if (apart) {
      put(kind, row.key, std::move(dims), {*std::move(piece)});
    } else {
      put_whole(kind, p, std::move(dims), *std::move(piece));
      return true;
    }
  }
  if (!all.empty()) put(kind, p.global_name, std::move(whole), std::move(all));
  return found;
}

// A tensor of another shape than the parameter has is not cut: it is refused by what reads the view.
void Translation::put_whole(std::string_view kind, const ModelParameter& p, std::vector<i64> dims,
                            StorePiece piece) {
  if (p.split == KeySplit::kNone || !std::ranges::equal(dims, p.shape().dims()))
    return put(kind, p.global_name, std::move(dims), {std::move(piece)});
  for (const Piece& rows : stored_pieces(p, model_)) {
    piece.first_row = rows.first_row, piece.rows = dims[0] = rows.rows;
    put(kind, piece_key(p.split, p.global_name, rows), dims, {piece});
  }
}

// Appends a part behind the parts in `all`; `dims` becomes the shape of all of them together.
void Translation::join(StorePiece part, std::vector<i64>& dims, std::vector<StorePiece>& all) const {
  std::vector<i64> mine = dims_of(part);
  bool fits = !mine.empty() &&
              (all.empty() || std::ranges::equal(std::span(mine).subspan(1), std::span(dims).subspan(1)));
  if (!fits)
    throw Error(Code::kBadSplit, "the parts of a parameter have different rows")
        .tensor(source_.name(part.tensor))
        .expected(dims_to_string(dims))
        .found(dims_to_string(mine));
  if (all.empty()) {
    dims = std::move(mine);
  } else {
    part.to_row = dims[0];
    dims[0] = checked_add(dims[0], mine[0], "the rows of a parameter");
  }
  all.push_back(std::move(part));
}

void Translation::add_rest() {
  for (i64 t = 0; t < source_.tensor_count(); t++) {
    if (i64 taken = taken_[t]; taken > 0) {
      refuse_rest_of(t, taken);
      continue;
    }
    KeySection section = key_section(DcpDialect::kTorchDist, source_.name(t));
    std::span<const i64> dims = source_.dims(t);
    std::string name(source_.name(t));
    if (section.optimizer) odd_.push_back(t);
    if (section.optimizer && !is_optimizer_key(name)) name = cat("optimizer.", name);
    out_->add(section.optimizer ? name : cat(kModelFront, name), {dims.begin(), dims.end()}, {{t}});
  }
}

// Throws kUnaccounted if the model uses only some of the layers or experts in a tensor.
void Translation::refuse_rest_of(i64 t, i64 taken) const {
  i64 items = Shape(source_.dims(t)).items();
  if (taken == items) return;
  throw Error(Code::kUnaccounted, "the checkpoint has more layers or experts than the model")
      .file(source_.root())
      .tensor(source_.name(t))
      .expected(cat(counted(taken, "item"), ", as the configuration says"))
      .found(cat(items, ": ", dims_to_string(source_.dims(t))))
      .help("`assets` names the folder of the model that the checkpoint was made from");
}

void Translation::refuse_odd() const {
  Error e(Code::kNotHeld, cat(counted(std::ssize(odd_), "state"), " of the optimizer ",
                              odd_.size() == 1 ? "is" : "are", " not stored by parameter"));
  for (std::size_t i = 0; i < std::min<std::size_t>(odd_.size(), 10); i++)
    e.note(cat(escaped(source_.name(odd_[i])), " ", dims_to_string(source_.dims(odd_[i]))));
  e.file(source_.root()).expected("states with the shapes of their parameters").help(kSaveByParameter);
  if (std::ranges::any_of(odd_, [&](i64 t) { return is_bucket(source_.name(t)); }))
    e.found("dp_reshardable: buckets of one run, in which parameters have no names");
  throw e;
}

// Throws kNotHeld where the states are objects: no tensor would be missed.
void Translation::refuse_gathered() const {
  for (const Object& o : source_.objects())
    if (is_gathered_states(o.name))
      throw Error(Code::kNotHeld, "the states of the optimizer are not stored by parameter")
          .file(source_.root())
          .tensor(o.name)
          .expected("states with the shapes of their parameters")
          .found("dp_zero_gather_scatter: one object of all states of a model-parallel rank")
          .help(kSaveByParameter);
}

// The parameters of which the checkpoint has any state.
std::vector<const ModelParameter*> Translation::with_states() const {
  std::vector<const ModelParameter*> out;
  for (const Sought& s : sought_)
    if (std::ranges::any_of(kinds_, [&](const auto& kind) {
          return !kind.first.empty() && has(s.parameter, s.forms, kind.first);
        }))
      out.push_back(&s.parameter);
  return out;
}

}  // namespace

TranslatedRun torch_dist_pieces(std::unique_ptr<Store> store, const ModelMap& map, const RunSetup& setup,
                                OddStates odd) {
  return Translation(std::move(store), map, setup, odd).run();
}

bool has_own_norms_of_experts(const Store& torch_dist, std::span<const ModelParameter> parameters,
                              const LayerPattern* groups) {
  const std::optional<GroupedPlaces> grouped = groups ? std::optional<GroupedPlaces>(*groups) : std::nullopt;
  NameSet<std::string> names;
  for (i64 t = 0; t < torch_dist.tensor_count(); t++) names.emplace(torch_dist.name(t));
  auto stored = [&](const std::string& name) {
    return std::ranges::any_of(torch_dist_places(grouped ? grouped->of(name) : name),
                               [&](const TorchDistPlace& p) { return names.contains(p.name); });
  };
  return std::ranges::any_of(parameters, [&](const ModelParameter& p) {
    const std::optional<std::string> own = own_norm_of_experts(p);
    return own && !stored(p.global_name) && stored(*own);
  });
}

}  // namespace mckpt::impl
