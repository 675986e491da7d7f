// Decides in this order, because each step needs the one before it:
//
//   1 the file     "pytorch_model.bin:" in front of the names of a folder of separate files
//   2 the section  the dict of the model; where dicts are not known, "app.model." and such, with one reading
//   3 beside       what begins as the states of optimizers, schedulers and loaders do. Everything in a dict that
//                  is known to be the model's is the model's, and so is what the model's folder lists. The lists
//                  in the files of ZeRO come before any name
//   4 wrappers     _orig_mod, _fsdp_wrapped_module, _checkpoint_wrapped_module, anywhere
//   5 the front    what is in front of the names of the model's folder, if these are known; "module.",
//                  "_forward_module." and "model.", as long as all names have one of them
#include "convert/own/model_section.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "convert/own/saved_dicts.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/text.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "hf/folder/name_words.h"
#include "io/dcp/keys/key.h"
#include "io/file/parallel.h"
#include "io/store/open/format_ids.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

// Sections that only a dict around a model's state dict has.
constexpr std::string_view kSections[] = {"app.model.",      "state.model.",    "policy.model.",
                                          "policy.weights.", "policy/weights/", "model_state_dict.",
                                          "state_dict."};
// In front of everything that a model has, if it is there at all.
constexpr std::string_view kFronts[] = {"module.", "_forward_module."};
constexpr std::string_view kOfAdapters[] = {
    "lora_A",     "lora_B",          "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector",
    "base_layer", "modules_to_save",
};
constexpr std::string_view kFlat[] = {"_flat_param", "flat_param"};

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

template <std::size_t N>
bool any_part(const std::string_view (&table)[N], std::string_view name) {
  bool found = false;
  each_part(name, [&](std::string_view part) { found |= has(table, part); });
  return found;
}

// The names of several torch files may begin with a file or a rank, FILE:NAME. Other colons are letters.
bool may_name_files(const Store& store) {
  const FormatFamily family = format_family(store.format());
  return (family == FormatFamily::kTorch || family == FormatFamily::kMegatron) &&
         store.format() != Format::kTorchShards &&
         !(store.files().size() == 1 && store.files()[0].path.empty());
}

// One pass over the names of a store.
class Sections {
 public:
  Sections(const Store& store, const SectionOptions& options)
      : store_(store), options_(options), listed_(listed_of_model(store)) {}

  SectionedNames run() {
    take_file();
    if (!take_dict()) take_section();
    if (!dict_known_) leave_beside();
    std::ranges::sort(out_.beside);
    find_floats_beside();
    if (names_.empty()) refuse_no_model();
    if (!options_.with_adapter) take_wrappers();
    refuse_other_kinds();
    drop_computed();
    join_equal();
    out_.model = std::move(names_);
    return std::move(out_);
  }

 private:
  void take_wrappers() {
    for (NamedTensor& n : names_) n.name = without_wrappers(n.name);
    take_expected_front();
    while (take_front()) {
    }
  }
  bool has_word_beside(const NamedTensor& n) const;
  bool is_beside(i64 tensor, std::string_view name) const;
  void take_file();
  bool take_dict();
  bool take_named(std::span<const std::string_view> dicts);
  void keep_dict(const std::string& front, std::span<const std::string_view> dicts);
  void take_section();
  void leave_beside();
  void find_floats_beside();
  void take_expected_front();
  bool take_inner_model();
  bool take_front();
  bool all_begin_with(std::string_view front) const;
  void take(std::string_view front);
  bool has_all_expected() const;
  [[noreturn]] void refuse_several(std::vector<std::string> candidates) const;
  [[noreturn]] void refuse_no_model() const;
  void refuse_other_kinds() const;
  void drop_computed();
  void join_equal();
  Error refusal(Code code, const char* what, const NamedTensor& n) const {
    return Error(code, what).file(store_.root()).tensor(store_.name(n.tensor));
  }

  const Store& store_;
  const SectionOptions& options_;
  const std::vector<bool> listed_;  // by tensor; empty: the format has no list
  std::vector<NamedTensor> names_;
  SectionedNames out_;
  bool dict_known_ = false;  // all names are names of a dict in the save, which is the model's
  bool fits_ = false;        // the names are in the model's folder
};

