// Two sources: a DCP folder as it is, with everything in it, and the model's tensors of any other checkpoint.
#include "convert/plan/targets/dcp.h"

#include <algorithm>

#include "convert/jobs/chunk_jobs.h"
#include "convert/keys/stored_chunks.h"
#include "convert/open/damage.h"
#include "convert/open/open.h"
#include "convert/own/names.h"
#include "convert/own/saved_states.h"
#include "convert/plan/iteration.h"
#include "convert/plan/result_ranks.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/plain_layout.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/item_cast.h"
#include "hf/quantized/recognise.h"
#include "io/dcp/check/check.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// "app.model." with a dot at its end; "" stays "".
std::string section_text(const std::string& given) {
  std::string section = given.empty() || given.ends_with('.') ? given : given + '.';
  if (section.starts_with('.') || section.find("..") != section.npos)
    throw Error(Code::kUsage, "`section` has an empty part")
        .found(escaped(given))
        .help("names of nested dicts with dots between them, as in app.model.");
  return section;
}

// Names in nested dicts, one for each part of the section.
PlainLayout::Naming names_under(const std::string& section) {
  std::vector<i32> dots;
  for (std::size_t at = section.find('.'); at != section.npos; at = section.find('.', at + 1))
    dots.push_back(static_cast<i32>(at));
  return [section, dots](std::string_view name) { return DcpName{cat(section, name), dots}; };
}

// The ranks of the result, each with a file.
i64 ranks_of(const ToDcpOptions& options, const Store& store) {
  bool of_ranks = format_family(store.format()) == FormatFamily::kDcp;
  i64 ranks = options.ranks.value_or(of_ranks ? std::max<i64>(store.ranks(), 1) : 1);
  refuse_many_ranks(ranks, store);
  return ranks;
}

// Codes and scales are copied as they are, and tensors with Megatron's names are cast by `reshard`, which
// knows the weights.
void refuse_types(const Store& store, const ToDcpOptions& options) {
  if (!options.dtype) return;
  if (has_codes(store))
    throw Error(Code::kQuantized, "the tensors are codes and scales, for which no type can be chosen")
        .file(store.root())
        .help("leave `dtype` out, and then: mckpt convert dequantize SRC DST");
  if (!has_own_names(store))
    throw Error(Code::kUsage, "`dtype` is for tensors with the model's own names")
        .file(store.root())
        .found("the names of Megatron's modules")
        .help("mckpt convert reshard SRC DST has a `dtype` for them");
}

// The types of the result: floats of the model are cast, all else keeps its own. `is_model`: by tensor of
// the store; empty: all are the model's.
PlainLayout::Typing types_of(const Store& store, std::optional<DType> dtype, std::vector<bool> is_model) {
  if (!dtype) return {};
  return [&store, dtype, is_model = std::move(is_model)](i32 t) {
    const bool cast = (is_model.empty() || is_model[t]) && is_castable(store.dtype(t));
    return cast ? *dtype : store.dtype(t);
  };
}

// Which tensors of a DCP folder get the type that is chosen. Says what keeps its type.
std::vector<bool> model_tensors(const Store& store, const ToDcpOptions& options, Notes& notes) {
  if (!options.dtype) return {};
  std::vector<bool> out = takes_type(store);
  std::optional<SavedStates> left;
  if (options.weights_only) left.emplace(store);
  std::vector<std::string_view> kept;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    if (out[t]) continue;
    if (is_castable(store.dtype(t)) && !(left && left->has(store.name(t)))) kept.push_back(store.name(t));
  }
  if (!kept.empty())
    notes.note(cat("types   ", counted(std::ssize(kept), "tensor"), " beside the model ",
                   kept.size() == 1 ? "keeps its type" : "keep their types",
                   ", states of the optimizer too: ", listed(kept, 3)));
  return out;
}

