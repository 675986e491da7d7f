#include "convert/compare/checks/model_class.h"

#include <algorithm>
#include <iterator>

#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/notes.h"
#include "core/items/shape.h"
#include "hf/folder/assets.h"
#include "hf/folder/front_of_names.h"
#include "hf/folder/known_tensors.h"
#include "hf/folder/model_class.h"
#include "hf/folder/model_folder.h"
#include "hf/folder/name_words.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/store.h"
#include "mappings/model/accounting.h"

namespace mckpt::impl {

Finding finding_of(const Error& e) {
  constexpr std::size_t kMostNotes = 5;
  const std::vector<std::string>& notes = e.notes();
  // Notes about tensors that do not match have both sides of each; the two values of the error count them
  // once more.
  const bool in_notes = !notes.empty() && (e.code() == Code::kUnaccounted || e.code() == Code::kSourceShape);
  Error few(e.code(), e.message());
  few.file(e.file()).tensor(e.tensor()).offset(e.offset()).help(e.help());
  if (!in_notes) few.expected(e.expected()).found(e.found());
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); i++) few.note(notes[i]);
  if (notes.size() > kMostNotes) few.note(cat("and ", notes.size() - kMostNotes, " more"));
  return to_finding(few);
}

std::vector<Finding> facts_unlike_config(const CheckpointModel& model) {
  std::vector<Finding> out;
  std::ranges::copy_if(model.oddities(), std::back_inserter(out),
                       [](const Finding& f) { return f.code == Code::kContradiction; });
  return out;
}

Check not_compared(std::string_view why) {
  return {.name = "model", .unit = "tensors", .note = cat("not compared with config.json: ", why)};
}

namespace {

// `path`, `name`: of the folder and its class.
std::vector<Finding> misfits_of(std::span<const KnownTensor> expected, const Store& store,
                                const std::string& name, const std::string& path) {
  Mismatches mismatches;
  std::vector<std::string_view> extra;
  NameMap<std::string_view, std::span<const i64>> stored;
  NameSet<std::string_view> names;
  for (i64 t = 0; t < store.tensor_count(); t++) stored.emplace(store.name(t), store.dims(t));
  for (const KnownTensor& t : expected) {
    names.insert(t.name);
    const auto at = stored.find(t.name);
    if (at == stored.end())
      mismatches.missing(t.name);
    else if (t.dims && !std::ranges::equal(*t.dims, at->second))
      mismatches.wrong_shape(t.name, dims_to_string(*t.dims), "", dims_to_string(at->second));
  }
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (!names.contains(store.name(t)) && !is_computed(store.name(t))) extra.emplace_back(store.name(t));
  std::vector<Finding> out;
  if (!mismatches.empty())
    out.push_back(finding_of(
        mismatches.error()
            .file(path)
            .prefix(cat("class ", name, ": "))
            .help("compare architectures in config.json with the tensors, which `mckpt ls` lists")));
  if (!extra.empty())
    out.push_back(
        {.code = Code::kUnaccounted,
         .message = cat("the folder has tensors beside those of the class ", name, ": ", listed(extra)),
         .warning = true});
  return out;
}

}  // namespace

bool has_other_class(const Store& store, const ModelFolder& folder) {
  return folder.config && class_of(*folder.config).relation != ClassRelation::kOfTable &&
         folder_map_text(Folder(store.root(), store.opening())).empty();
}

void check_class(const Store& store, const ModelFolder& folder, VerifyReport& report) {
  const std::shared_ptr<const Store> weights =
      dequantized(open_safetensors_folder(store.root(), store.opening()), quant_declaration_of(store),
                  DType::kBF16, BadNumbers::kShow);
  Notes notes;
  const std::vector<KnownTensor> expected = class_tensors(folder, *weights, notes);
  if (expected.empty()) {
    report.add(not_compared(no_table_text(folder)), {});
    return;
  }
  const std::string name = escaped(folder.config->architecture);
  std::vector<Finding> found = misfits_of(expected, *weights, name, store.root());
  std::string note;
  std::vector<std::string_view> names;
  for (const KnownTensor& t : expected) names.push_back(t.name);
  if (const FrontedStore fronted = found.empty() ? FrontedStore() : with_front_of_class(weights, names, true);
      fronted.store && misfits_of(expected, *fronted.store, name, store.root()).empty())
    found.clear(), note = fronted_text({{"the files", fronted.how}});
  for (const Note& n : notes)
    if (n.kind == Note::Kind::kWarning)
      found.push_back({.code = Code::kUnaccounted, .message = n.text, .warning = true});
  const Check::Status status = status_of(found);
  report.add({.name = "model",
              .status = status,
              .count = store.tensor_count(),
              .unit = "tensors",
              .note = std::move(note)},
             std::move(found));
}

}  // namespace mckpt::impl
