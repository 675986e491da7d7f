// Adds tensors in the order of the header's table. A row of a file that is nothing of it is a tensor by
// itself.
#include "io/zero/assembly.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/items/placement.h"
#include "io/zero/experts.h"
#include "io/zero/files.h"
#include "io/zero/trained.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kModule = "module.";
constexpr std::string_view kNoSecondNames =
    "; no file has shared_params, so if they are shared with others, as a tied output layer is, this is the file of another rank under the name of rank 0's";

class Assembly {
 public:
  Assembly(const ZeroSave& save, ZeroStore& store)
      : save_(save), store_(store), model_(save.model()), tensors_(save, store) {
    for (const auto& m : save.models) rows_.emplace_back(store.table(m.file));
    if (model_.groups)
      for (const ZeroGroup& g : *model_.groups)
        for (const ZeroParameter& p : g) known_.insert(p.name);
    for (const ZeroParameter& p : model_.frozen) known_.insert(p.name);
    for (const auto& [second, first] : model_.shared) known_.insert(second);
  }

  ZeroAssembled run() {
    const bool has_parts = !save_.optimizers.empty() && model_.groups;
    if (save_.stage > 0 && !has_parts) report_no_parts();
    if (!has_parts) known_.clear();
    add_buffers();
    if (has_parts) {
      add_frozen();
      add_trained(tensors_);
    }
    add_rest_of_module();
    add_experts();
    if (has_parts) add_second_names();
    const i64 parts = store_.tensor_count();
    add_rest();
    return {parts, copies_};
  }

 private:
  ZeroPlace in_model(std::size_t m, std::string_view prefix, std::string_view name) const {
    return {save_.models[m].file, rows_[m].row(cat(prefix, name))};
  }
  Shape shape(const ZeroPlace& p) const { return Shape(store_.table(p.file).dims(p.row)); }

  void report(Code code, std::string message, std::string_view tensor, std::string path,
              bool warning = false) {
    store_.add_finding({.code = code,
                        .tensor = std::string(tensor),
                        .file = std::move(path),
                        .message = std::move(message),
                        .warning = warning});
  }

  void report_no_parts() {
    report(Code::kShardMissing,
           cat("no file of the optimizer is here (*_optim_states.pt), so the float32 weights are missing: ",
               save_.stage == 3 ? "there are no others"
                                : "those of 'module' are shown, with which training computes"),
           "", "");
  }

  // ZeRO 3 has a copy for each rank, which may differ: rank 0's are used, as by zero_to_fp32.
  void add_buffers() {
    for (std::string_view name : model_.buffers) {
      std::vector<ZeroPlace> places;
      std::vector<std::string> unlike;
      for (std::size_t m = 0; m < save_.models.size(); m++) {
        ZeroPlace p = in_model(m, kModule, name);
        if (!p.is_there()) continue;
        tensors_.use(p);
        if (places.empty() || alike(places[0], p))
          places.push_back(p);
        else
          unlike.push_back(save_.models[m].path);
      }
      if (places.empty() || tensors_.has(name)) continue;
      if (!unlike.empty())
        report(Code::kBadShards,
               cat("the buffer has other values than in ", save_.models[0].path, ", which are used"), name,
               unlike[0], true);
      const i64 copies = std::ssize(places);
      const Shape whole = shape(places[0]);
      tensors_.add(name, store_.add_copies_layout(whole, copies),
                   tensors_.add_column("buffers", std::move(places)));
    }
  }

  bool alike(const ZeroPlace& a, const ZeroPlace& b) const {
    const TorchTable &x = store_.table(a.file), &y = store_.table(b.file);
    return x.dtype(a.row) == y.dtype(b.row) && std::ranges::equal(x.dims(a.row), y.dims(b.row)) &&
           std::ranges::equal(x.strides(a.row), y.strides(b.row)) &&
           (x.extent_bytes(a.row) == 0 || (store_.checksum(a) && store_.checksum(a) == store_.checksum(b)));
  }