// By the name alone, where no list says it. Names that a list has not are beside already.
bool Sections::has_word_beside(const NamedTensor& n) const {
  return listed_.empty() && is_beside_model(n.name);
}

// A tensor that the model's folder lists is the model's, whatever its name is, and so is one of the other
// side's.
bool Sections::is_beside(i64 tensor, std::string_view name) const {
  if (!listed_.empty()) return !listed_[static_cast<std::size_t>(tensor)];
  return is_beside_model(name) && !options_.expected.contains(without_wrappers(name)) &&
         !options_.in_model.contains(name);
}

// Lists all names; the names of one file lose the file's name, which the others then do not have.
void Sections::take_file() {
  std::string_view file;
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    std::string_view name = store_.name(t);
    if (is_beside(t, name)) {
      out_.beside.push_back(t);
      continue;
    }
    NamedTensor n{t, std::string(name)};
    std::string_view front = may_name_files(store_) ? name.substr(0, name.find(':') + 1) : "";
    if (front.starts_with("rank_"))
      throw refusal(Code::kBadShards, "the ranks have this tensor with different values", n)
          .help("only what all ranks have alike, or pieces with their places, can be joined");
    if (names_.empty()) file = front;
    if (front != file)
      throw refusal(Code::kUnaccounted, "the tensors of the model are in files of their own", n)
          .expected(cat("all in ", escaped(file.empty() ? "one file" : file.substr(0, file.size() - 1))))
          .found(escaped(front.empty() ? name : front.substr(0, front.size() - 1)))
          .help("name one of the files");
    names_.push_back(std::move(n));
  }
  if (!file.empty()) take(std::string(file));
}

// The dict of the model, if the checkpoint keeps the dicts that were saved, and they say which it is.
bool Sections::take_dict() {
  std::vector<std::string_view> dicts = saved_dicts(store_);
  for (std::string_view& dict : dicts) dict.remove_prefix(std::min(dict.size(), out_.section.size()));
  if (take_named(dicts)) return true;
  if (dicts.empty() || names_.empty()) return false;
  ModelDict model = model_dict(store_, names_, dicts, options_.expected);
  if (!model.known) {
    const bool as_saved = options_.keep_all || has_all_expected();
    if (!model.candidates.empty() && !as_saved) refuse_several(model.candidates);
    return false;
  }
  keep_dict(model.front, dicts);
  return true;
}

// The dict that the caller names.
bool Sections::take_named(std::span<const std::string_view> dicts) {
  const NamedDict dict{options_.model_dict, names_, dicts, options_.expected};
  if (dict.name.empty()) return false;
  const std::string front = dict.front();
  if (front.empty() && options_.dict_if_there) return false;
  if (front.empty()) dict.refuse_unknown(store_);
  keep_dict(front, dicts);
  out_.dict_taken = true;
  return true;
}

// Everything else is beside. Where dicts are not known, leave_beside() judges the names behind the front.
void Sections::keep_dict(const std::string& front, std::span<const std::string_view> dicts) {
  dict_known_ = !front.empty() && !dicts.empty();
  std::erase_if(names_, [&](const NamedTensor& n) {
    std::string_view dict = n.name;
    if (!dicts.empty()) dict = dicts[static_cast<std::size_t>(n.tensor)];
    bool in = front.empty() ? dict.empty() : dict.starts_with(front);
    // A dict further in, such as an optimizer's, is judged by its name.
    if (in && !dicts.empty() && dict != front)
      in = !is_beside(n.tensor, std::string_view(n.name).substr(front.size()));
    if (!in) out_.beside.push_back(n.tensor);
    return !in;
  });
  take(front);
}

bool Sections::has_all_expected() const {
  const ExpectedTensors& expected = options_.expected;
  return !expected.empty() && count_expected(names_, 0, expected) == std::ssize(expected);
}

