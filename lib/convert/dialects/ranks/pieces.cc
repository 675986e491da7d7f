// The files are joined in three steps:
//
//   1  grid       from args, or else from the names of the folders; every folder is that of one cell
//   2  stages     the layers of every stage and chunk are counted, and the final norm, MTP and the output layer are
//                 looked for, so that any layout of a pipeline is read
//   3  pieces     for each file and chunk, what the table (convert/dialects/ranks/table.h) gives that cell is
//                 searched under its names at run time
#include "convert/dialects/ranks/pieces.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>

#include "convert/dialects/ranks/copies.h"
#include "convert/dialects/ranks/files.h"
#include "convert/dialects/ranks/table.h"
#include "convert/facts/scalar.h"
#include "convert/own/classic_states.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/run/sizes.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"
#include "mappings/model/parameter.h"
#include "mappings/model/respelling.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostLeft = 20;

// A parameter of a file, and its tensor.
struct Held {
  i64 tensor;
  const std::vector<ModelParameter>* parameters;
  i32 index;
  bool of_model = true;  // false: the run had it and did not use it

  const ModelParameter& parameter() const { return (*parameters)[index]; }
};

// Used once: run() makes the view.
class Joining {
 public:
  Joining(std::unique_ptr<Store> store, const ModelMap& map, RunSetup& setup, const RunSizes& run,
          RankReading reading)
      : out_{{std::make_unique<PieceStore>(std::move(store))}, {}, {}},
        source_(out_.store->source()),
        map_(map),
        setup_(setup),
        run_(run),
        reading_(reading),
        ranks_(rank_files(source_, map, run)),
        used_(static_cast<std::size_t>(source_.tensor_count())) {}

  RankPieces run() {
    out_.grid = ranks_.grid;
    list_left_states();
    const PipelineSplit split(out_.grid.pp, contents_of_chunks(source_, ranks_, map_, run_));
    refuse_other_layers(split);
    find_setup(split);
    const RankTable table(map_, setup_, out_.grid, split);
    for (const RankFile& file : ranks_.files) add_file(file, table);
    refuse_missing();
    refuse_rest();
    refuse_other_args();
    for (std::string& key : order_) {
      Joined& joined = joined_.at(key);
      out_.store->add(key, std::move(joined.dims), std::move(joined.pieces));
    }
    if (reading_.apart) add_apart();
    if (reading_.compare) {
      refuse_other_steps(source_, steps_);
      refuse_unlike_copies(source_, copies_, reading_.copies);
      refuse_equal_ranks(source_);
    }
    read_facts();
    return std::move(out_);
  }

 private:
  // A tensor of the view, so far.
  struct Joined {
    std::vector<i64> dims;
    std::vector<StorePiece> pieces;
    std::map<std::vector<i64>, i64> first;  // by the place of the box, the tensor that has it first
  };

  void list_left_states();
  void add_apart();
  void find_setup(const PipelineSplit& split);
  void refuse_other_layers(const PipelineSplit& split) const;
  void refuse_other_args() const;
  void add_file(const RankFile& file, const RankTable& table);
  void add_chunk(const RankFile& file, i64 chunk, const RankTable& table,
                 const std::vector<ModelParameter>& parameters, std::vector<Held>& held);
  void add(i64 tensor, const Held& of, std::string_view state = "");
  void add_states(const RankFile& file, const std::vector<Held>& held);
  std::string pickled_step(const ClassicStates& states) const;
  std::vector<std::string> unused_names(std::span<const RankFile> files) const;
  void refuse_missing() const;
  void refuse_rest() const;
  void read_facts();

  RankPieces out_;
  const Store& source_;
  const ModelMap& map_;
  RunSetup& setup_;
  const RunSizes& run_;
  const RankReading reading_;
  const RankFiles ranks_;
  std::vector<bool> used_;  // by tensor of the source
  NameMap<std::string, Joined> joined_;
  std::vector<std::string> order_;           // their keys
  NameSet<std::string> optioned_;            // parameters whose options are made
  std::vector<std::pair<i64, i64>> copies_;  // a tensor of the source, and one that has the same
  NameMap<std::string, i64> step_of_;        // by parameter, the first file's count of steps
  std::vector<std::vector<i64>> steps_;      // of each file, all its counts
  std::vector<std::string> missing_;
};

void Joining::list_left_states() {
  for (const RankFile& f : ranks_.files) {
    if (!reading_.apart)
      for (i64 t : f.apart) out_.states.emplace_back(source_.name(t));
    if (!reading_.states)
      for (i64 t : f.states) out_.states.emplace_back(source_.name(t));
  }
}

void Joining::add_apart() {
  for (const RankFile& f : ranks_.files)
    for (i64 t : f.apart) {
      const std::span<const i64> dims = source_.dims(t);
      out_.store->add(std::string(source_.name(t)), {dims.begin(), dims.end()}, {{t}});
    }
}

