// Integers beyond 2^53 are not whole numbers of a float, and stay floats.
#include "convert/facts/scalar.h"

#include <cmath>

#include "convert/facts/megatron_args.h"
#include "io/pickle/write/writer.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/element.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {

double scalar_of(const Store& store, i64 tensor) {
  StoreFiles files(store);
  double value = 0;
  TensorReader(store, files).read(tensor, [&](std::span<const u8> bytes, i64) {
    value = number_at(store.dtype(tensor), bytes.data(), 0);
  });
  return value;
}

std::string pickle_scalar(const Store& store, i64 tensor) {
  const double value = scalar_of(store, tensor);
  bool whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
  return whole ? pickle_integer(static_cast<i64>(value)) : pickle_real(value);
}

std::string pickle_flag(bool value) {
  PickleWriter w;
  w.boolean(value);
  return w.finish();
}

}  // namespace mckpt::impl
