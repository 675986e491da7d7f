// The GPU is made ready in a thread of its own while headers are read and the load is planned: each takes
// some tenths of a second.
#include "mckpt/load.h"

#include <charconv>
#include <future>
#include <optional>

#include "api/boundary.h"
#include "api/public_notes.h"
#include "convert/asked/words.h"
#include "core/base/error.h"
#include "core/hybrid/pattern.h"
#include "hf/model.h"
#include "hf/quantized/dequantized_store.h"
#include "io/choice/tensor_choice.h"
#include "io/file/parallel.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "live/cuda/device.h"
#include "live/device/device.h"
#include "live/load/block_loader.h"
#include "live/load/tensor_load.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt {

struct Loaded::State {
  impl::LoadedTensors memory;
  std::string device{};
  std::vector<LoadedTensor> tensors{};
  std::int64_t bytes = 0;

  State(impl::LoadedTensors loaded, const impl::Device& on) : memory(std::move(loaded)), device(on.name()) {
    for (const impl::TensorLoad::Tensor& t : memory.tensors) {
      tensors.push_back({t.name,
                         std::string(impl::dtype_name(t.dtype)),
                         {t.shape.dims().begin(), t.shape.dims().end()},
                         t.bytes,
                         memory.data(t).get()});
      bytes += t.bytes;
    }
  }
};

// Makes the objects, whose constructor is private.
struct LoadedAccess {
  static Loaded make(impl::LoadedTensors loaded, const impl::Device& on) {
    return Loaded(std::make_unique<Loaded::State>(std::move(loaded), on));
  }
};

namespace {

// The number of a GPU; none: the host.
std::optional<int> gpu_of(const std::string& device) {
  if (device == "cpu" || device == "cpu:0") return std::nullopt;  // torch names the host both ways
  std::string_view text = device;
  int number = 0;
  if (text == "cuda") return number;
  if (text.starts_with("cuda:")) {
    text.remove_prefix(5);
    auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (fault == std::errc{} && end == text.data() + text.size() && number >= 0) return number;
  }
  throw impl::Error(impl::Code::kUsage, "there is no such device")
      .expected("cpu, cuda or cuda:N")
      .found(impl::escaped(device));
}

// A device that is opened while other work is done.
class OpeningDevice {
 public:
  // `with_kernel`: values are going to be cast, or items moved apart.
  OpeningDevice(const LoadOptions& how, bool with_kernel) : gpu_(gpu_of(how.device)), threads_(how.threads) {
    if (threads_ != 0) impl::check_threads(threads_);
    if (gpu_)
      opened_ = std::async(std::launch::async, [=, gpu = *gpu_] { return impl::open_gpu(gpu, with_kernel); });
  }

  impl::BlockLoadOptions threads() const {
    if (threads_ > 0) return {.threads = threads_};
    return gpu_ ? impl::threads_for_gpu(1) : impl::BlockLoadOptions{.threads = impl::default_threads()};
  }
  std::shared_ptr<impl::Device> get() {
    if (!gpu_) return std::make_shared<impl::HostDevice>();
    try {
      return opened_.get();
    } catch (impl::Error& e) {
      if (e.code() == impl::Code::kModuleMissing)
        e.help(impl::cat("`device=\"cpu\"` loads into the memory of the host",
                         e.help().empty() ? "" : "; for a GPU: ", e.help()));
      throw;
    }
  }

 private:
  std::optional<int> gpu_;
  int threads_;
  std::future<std::unique_ptr<impl::Device>> opened_;
};

Loaded loaded(impl::TensorLoad plan, OpeningDevice& opening, const impl::OpenOptions& files,
              mckpt::Observer* observer) {
  impl::ObserverBridge bridge(observer);
  std::shared_ptr<impl::Device> device = opening.get();
  impl::BlockLoadOptions how = opening.threads();
  how.observer = &bridge;
  impl::LoadedTensors memory = impl::load_tensors(std::move(plan), device, how);
  check_unchanged(files);
  return LoadedAccess::make(std::move(memory), *device);
}

}  // namespace

Loaded::Loaded(std::unique_ptr<State> state) : state_(std::move(state)) {}
Loaded::Loaded(Loaded&&) noexcept = default;
Loaded& Loaded::operator=(Loaded&&) noexcept = default;
Loaded::~Loaded() = default;

const std::string& Loaded::device() const { return state_->device; }
const std::vector<LoadedTensor>& Loaded::tensors() const { return state_->tensors; }
std::int64_t Loaded::bytes() const { return state_->bytes; }
std::shared_ptr<void> Loaded::keep(std::int64_t number) const {
  return state_->memory.data(state_->memory.tensors.at(static_cast<std::size_t>(number)));
}

Loaded load(const std::string& path, const TensorsToLoad& what, Observer* observer) {
  return impl::guarded([&] {
    const std::optional<impl::DType> dtype = impl::value_type_or_kept(what.dtype);
    OpeningDevice device(what.how, dtype.has_value());
    std::unique_ptr<impl::Store> store = impl::open_store(path, impl::opening_of(what.files, {{path}}));
    // A type is one of values; as they are stored, quantised weights are codes and scales.
    if (dtype) store = impl::dequantized(std::move(store), *dtype, impl::BadNumbers::kRefuse);
    impl::require_sound(store->findings(), store->root());
    std::vector<impl::i64> chosen = impl::file_order(*store);
    if (!what.names.empty()) {
      std::vector<bool> wanted(chosen.size());
      for (impl::i64 t : impl::TensorChoice{what.names}.choose(*store)) wanted[t] = true;
      std::erase_if(chosen, [&](impl::i64 t) { return !wanted[t]; });
    }
    return loaded(impl::plan_tensors(*store, chosen, dtype), device, store->opening(), observer);
  });
}

Loaded load_rank(const std::string& path, const RankToLoad& what, Observer* observer) {
  return impl::guarded([&] {
    OpeningDevice device(what.how, true);
    const impl::Grid grid = impl::grid_of(what.grid);
    const impl::ValueOptions values = impl::value_options(what.values);
    const std::optional<impl::LayerPattern> groups = impl::given_pattern(what.hybrid_pattern, grid.pp);
    impl::HfModelOptions reading = impl::model_options(what.model, {{path}});
    reading.threads = device.threads().threads;
    impl::HfModel model = impl::open_hf_model(path, reading);
    impl::TensorLoad plan = impl::plan_rank(model, {.grid = grid,
                                                    .rank = what.rank,
                                                    .values = values,
                                                    .spelling = impl::spelling_in(what.spelling),
                                                    .groups = groups ? &*groups : nullptr});
    return loaded(std::move(plan), device, model.opening, observer);
  });
}

}  // namespace mckpt