// The names of parameters that have several, and the rows of the vocabulary.
void Joining::find_setup(const PipelineSplit& split) {
  NameSet<std::string> names;
  for (const RankFile& f : ranks_.files)
    for (std::size_t c = 0; c < f.chunks.size(); c++)
      for (const auto& [name, t] : f.chunks[c])
        names.insert(name_in_model(name, map_, split.part(f.cell.pp, static_cast<i64>(c)).first_layer));
  setup_.spelling =
      stored_spelling(map_, setup_, [&](const std::string& name) { return names.contains(name); });
  for (const ModelParameter& p : map_.parameters(Grid{}, Cell{}, setup_)) {
    if (p.row->rule != "vocab" || setup_.vocab_rows > 0) continue;
    for (const RankFile& f : ranks_.files)
      for (const RankFile::Names& chunk : f.chunks)
        if (auto at = chunk.find(p.global_name); at != chunk.end() && !source_.dims(at->second).empty()) {
          i64 rows = checked_mul(source_.dims(at->second)[0], out_.grid.tp, "the rows of the vocabulary");
          if (rows >= map_.model().vocab) setup_.vocab_rows = rows;
        }
  }
}

// Refuses args that state other sizes than the model in the files has: a run that takes its sizes from the
// args would build another model.
void Joining::refuse_other_args() const {
  const ModelConfig& model = map_.model();
  auto refuse_other = [&](const char* field, std::optional<i64> said, i64 found) {
    if (!said || *said == found) return;
    throw Error(Code::kNumberGap, "the args of the files say another size than that of the model")
        .file(source_.root())
        .expected(cat(field, " ", found, ", as in the tensors and config.json"))
        .found(cat(field, " ", said_size(*said)))
        .help("`accept` MC1312 uses the files as they are");
  };
  refuse_other("num_layers", run_.layers, std::ssize(model.text.layers));
  if (model.moe.experts > 0) refuse_other("num_experts", run_.experts, model.moe.experts);
  if (model.mtp.depths > 0) refuse_other("mtp_num_layers", run_.mtp_layers, model.mtp.depths);
}

void Joining::refuse_other_layers(const PipelineSplit& split) const {
  const i64 layers = std::ssize(map_.model().text.layers);
  if (split.layers() == layers) return;
  throw Error(Code::kContradiction, "the stages have other layers than the model")
      .file(source_.root())
      .expected(cat(counted(layers, "layer"), ", by config.json"))
      .found(cat(split.layers(), " on ", counted(split.stages(), "stage")))
      .help("`assets` names the folder of the model that the checkpoint is of");
}

void Joining::add_file(const RankFile& file, const RankTable& table) {
  std::deque<std::vector<ModelParameter>> chunks;
  std::vector<Held> held;
  for (i64 c = 0; c < table.chunks(); c++) {
    chunks.push_back(table.parameters(file.cell, c));
    add_chunk(file, c, table, chunks.back(), held);
  }
  // States of a file with other parameters than the model's would fit no group: refuse_rest() has the reason.
  if (reading_.states && !file.states.empty() && missing_.empty() && unused_names({&file, 1}).empty())
    add_states(file, held);
}

// Adds the tensors of a chunk, and to `held` its parameters, in the order in which the file has them.
void Joining::add_chunk(const RankFile& file, i64 chunk, const RankTable& table,
                        const std::vector<ModelParameter>& parameters, std::vector<Held>& held) {
  static const RankFile::Names kNone;
  const RankFile::Names& names = static_cast<std::size_t>(chunk) < file.chunks.size()
                                     ? file.chunks[static_cast<std::size_t>(chunk)]
                                     : kNone;
  const std::ptrdiff_t before = std::ssize(held);
  for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
    const ModelParameter& p = parameters[i];
    auto at = names.end();
    for (const std::string& name : names_in_files(p))
      if (at == names.end()) at = names.find(name);
    const bool idle = table.idle(p, file.cell, chunk);
    if (at == names.end()) {
      if (!idle) missing_.push_back(cat(file.folder, ": ", p.name));
      continue;
    }
    const i64 tensor = at->second;
    used_[tensor] = true;
    if (!std::ranges::equal(source_.dims(tensor), p.shape().dims()))
      throw Error(Code::kSourceShape,
                  "a rank's part of a parameter does not have the shape that the grid gives it")
          .file(cat(source_.root(), "/", file.folder))
          .tensor(p.name)
          .expected(cat(to_string(p.shape()), ", for ", to_string(out_.grid)))
          .found(dims_to_string(source_.dims(tensor)))
          .help(
              p.expert() && !run_.expert_tensor_ranks
                  ? "no args say how experts are divided, so they count as divided as other parameters; `source_etp` says it"
                  : "");
    held.push_back({tensor, &parameters, i, !idle});
    if (!idle) add(tensor, held.back());
  }
  std::sort(held.begin() + before, held.end(),
            [](const Held& a, const Held& b) { return a.tensor < b.tensor; });
}

