// Loaded tensors of the C interface. A tensor that is passed on by DLPack keeps its block of memory alive,
// also behind the end of the handle.
#include "mckpt/c_load.h"

#include <optional>

#include "api/c_call.h"
#include "api/dlpack.h"
#include "api/public_json.h"
#include "api/settings.h"
#include "core/base/error.h"
#include "core/base/text.h"

struct mckpt_loaded {
  mckpt::Loaded loaded;
};

namespace {

namespace impl = mckpt::impl;

// A grid alone does not say what is wanted: every rank of it has something else.
void refuse_grid(impl::Settings& s) {
  for (const char* size : {"tp", "cp", "ep", "etp", "pp", "dp"}) {
    std::optional<std::int64_t> given;
    s.take(size, given);
    if (given)
      throw impl::Error(impl::Code::kUsage,
                        impl::cat("the grid has `", size, "` ", *given, ", but no rank is named"))
          .expected("`rank` as well, the rank whose tensors are loaded");
  }
}

mckpt::Loaded loaded(const char* path, impl::Settings& s, mckpt::Observer* observer) {
  std::optional<std::int64_t> rank;
  s.take("rank", rank);
  if (!rank) refuse_grid(s);
  if (rank) {
    mckpt::RankToLoad what;
    read(s, what);
    s.refuse_rest();
    return mckpt::load_rank(path, what, observer);
  }
  mckpt::TensorsToLoad what;
  read(s, what);
  s.refuse_rest();
  return mckpt::load(path, what, observer);
}

// The memory and shape that a DlpackManaged refers to.
struct Shared {
  impl::DlpackManaged managed{};
  std::shared_ptr<void> memory{};
  std::vector<std::int64_t> shape{}, strides{};
};

// The items of memory that is row-major.
std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d]) strides[d] = step;
  return strides;
}

// The shape under which the tensor is passed on as items of so many bits.
std::vector<std::int64_t> shape_as(const mckpt::LoadedTensor& t, int bits) {
  std::int64_t items = 1;
  for (std::int64_t size : t.shape) items *= size;
  if (items * bits == t.bytes * 8) return t.shape;
  if (bits == 8) return {t.bytes};
  throw impl::Error(impl::Code::kUsage, "the items of the tensor have another size")
      .tensor(t.name)
      .expected(t.dtype)
      .found(impl::cat("items of ", bits, " bits"));
}

// "cuda:3" -> 3
std::int32_t number_of(const std::string& device) {
  std::size_t colon = device.find(':');
  return colon == device.npos ? 0 : std::stoi(device.substr(colon + 1));
}

}  // namespace

mckpt_loaded* mckpt_load(const char* path, const char* const* settings, const mckpt_observer* observer,
                         mckpt_error** error) {
  return impl::c_result(error, static_cast<mckpt_loaded*>(nullptr), [&] {
    impl::Settings s(settings);
    impl::CObserver to(observer);
    return new mckpt_loaded{loaded(impl::c_given(path, "path"), s, &to)};
  });
}

void mckpt_loaded_free(mckpt_loaded* l) { delete l; }

char* mckpt_loaded_json(const mckpt_loaded* l, mckpt_error** error) {
  return impl::c_written(error, [&](std::string& to) { impl::write_json(to, l->loaded); });
}

void* mckpt_loaded_data(const mckpt_loaded* l, int64_t number) {
  return l->loaded.tensors()[static_cast<std::size_t>(number)].data;
}

void* mckpt_loaded_dlpack(const mckpt_loaded* l, int64_t number, int code, int bits, mckpt_error** error) {
  return impl::c_result(error, static_cast<void*>(nullptr), [&]() -> void* {
    const std::vector<mckpt::LoadedTensor>& tensors = l->loaded.tensors();
    if (number < 0 || number >= std::ssize(tensors))
      throw impl::Error(impl::Code::kUsage, "there is no tensor of this number")
          .expected(impl::cat("0 to ", std::ssize(tensors) - 1))
          .found(number);
    const mckpt::LoadedTensor& t = tensors[static_cast<std::size_t>(number)];
    const std::string& device = l->loaded.device();
    auto shared = std::make_unique<Shared>();
    shared->memory = l->loaded.keep(number);
    shared->shape = shape_as(t, bits);
    shared->strides = strides_of(shared->shape);
    impl::DlpackManaged& m = shared->managed;
    m.tensor.data = t.data;
    m.tensor.device_type = device == "cpu" ? impl::kDlpackHost : impl::kDlpackCuda;
    m.tensor.device_number = number_of(device);
    m.tensor.rank = static_cast<std::int32_t>(shared->shape.size());
    m.tensor.type = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
    m.tensor.shape = shared->shape.data(), m.tensor.strides = shared->strides.data();
    m.context = shared.get();
    m.deleter = [](impl::DlpackManaged* given) { delete static_cast<Shared*>(given->context); };
    return &shared.release()->managed;
  });
}