void Sections::refuse_several(std::vector<std::string> candidates) const {
  for (std::string& dict : candidates)
    dict = dict.empty() ? "the outermost dict" : escaped(std::string_view(dict).substr(0, dict.size() - 1));
  std::vector<std::string_view> listing(candidates.begin(), candidates.end());
  throw Error(Code::kUnaccounted, "several dicts of the checkpoint may be the model")
      .file(store_.root())
      .expected("one, or one named model, module, state_dict or model_state_dict")
      .found(listed(listing))
      .help(
          options_.expected.empty()
              ? "`assets` HF_DIR   the model's folder with weights: the dict that has its tensors is taken; or `model_dict` NAME"
              : "`model_dict` NAME   the dict that is the model: the tensors of the model's folder do not show which one it is");
}

// A section applies if what does not have it begins alike, as "app.optim." does beside "app.model.", or is
// beside anyway.
void Sections::take_section() {
  for (std::string_view section : kSections) {
    std::string_view head = section.substr(0, section.find_first_of("./") + 1);
    auto begins = [this](std::string_view text) {
      return [this, text](const NamedTensor& n) { return n.name.starts_with(text) && !has_word_beside(n); };
    };
    if (std::ranges::none_of(names_, begins(section))) continue;
    auto other = [&](const NamedTensor& n) { return !n.name.starts_with(head) && !has_word_beside(n); };
    if (std::ranges::any_of(names_, other)) continue;
    std::erase_if(names_, [&](const NamedTensor& n) {
      bool model = begins(section)(n);
      if (!model) out_.beside.push_back(n.tensor);
      return !model;
    });
    return take(section);
  }
}

void Sections::leave_beside() {
  std::erase_if(names_, [&](const NamedTensor& n) {
    const bool beside = is_beside(n.tensor, n.name);
    if (beside) out_.beside.push_back(n.tensor);
    return beside;
  });
}

void Sections::find_floats_beside() {
  std::ranges::copy_if(out_.beside, std::back_inserter(out_.floats_beside), [&](i64 t) {
    const bool has_items = !store_.dims(t).empty() && store_.shape(t).items() > 0;
    return is_castable(store_.dtype(t)) && has_items && !is_certain_state(store_.name(t));
  });
}

bool Sections::all_begin_with(std::string_view front) const {
  return std::ranges::all_of(names_, [&](const NamedTensor& n) {
    return n.name.size() > front.size() && n.name.starts_with(front);
  });
}

void Sections::take(std::string_view front) {
  for (NamedTensor& n : names_) n.name.erase(0, front.size());
  out_.section += front;
}

// Takes the parts in front of all names without which the most names are in the model's folder.
void Sections::take_expected_front() {
  const ExpectedTensors& expected = options_.expected;
  if (expected.empty()) return;
  i64 most = count_expected(names_, 0, expected);
  std::string best;
  const std::string first = names_[0].name;
  for (std::size_t dot = first.find('.'); dot != first.npos; dot = first.find('.', dot + 1)) {
    std::string front = first.substr(0, dot + 1);
    if (!all_begin_with(front)) break;
    if (i64 count = count_expected(names_, front.size(), expected); count > most)
      most = count, best = std::move(front);
  }
  fits_ = 2 * most > std::min(std::ssize(names_), std::ssize(expected));  // torchtitan has a few of the names
  if (fits_)
    take(best);
  else
    fits_ = take_inner_model();
}

// A model inside of another one, as TRL has it beside its head of values:
//
//   pretrained_model.model.norm.weight    model.norm.weight
//   v_head.summary.weight                 v_head.summary.weight
//
// Applies if exactly one front has all that the folder has behind it (what is missing there may be without a
// front, as lm_head); names without the front stay.
bool Sections::take_inner_model() {
  const ExpectedTensors& expected = options_.expected;
  NameSet<std::string> whole;
  NameMap<std::string, i64> behind;  // by front: names that the folder has
  for (const NamedTensor& n : names_) {
    whole.insert(n.name);
    for (std::size_t dot = n.name.find('.'); dot != n.name.npos; dot = n.name.find('.', dot + 1))
      if (expected.contains(n.name.substr(dot + 1))) behind[n.name.substr(0, dot + 1)]++;
  }
  const std::string* found = nullptr;
  for (const auto& entry : behind) {
    const std::string& front = entry.first;
    auto is_there = [&](const auto& e) {
      return whole.contains(cat(front, e.first)) || whole.contains(e.first);
    };
    if (2 * entry.second <= std::ssize(expected) || !std::ranges::all_of(expected, is_there)) continue;
    if (found != nullptr) return false;
    found = &front;
  }
  if (found == nullptr) return false;
  for (NamedTensor& n : names_)
    if (n.name.starts_with(*found) && whole.contains(n.name.substr(found->size()))) return false;
  for (NamedTensor& n : names_)
    if (n.name.starts_with(*found)) n.name.erase(0, found->size());
  return true;
}