// `state`: "exp_avg" for a state of the parameter, which is divided as the parameter is; "" for its weights.
void Joining::add(i64 tensor, const Held& of, std::string_view state) {
  const bool whole = of.parameter().split == KeySplit::kNone;
  for (auto& [box, piece] : rank_rows(*of.parameters, of.index, map_.model())) {
    std::string name = state.empty() ? std::move(box.key) : cat(kStateFront, *model_key(box.key), ".", state);
    auto [at, fresh] = joined_.try_emplace(name);
    if (fresh) order_.push_back(name);
    Joined& joined = at->second;
    if (fresh) joined.dims.assign(box.global.dims().begin(), box.global.dims().end());
    auto [first, original] = joined.first.try_emplace(box.offsets, tensor);
    if (!original && (copies_.empty() || copies_.back().second != tensor))
      copies_.emplace_back(first->second, tensor);
    StorePiece part{.tensor = tensor, .to = std::move(box.offsets), .replica = !original};
    if (!whole) part.first_row = piece.first_row, part.rows = piece.rows;
    joined.pieces.push_back(std::move(part));
  }
}

// The pickled count of steps, which Megatron-FSDP has among the options; "" where they have it.
std::string Joining::pickled_step(const ClassicStates& states) const {
  return states.step < 0 || states.options->find("step") ? "" : pickle_scalar(source_, states.step);
}

// The states of the parameters that the file has, and once for each parameter the options of its group.
void Joining::add_states(const RankFile& file, const std::vector<Held>& held) {
  const std::string front = cat(file.folder, "/");
  std::vector<OrderedParameter> order;
  std::vector<const Held*> of;
  std::vector<bool> half;
  for (const Held& h : held) {
    if (h.parameter().buffer()) continue;
    std::span<const i64> dims = source_.dims(h.tensor);
    order.push_back({h.parameter().global_name, {dims.begin(), dims.end()}, h.parameter().expert()});
    of.push_back(&h);
    half.push_back(dtype_bytes(source_.dtype(h.tensor), 1) == 2);
  }
  const ClassicOptimizer optimizer(source_, front, file.states, file.groups);
  const std::vector<ClassicStates> states = optimizer.of(order, half);
  std::vector<i64>& steps = steps_.emplace_back();
  for (std::size_t i = 0; i < states.size(); i++) {
    if (!of[i]->of_model) continue;
    if (const i64 step = states[i].step; step >= 0) {
      steps.push_back(step);
      // Every tensor rank counts the steps of its part.
      if (auto [first, fresh] = step_of_.try_emplace(order[i].key, step); !fresh)
        copies_.emplace_back(first->second, step);
    }
    for (const ClassicStates::State& s : states[i].states) add(s.tensor, *of[i], s.kind);
    if (states[i].options && optioned_.insert(order[i].key).second)
      out_.facts.add_options(order[i].key, *states[i].options, pickled_step(states[i]));
  }
}

void Joining::refuse_missing() const {
  if (missing_.empty()) return;
  const std::vector<std::string> instead = unused_names(ranks_.files);
  Error e(Code::kUnaccounted,
          cat("Megatron's rank files lack ", counted(std::ssize(missing_), "parameter"), " of the model"));
  e.file(source_.root()).each_note(missing_).note(cat("the grid is ", to_string(out_.grid)));
  if (!instead.empty()) e.note(cat("the files have instead: ", listed(instead)));
  throw e.help(what_modules_are(instead));
}

// Names of tensors in the files that belong to no parameter. Extra states are not in the list: Transformer
// Engine keeps them for itself, and no other format has a place for them.
std::vector<std::string> Joining::unused_names(std::span<const RankFile> files) const {
  std::vector<std::string> rest;
  for (const RankFile& f : files)
    for (const RankFile::Names& chunk : f.chunks)
      for (const auto& [name, t] : chunk)
        if (!used_[t] && !name.ends_with("_extra_state")) rest.push_back(cat(f.folder, ": ", escaped(name)));
  std::ranges::sort(rest);
  return rest;
}

void Joining::refuse_rest() const {
  std::vector<std::string> rest = unused_names(ranks_.files);
  if (rest.empty()) return;
  const std::string help = what_modules_are(rest);
  const i64 count = std::ssize(rest);
  rest.resize(std::min(rest.size(), kMostLeft));
  throw Error(Code::kUnaccounted,
              cat("Megatron's rank files have ", counted(count, "tensor"), " that the model does not have"))
      .file(source_.root())
      .each_note(rest)
      .help(help);
}

// Facts of the first rank; each entry of the dict that it saved is an object.
void Joining::read_facts() {
  out_.facts.store = &source_;
  const std::string front = cat(ranks_.files[0].folder, "/");
  for (std::size_t i = 0; i < source_.objects().size(); i++) {
    std::string_view name = source_.objects()[i].name;
    if (!name.starts_with(front)) continue;
    if (std::shared_ptr<const PickleValue> value = source_.object(static_cast<i64>(i)))
      out_.facts.add_entry(name.substr(front.size()), *value, true);
  }
}

}  // namespace

RankPieces rank_pieces(std::unique_ptr<Store> store, const ModelMap& map, RunSetup& setup,
                       const RunSizes& run, RankReading reading) {
  return Joining(std::move(store), map, setup, run, reading).run();
}

}  // namespace mckpt::impl
