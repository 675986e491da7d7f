// Opens base and adapter, checks that both can be computed with, and gives changed tensors their source of
// bytes.
#include "hf/adapter/adapted_store.h"

#include <algorithm>
#include <utility>

#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_bytes.h"
#include "hf/adapter/lora/default_targets.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/settings.h"
#include "hf/adapter/own_tokenizer.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/config/config_says.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/safetensors/config_facts.h"
#include "io/store/open/verl_layout.h"
#include "io/store/soundness.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kWeights = "adapter_model.safetensors", kOldWeights = "adapter_model.bin";

// Throws kUnknownFormat, kQuantized, kUsage.
std::unique_ptr<Store> open_base(const std::string& path, const OpenOptions& opening) {
  if (is_adapter_folder(path, opening))
    throw Error(Code::kUsage, "the base of an adapter is an adapter itself")
        .file(path)
        .expected("the folder of a Hugging Face model");
  std::unique_ptr<Store> store = open_store(path, opening);
  if (format_family(store->format()) != FormatFamily::kSafetensors)
    throw Error(Code::kUnknownFormat, "the base of an adapter is none of safetensors")
        .file(path)
        .expected("the folder of a Hugging Face model, or a file of safetensors")
        .found(format_text(store->format()));
  store = dequantized(std::move(store));
  if (const DequantizedStore* view = dequantized_view(*store); view && view->decodes())
    throw Error(Code::kQuantized, "the base of the adapter is quantised")
        .file(path)
        .found(quantized_text(*view))
        .help("mckpt convert dequantize BASE DST   makes a model of its values, which can be the base");
  require_sound(store->findings(), store->root());
  return store;
}

// Throws kNotFound.
std::unique_ptr<Store> open_weights(const Folder& folder) {
  if (!folder.has_file(kAdapterConfig)) {
    std::unique_ptr<Store> ranks = open_torch_folder(folder.path(), folder.opening());
    require_sound(ranks->findings(), ranks->root());
    return unwrapped_adapter(std::move(ranks));
  }
  if (!folder.has_file(kWeights)) {
    Error e(Code::kNotFound, "the adapter has no weights");
    e.file(folder.path()).expected(kWeights);
    if (folder.has_file(kOldWeights))
      e.found(kOldWeights)
          .help(cat("mckpt convert pt-to-safetensors ", as_argument(folder.inside(kOldWeights)), " ",
                    as_argument(folder.inside(std::string(kWeights)))));
    throw e;
  }
  std::unique_ptr<Store> store = open_safetensors_file(folder.inside(kWeights), folder.opening());
  require_sound(store->findings(), store->root());
  return store;
}

// The facts of config.json beside the base; nothing where there is none.
BaseFacts facts_of(const Store& base, const MakeMemoryNames& names) {
  BaseFacts facts;
  if (!is_folder(base.root(), base.opening())) return facts;
  Folder folder(base.root(), base.opening());
  if (!folder.has_file("config.json")) return facts;
  try {
    ConfigSays says = config_says(parse_config(json_text(folder.open_file("config.json"))));
    facts.model_type = std::move(says.model_type), facts.architecture = std::move(says.architecture);
    facts.tied = says.tied;
  } catch (const Error& e) {
    // A config that cannot be read is an error of who needs it.
    if (e.code() == Code::kInterrupted) throw;
  }
  if (names) facts.names = names(facts.model_type, facts.architecture);
  return facts;
}

// The tensors of the adapter that a tensor of the result is made of.
std::vector<i64> parts_of(const AdaptedTensor& t) {
  std::vector<i64> parts;
  for (i64 part : {t.replaced, t.added})
    if (part >= 0) parts.push_back(part);
  for (const AdaptedRows& rows : t.tokens) parts.push_back(rows.tensor);
  for (const AdaptedFactors& f : t.factors)
    for (i64 part : {f.a, f.b, f.magnitude})
      if (part >= 0) parts.push_back(part);
  return parts;
}

class NamedBase final : public AdapterBase {
 public:
  NamedBase(std::string path, MakeMemoryNames names) : path_(std::move(path)), names_(std::move(names)) {}
  const std::string& path() const override { return path_; }

  std::unique_ptr<Store> open(const std::string& adapter, const OpenOptions& opening) const override {
    Folder folder(adapter, opening);
    const bool of_ranks = !folder.has_file(kAdapterConfig);
    LoraConfig config = of_ranks ? config_beside(folder) : read_lora_config(folder);
    std::unique_ptr<Store> base = open_base(path_, opening);
    const BaseFacts facts = facts_of(*base, names_);
    if (!of_ranks)
      with_file(cat(adapter, "/", kAdapterConfig), [&] { choose_targets(config, facts.model_type); });
    const OtherBase other = other_base(config, facts, path_, opening);
    auto out = std::make_unique<AdaptedStore>(std::move(base), open_weights(folder), config, adapter, facts);
    if (!other.note.empty()) out->add_note(other.note);
    if (std::string note = own_tokenizer(folder, out->root()); !note.empty()) out->add_note(std::move(note));
    if (!other.warning.empty()) out->warn_of_base(other.warning);
    return out;
  }

 private:
  std::string path_;
  MakeMemoryNames names_;
};

}  // namespace