  // Their fragments: whole tensors in ZeRO 2, vectors of the ranks in ZeRO 3.
  void add_frozen() {
    if (save_.stage >= 2 && model_.leaves_out_frozen)
      report(
          Code::kFrozenParameters,
          "the checkpoint was saved with exclude_frozen_parameters: parameters that were not trained are in no file, and their names are not known",
          "", save_.models[0].path);
    for (const ZeroParameter& p : model_.frozen) {
      // The list has only the experts of the first rank, under the numbers that they have there.
      if (!save_.experts.empty() && zero_expert_name(p.name)) continue;
      std::vector<ZeroPlace> places;
      std::vector<ZeroStretch> stretches;
      for (std::size_t m = 0; m < save_.models.size(); m++) {
        places.push_back(in_model(m, kZeroFragments, p.name));
        if (!places.back().is_there()) continue;
        const ItemRange items = save_.stage == 3
                                    ? chunk_part(p.shape.items(), save_.ranks, save_.models[m].rank)
                                    : ItemRange{0, p.shape.items()};
        if (std::string wrong = unlike_fragment(p, places.back(), items); !wrong.empty()) {
          report(Code::kBadShards, wrong, p.name, save_.models[m].path);
          places.back() = {};
        } else if (!items.empty()) {
          stretches.push_back({static_cast<i64>(m), 0, items});
        }
      }
      const i64 column = tensors_.add_column("fragments", std::move(places));
      if (column < 0)
        report(Code::kFrozenParameters, "the parameter was not trained, and its values are in no file",
               p.name, save_.models[0].path);
      else if (!tensors_.has(p.name))
        tensors_.add(
            p.name,
            save_.stage == 3 ? store_.add_layout(p.shape, stretches) : store_.add_copies_layout(p.shape, 1),
            column);
    }
  }

  // The fault of a fragment that should have these items; "": none.
  std::string unlike_fragment(const ZeroParameter& p, const ZeroPlace& place, ItemRange items) const {
    const Shape found = shape(place);
    if (save_.stage != 3 && found == p.shape) return "";
    const bool vector = found.rank() == 1 && store_.table(place.file).strides(place.row).empty();
    if (save_.stage == 3 && vector && found.items() >= items.items()) return "";
    return cat("the fragment of the parameter has ", to_string(found), ", expected ",
               save_.stage == 3 ? cat("at least ", items.items(), " items") : to_string(p.shape));
  }

  // By its path, as other tensors that are not the model's.
  void add_copy(std::string_view of, const ZeroPlace& place) {
    const std::string_view row = store_.table(place.file).name(place.row);
    store_.add_module_copy(
        place.file == 0 ? std::string(row) : cat(store_.files()[place.file].path, ":", row), of, place);
    copies_++;
  }

  // Parameters that nothing lists were not trained: `module` has them, but zero_to_fp32 leaves them out. In
  // ZeRO 3 it has empty tensors instead.
  void add_rest_of_module() {
    std::vector<std::string_view> frozen, lost;
    const TorchTable& table = store_.table(save_.models[0].file);
    for (i64 row = 0; row < table.size(); row++) {
      const ZeroPlace place{save_.models[0].file, row};
      std::string_view name = table.name(row);
      if (!name.starts_with(kModule) || tensors_.is_used(place)) continue;
      name.remove_prefix(kModule.size());
      const bool empty = Shape(table.dims(row)).items() == 0;
      if (known_.contains(name) || tensors_.has(name)) {
        if (!empty) add_copy(name, place);
      } else if (empty && save_.stage == 3) {
        lost.push_back(name);
      } else {
        tensors_.use(place);
        const i64 layout = store_.add_copies_layout(Shape(table.dims(row)), 1);
        tensors_.add(name, layout, store_.add_column({place}));
        frozen.push_back(name);
      }
    }
    if (!frozen.empty() && !known_.empty())
      report(Code::kFrozenParameters,
             cat(counted(std::ssize(frozen), "tensor"), " of 'module' that training did not change ",
                 frozen.size() == 1 ? "is" : "are", " read from there, in ",
                 dtype_name(store_.dtype(find_tensor(store_, frozen[0]))), ": ", listed(frozen, 3),
                 "; DeepSpeed's zero_to_fp32 leaves them out"),
             "", save_.models[0].path, true);
    report_lost(std::move(lost));
  }

