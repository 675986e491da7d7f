// Opens base and adapter, checks that both can be computed with, and gives changed tensors their source of
// bytes.
#include "hf/adapter/adapted_store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/adapted_bytes.h"
#include "hf/adapter/lora_config.h"
#include "hf/adapter/wrapped_model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/archive.h"
#include "io/file/folder.h"
#include "io/safetensors/config_facts.h"
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
  if (const DequantizedStore* view = dequantized_view(*store))
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
          .help(cat("mckpt convert pt-to-safetensors ", escaped(folder.path(), 4096), "/", kOldWeights, " ",
                    escaped(folder.path(), 4096), "/", kWeights));
    throw e;
  }
  std::unique_ptr<Store> store = open_safetensors_file(folder.inside(kWeights), folder.opening());
  require_sound(store->findings(), store->root());
  return store;
}

class NamedBase final : public AdapterBase {
 public:
  explicit NamedBase(std::string path) : path_(std::move(path)) {}
  const std::string& path() const override { return path_; }

  std::unique_ptr<Store> open(const std::string& adapter, const OpenOptions& opening) const override {
    Folder folder(adapter, opening);
    const bool of_ranks = !folder.has_file(kAdapterConfig);
    LoraConfig config = of_ranks ? config_beside(folder) : read_lora_config(folder);
    std::unique_ptr<Store> base = open_base(path_, opening);
    return std::make_unique<AdaptedStore>(std::move(base), open_weights(folder), config, adapter);
  }

 private:
  std::string path_;
};

}  // namespace

AdaptedStore::AdaptedStore(std::unique_ptr<Store> base, std::unique_ptr<Store> adapter,
                           const LoraConfig& config, std::string folder)
    : base_(std::move(base)),
      adapter_(std::move(adapter)),
      folder_(std::move(folder)),
      config_text_(config.text),
      rank_(config.rank) {
  describe_as(*base_);
  objects_ = base_->objects();
  findings_ = base_->findings();
  adapted_ = with_file(folder_, [&] { return pair_adapter(*base_, *adapter_, config); });
  memory_ = std::make_unique<AdapterMemory>(*base_, *adapter_);
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

ChunkData AdaptedStore::resolve(i64 t, i64 index) const {
  const AdaptedTensor* a = adapted(t);
  if (!a) return base_->resolve(t, index);
  return {.file = base_->chunk(t, 0).file,
          .offset = 0,
          .dtype = dtype(t),
          .unpacked = adapted_bytes(*a, *memory_)};
}

const AdaptedStore* adapted_view(const Store& store) { return dynamic_cast<const AdaptedStore*>(&store); }

std::shared_ptr<const AdapterBase> adapter_base(std::string path) {
  return std::make_shared<NamedBase>(std::move(path));
}

std::shared_ptr<const AdapterBase> adapter_base_for(std::string base, std::span<const std::string> paths,
                                                    const OpenOptions& opening) {
  // What is at a path that does not exist is said when it is opened.
  const bool all_there = std::ranges::all_of(
      paths, [&](const std::string& p) { return is_folder(p, opening) || is_file(p, opening); });
  if (all_there &&
      std::ranges::none_of(paths, [&](const std::string& p) { return is_adapter_folder(p, opening); }))
    throw Error(Code::kUsage, "`base` is for the folder of an adapter, and no path is one")
        .expected("a folder with adapter_config.json and without config.json")
        .found(listed(std::vector<std::string>(paths.begin(), paths.end())));
  return adapter_base(std::move(base));
}

Error adapter_alone(const Folder& folder) {
  Error e(Code::kNotFound, "the folder has an adapter, which is no model without the model that it changes");
  e.file(folder.path())
      .expected("config.json and all weights of a model, or `base`, the model of the adapter")
      .found(cat("an adapter: ", escaped(adapter_text(folder))));
  std::string base;
  try {
    base = read_lora_config(folder).base;
  } catch (const Error&) {
    // What is wrong with the config is said when the base is known.
  }
  if (!base.empty() && is_folder(base, folder.opening()))
    return e.help(cat("`base` ", escaped(base, 4096), "   the model that the adapter's config names"));
  return e.help("`base` names the folder of the model that was trained");
}

const std::string& model_path(const std::string& path, const OpenOptions& opening) {
  return opening.base && is_adapter_folder(path, opening) ? opening.base->path() : path;
}

}  // namespace mckpt::impl