bool Sections::take_front() {
  if (fits_) return false;
  for (std::string_view front : kFronts)
    if (all_begin_with(front)) return take(front), true;
  constexpr std::string_view kModel = "model.";
  if (!all_begin_with(kModel)) return false;
  bool of_whole = std::ranges::any_of(names_, [&](const NamedTensor& n) {
    return is_of_whole_model(std::string_view(n.name).substr(kModel.size()));
  });
  if (of_whole) take(kModel);
  return of_whole;
}

void Sections::refuse_no_model() const {
  Error e(Code::kUnknownFormat, "the checkpoint has no tensors of a model");
  e.file(store_.root()).found(cat(counted(store_.tensor_count(), "tensor"), " of other things"));
  if (store_.tensor_count() > 0) e.note(cat("such as ", escaped(store_.name(0))));
  throw e.help("name the folder or file with the model, which is often beside that of the optimizer");
}

void Sections::refuse_other_kinds() const {
  for (const NamedTensor& n : names_) {
    if (!options_.with_adapter && (n.name.starts_with("base_model.model.") || any_part(kOfAdapters, n.name)))
      throw refusal(Code::kUnsupportedTensor,
                    "the model is wrapped by PEFT: this is a tensor of an adapter's model", n)
          .help(
              "factors of LoRA behind base_model.model. are merged, and so is an adapter alone with its `base`; merge others in the training program (merge_and_unload), and save again");
    if (any_part(kFlat, n.name))
      throw refusal(Code::kUnsupportedTensor, "this is a flat parameter of FSDP1, which keeps no shapes", n)
          .help("save with state_dict_type SHARDED_STATE_DICT or FULL_STATE_DICT");
  }
}

void Sections::drop_computed() {
  std::erase_if(names_, [&](const NamedTensor& n) {
    const bool computed = options_.expected.empty()
                              ? is_computed_by_all(n.name)
                              : is_computed(n.name) && !options_.expected.contains(n.name);
    if (computed) out_.beside.push_back(n.tensor);
    return computed;
  });
  std::ranges::sort(out_.beside);
  if (names_.empty()) refuse_no_model();
}

// Keeps the first of equal tensors of one name.
void Sections::join_equal() {
  NameMap<std::string_view, i64> first;
  std::vector<std::pair<i64, i64>> pairs;
  for (const NamedTensor& n : names_)
    if (auto [at, is_new] = first.emplace(n.name, n.tensor); !is_new)
      pairs.emplace_back(at->second, n.tensor);
  if (pairs.empty()) return;
  std::vector<bool> same = have_same_bytes(store_, pairs, default_threads());
  for (i64 i = 0; i < std::ssize(pairs); i++)
    if (!same[i])
      throw refusal(Code::kUnaccounted,
                    "two tensors have one name without the wrappers of their modules, and differ",
                    {pairs[i].second, ""})
          .note(cat("the other one is ", escaped(store_.name(pairs[i].first))))
          .help("remove one of them from the state dict, and save again");
  for (auto [kept, copy] : pairs) out_.beside.push_back(copy);
  std::ranges::sort(out_.beside);
  std::erase_if(names_,
                [&](const NamedTensor& n) { return std::ranges::binary_search(out_.beside, n.tensor); });
}

}  // namespace

SectionedNames sectioned_names(const Store& store, const SectionOptions& options) {
  return Sections(store, options).run();
}

}  // namespace mckpt::impl