AdaptedStore::AdaptedStore(std::unique_ptr<Store> base, std::unique_ptr<Store> adapter,
                           const LoraConfig& config, std::string folder, const BaseFacts& facts)
    : StoreView(std::move(base)),
      adapter_(std::move(adapter)),
      folder_(std::move(folder)),
      config_text_(config.text),
      rank_(config.rank) {
  take_objects();
  take_findings();
  AdaptedModel model =
      with_file(folder_, [&] { return pair_adapter(this->base(), *adapter_, config, facts); });
  adapted_ = std::move(model.tensors), notes_ = std::move(model.notes);
  untouched_ = std::move(model.untouched);
  amended_.untied = model.untied;
  for (const AdaptedTensor& a : adapted_)
    if (a.tensor >= this->base().tensor_count()) added_.push_back(&a);
  for (i64 t = 0; t < this->base().tensor_count(); t++) plain_.push_back({.tensor = t, .from = t});
  amend();
  memory_ = std::make_unique<AdapterMemory>(this->base(), *adapter_);
  add_fact("adapter", text());
}

AdaptedStore::~AdaptedStore() = default;

const AdaptedTensor* AdaptedStore::adapted(i64 t) const {
  auto at = std::ranges::lower_bound(adapted_, t, {}, &AdaptedTensor::tensor);
  return at != adapted_.end() && at->tensor == t ? &*at : nullptr;
}

std::string AdaptedStore::text() const {
  return cat("LoRA of rank ", rank_, " in ", folder_, ", ", with_commas(std::ssize(adapted_)), " of ",
             counted(tensor_count(), "tensor"), " changed");
}

// A tensor of the vocabulary that the adapter has whole may have other rows than the base's.
void AdaptedStore::amend() {
  for (const AdaptedTensor& a : adapted_)
    if (!std::ranges::equal(dims(a.tensor), base().dims(a.from))) amended_.vocab = dims(a.tensor)[0];
}

std::span<const i64> AdaptedStore::dims(i64 t) const {
  const AdaptedTensor* a = adapted(t);
  return a && a->replaced >= 0 ? adapter_->dims(a->replaced) : base().dims(from(t));
}

Chunk AdaptedStore::chunk(i64 t, i64 index) const {
  Chunk out = base().chunk(from(t), index);
  if (adapted(t)) out.sizes = dims(t);
  return out;
}

ChunkData AdaptedStore::resolve_as(i64 t, i64 index, DType type) const {
  const AdaptedTensor* a = adapted(t);
  if (!a && type == dtype(t)) return base().resolve(t, index);
  ChunkData out{.file = base().chunk(from(t), 0).file,
                .offset = 0,
                .dtype = type,
                .unpacked = adapted_bytes(a ? *a : plain_[t], type, *memory_)};
  add_sums(base(), from(t), out.beneath);
  // The factors of an adapter in a folder of its own are in files that the view does not list; their format
  // stores no sums.
  if (a && adapter_->root() == base().root())
    for (i64 part : parts_of(*a)) add_sums(*adapter_, part, out.beneath);
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

void AdaptedStore::warn_of_base(std::string text) {
  findings_.push_back({.code = Code::kContradiction,
                       .file = folder_,
                       .message = std::move(text),
                       .help = "`base` is the model that was trained",
                       .warning = true});
}

void AdaptedStore::add_losses(LostValues& lost) const { memory_->add_losses(lost); }

const AdaptedStore* adapted_view(const Store& store) { return dynamic_cast<const AdaptedStore*>(&store); }

std::shared_ptr<const AdapterBase> adapter_base(std::string path, MakeMemoryNames names) {
  return std::make_shared<NamedBase>(std::move(path), std::move(names));
}

std::shared_ptr<const AdapterBase> adapter_base_for(std::string base, std::span<const std::string> paths,
                                                    const OpenOptions& opening, MakeMemoryNames names) {
  // A path that does not exist is reported when it is opened.
  const bool all_there = std::ranges::all_of(
      paths, [&](const std::string& p) { return is_folder(p, opening) || is_file(p, opening); });
  if (all_there &&
      std::ranges::none_of(paths, [&](const std::string& p) { return is_adapter_folder(p, opening); }))
    throw Error(Code::kUsage, "`base` is for the folder of an adapter, and no path is one")
        .expected("a folder with adapter_config.json and without weights of a model")
        .found(listed(std::vector<std::string>(paths.begin(), paths.end())));
  return adapter_base(std::move(base), std::move(names));
}

Error adapter_alone(const Folder& folder) {
  if (const std::string of_verl = verl_adapter(folder); !of_verl.empty())
    return adapter_alone(Folder(folder.inside(of_verl), folder.opening()));
  Error e(Code::kNotFound, "the folder has an adapter, which is no model without the model that it changes");
  e.file(folder.path())
      .expected("config.json and all weights of a model, or `base`, the model of the adapter")
      .found(cat("an adapter: ", escaped(adapter_text(folder))));
  std::string base;
  try {
    base = read_lora_config(folder).base;
  } catch (const Error&) {
    // A fault of the config is reported when the base is known.
  }
  if (!base.empty() && is_folder(base, folder.opening()))
    return e.help(cat("`base` ", as_argument(base), "   the model that the adapter's config names"));
  return e.help("`base` names the folder of the model that was trained");
}

const std::string& model_path(const std::string& path, const OpenOptions& opening) {
  return opening.base && is_adapter_folder(path, opening) ? opening.base->path() : path;
}

}  // namespace mckpt::impl