  // Second names are in the file of rank 0 alone, so they are lost where another file has its name. If a file
  // of another rank has them, that is reported already (saves.cc).
  void report_lost(std::vector<std::string_view> lost) {
    const bool several = save_.stage == 3 && save_.models.size() > 1 && model_.shared.empty();
    for (const auto& m : save_.models)
      if (model_.shared.empty())
        for (const auto& [second, first] : m.states.shared) std::erase(lost, second);
    if (lost.empty()) return;
    report(Code::kFrozenParameters,
           cat("the values of ", counted(std::ssize(lost), "parameter"),
               " are in no file: ", listed(lost, 20), several ? kNoSecondNames : ""),
           "", save_.models[0].path);
  }

  // Experts that were not trained, and all of them without ZeRO. Copies of trained ones have the same shapes.
  void add_experts() {
    for (const ZeroPlainFile& f : save_.experts) {
      const TorchTable& table = store_.table(f.file);
      for (i64 row = 0; row < table.size(); row++) {
        const ZeroPlace place{f.file, row};
        std::string_view name = table.name(row);
        tensors_.use(place);
        if (!tensors_.has(name)) {
          tensors_.add(name, store_.add_copies_layout(shape(place), 1), store_.add_column({place}));
          continue;
        }
        add_copy(name, place);
        if (tensors_.shape(name) != shape(place))
          report(Code::kBadShards,
                 cat("the expert has ", to_string(shape(place)), ", its float32 weights ",
                     to_string(tensors_.shape(name))),
                 name, f.path);
      }
    }
  }

  void add_second_names() {
    for (const auto& [second, first] : model_.shared) {
      if (tensors_.has(second))
        report(Code::kBadShards,
               cat("the parameter is shared with ", escaped(first), ", but has weights of its own"), second,
               save_.models[0].path);
      else if (!tensors_.add_second(second, first))
        report(Code::kBadShards,
               cat("the parameter is shared with ", escaped(first), ", which is in no file"), second,
               save_.models[0].path);
    }
  }

  // Tensors of no use above: of the user's own state, or of another optimizer's kind.
  void add_rest() {
    for (const ZeroPlainFile& f : save_.others) {
      const TorchTable& table = store_.table(f.file);
      std::string front = cat("optimizer.", f.path.substr(0, f.path.find("_mp_rank_")), ".");
      for (i64 row = 0; row < table.size(); row++) {
        tensors_.use({f.file, row});
        store_.add_row(front + std::string(table.name(row)), {f.file, row});
      }
    }
    for (i32 f = save_.first_file; f < save_.end_file(); f++) {
      const TorchTable& table = store_.table(f);
      for (i64 row = 0; row < table.size(); row++) {
        const ZeroPlace place{f, row};
        if (tensors_.is_used(place) || (is_model(f) && table.name(row).starts_with(kModule))) continue;
        store_.add_row(
            f == 0 ? std::string(table.name(row)) : cat(store_.files()[f].path, ":", table.name(row)), place);
      }
    }
  }

  // They are added first.
  bool is_model(i32 file) const { return file - save_.first_file < std::ssize(save_.models); }

  const ZeroSave& save_;
  ZeroStore& store_;
  const ZeroModelStates& model_;
  ZeroTensors tensors_;
  std::vector<ZeroRows> rows_;       // of the models
  NameSet<std::string_view> known_;  // parameters that the files list
  i64 copies_ = 0;
};

}  // namespace

ZeroAssembled assemble_zero(const ZeroSave& save, ZeroStore& store) { return Assembly(save, store).run(); }

}  // namespace mckpt::impl
