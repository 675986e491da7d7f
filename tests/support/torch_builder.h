// Pickles and archives of torch.save for tests, put together from their parts so that each can be false.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/zip_builder.h"

namespace mckpt::impl {

inline std::string little_endian(u64 v, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; i++) out += static_cast<char>(v >> 8 * i);
  return out;
}

inline std::string pickled(std::string_view text) {
  return "X" + little_endian(text.size(), 4) + std::string(text);
}

inline std::string pickled(i64 v) { return "\x8a\x08" + little_endian(static_cast<u64>(v), 8); }

inline std::string pickled(const std::vector<i64>& tuple) {
  std::string out = "(";
  for (i64 v : tuple) out += pickled(v);
  return out + "t";
}

inline std::string pickled_class(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

struct TensorParts {
  std::string key = "0", storage_class = "FloatStorage";
  i64 numel = 6, offset = 0;
  std::vector<i64> size{2, 3}, stride{3, 1};
  std::string metadata{};  // pickled; behind the hooks
  std::string view{};      // pickled; the last part of a storage's name in the older form
};

inline std::string pickled_storage(const TensorParts& t) {
  const char* module = t.storage_class == "UntypedStorage" ? "torch.storage" : "torch";
  return "(" + pickled("storage") + pickled_class(module, t.storage_class) + pickled(t.key) + pickled("cpu") +
         pickled(t.numel) + t.view + "tQ";
}

// torch._utils._rebuild_tensor_v2(...)
inline std::string pickled_tensor(const TensorParts& t = {}) {
  return pickled_class("torch._utils", "_rebuild_tensor_v2") + "(" + pickled_storage(t) + pickled(t.offset) +
         pickled(t.size) + pickled(t.stride) + "\x89" + pickled_class("collections", "OrderedDict") + ")R" +
         t.metadata + "tR";
}

// {name: value, ...}, each value pickled already.
inline std::string pickled_dict(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = "}(";
  for (const auto& [name, value] : entries) out += pickled(name) + value;
  return out + "u";
}

inline std::string whole_pickle(const std::string& value) { return "\x80\x02" + value + "."; }

using Records = std::vector<std::pair<std::string, std::string>>;

// An archive of the records, below archive/. A version is added where there are some and none of them is it.
inline std::vector<u8> torch_zip(const Records& records) {
  ZipBuilder b;
  bool versioned = false;
  for (const auto& [name, bytes] : records) {
    b.add("archive/" + name, bytes);
    versioned |= name == "version";
  }
  if (!versioned && !records.empty()) b.add("archive/version", "3\n");
  return b.finish();
}

inline std::string six_floats() {
  std::string out;
  for (float f : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f}) out.append(reinterpret_cast<const char*>(&f), 4);
  return out;
}

// {"w": the tensor} with the six floats 0 to 5 in storage 0.
inline std::vector<u8> zip_with(const TensorParts& tensor) {
  return torch_zip({{"data.pkl", whole_pickle(pickled_dict({{"w", pickled_tensor(tensor)}}))},
                    {"byteorder", "little"},
                    {"data/0", six_floats()},
                    {"version", "3\n"}});
}

}  // namespace mckpt::impl