// The folder that torch loads.
std::unique_ptr<KeptKeys> dcp_target(const Store& store, std::unique_ptr<PlainLayout> layout,
                                     std::string_view section, bool with_objects,
                                     const ToDcpOptions& options) {
  auto target = std::make_unique<KeptKeys>(store, std::move(layout), with_objects, options.rank == 0);
  target->proof.left_out = [](i64) -> ProofInput::LeftOut {
    return {"`weights_only` leaves the optimizer out"};
  };
  target->format = "torch DCP";
  target->identified.result = plan_dcp_folder(*target, target->layout(), options.target);
  target->identified.settings.emplace("to-dcp", MCKPT_VERSION);
  target->identified.settings->set("section", section)
      .set("weights_only", options.weights_only)
      .set("dtype", options.dtype ? dtype_name(*options.dtype) : "keep");
  return target;
}

// A DCP folder: everything in it stays.
Conversion plan_dcp(std::unique_ptr<Store> source, const ToDcpOptions& options) {
  if (options.section)
    throw Error(Code::kUsage, "a DCP folder keeps its names: `section` is for other checkpoints")
        .file(source->root())
        .found(escaped(*options.section));
  if (!options.model_dict.empty())
    throw Error(Code::kUsage, "a DCP folder keeps all its dicts: `model_dict` is for other checkpoints")
        .file(source->root())
        .found(escaped(options.model_dict));
  CheckedPart parts = options.weights_only ? CheckedPart::kModel : CheckedPart::kAll;
  std::vector<Finding> damage = refuse_damage(*source, parts, options.accept);
  return plan(open_plain(std::move(source), options.source, std::move(damage)), [&](Opened& opened) {
    const Store& store = opened.store();
    Notes notes;
    auto layout =
        std::make_unique<PlainLayout>(store, ranks_of(options, store), options.weights_only,
                                      types_of(store, options.dtype, model_tensors(store, options, notes)));
    auto target = dcp_target(store, std::move(layout), "", true, options);
    target->details.append(std::move(notes));
    add_beside(*target, {object_files(store), {}});
    return target;
  });
}

// The tensors of a model in files of another format.
Conversion plan_other(std::unique_ptr<Store> source, const ToDcpOptions& options) {
  OwnModelOptions how{.source = options.source,
                      .shapes = options.assets,
                      .model_dict = options.model_dict,
                      .accept = options.accept,
                      .complete = false,
                      .keep_names = true,
                      .threads = options.threads};
  return plan(open_own(std::move(source), how), [&](Opened& opened) {
    const Store& store = opened.store();
    const std::string section = section_text(options.section.value_or(opened.own->section));
    auto layout = std::make_unique<PlainLayout>(store, ranks_of(options, store), false, names_under(section),
                                                types_of(store, options.dtype, {}));
    auto target = dcp_target(store, std::move(layout), section, false, options);
    target->folders = {store.root()};
    if (options.assets) target->folders.push_back(*options.assets);
    note_left_out(target->details, *opened.own);
    return target;
  });
}

}  // namespace

KeptKeys::KeptKeys(const Store& store, std::unique_ptr<PlainLayout> kept, bool with_objects,
                   bool object_files_too)
    : plan_(std::move(kept)), chunks_(plan_->layout, plan_->tensors) {
  std::vector<CarriedRecord> records;
  if (with_objects) records = plan_->add_objects();
  job = std::make_unique<ChunkJob>(tensor_job(store, chunks_, std::move(records)));
  if (object_files_too) object_files = &store;
  proof = {side_of(store), side_of(plan_->layout), plan_->left_behind, {}, {}};
  dropped_objects = plan_->left_behind_objects;
}

Conversion plan_to_dcp(const ToDcpOptions& options) {
  std::unique_ptr<Store> source = open_store(options.source, options.files);
  if (options.assets && !source->driver().flat)
    throw Error(Code::kUsage,
                "`assets` is for tensors that were saved flat: those of this checkpoint have shapes")
        .file(source->root())
        .found(format_text(source->format()));
  refuse_types(*source, options);
  if (format_family(source->format()) == FormatFamily::kDcp) return plan_dcp(std::move(source), options);
  return plan_other(std::move(source), options);
}

}  // namespace mckpt::impl
