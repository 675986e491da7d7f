// Splits tensors into files as Hugging Face does, orders each file as the reference writer does, and writes
// headers and index.
#include "io/safetensors/layout.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <tuple>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "io/json/json.h"
#include "io/json/json_keys.h"
#include "io/output/output_files.h"
#include "io/safetensors/table.h"
#include "io/store/tensor_spec.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kReserved = "__metadata__";

// The reference writer's order of types, by alignment; what torch calls float4_e2m1fn_x2 is F4.
constexpr DType kOrder[] = {
    DType::kU64,        DType::kI64,    DType::kF64,    DType::kC64,    DType::kF32, DType::kU32,
    DType::kI32,        DType::kBF16,   DType::kF16,    DType::kU16,    DType::kI16, DType::kF8E5M2FNUZ,
    DType::kF8E4M3FNUZ, DType::kF8E8M0, DType::kF8E4M3, DType::kF8E5M2, DType::kI8,  DType::kU8,
    DType::kF6E3M2,     DType::kF6E2M3, DType::kF4,     DType::kBool};

// The place of a type in that order; the number of types for one that the format does not have.
std::size_t place_of(DType dtype) {
  if (dtype == DType::kF4x2) dtype = DType::kF4;
  return static_cast<std::size_t>(std::find(std::begin(kOrder), std::end(kOrder), dtype) -
                                  std::begin(kOrder));
}

// Why the format cannot hold the tensor; "" if it can.
std::string fault(const TensorSpec& t) {
  if (place_of(t.dtype) == std::size(kOrder)) return cat("safetensors has no type for ", dtype_name(t.dtype));
  if (t.dtype == DType::kF4x2 && t.dims.empty()) return "4-bit floats in pairs need at least one dimension";
  if (t.name == kReserved) return "the name is reserved for metadata";
  if (!is_utf8(t.name)) return "the name is not UTF-8";
  if (t.name.size() > kMaxJsonKeyBytes) return "the name is too long";
  return "";
}

// Throws kNotHeld with all faults.
void check(std::span<const TensorSpec> tensors) {
  std::vector<std::string> faults;
  NameSet<std::string_view> names;
  for (const TensorSpec& t : tensors) {
    std::string why = fault(t);
    if (why.empty() && !names.insert(t.name).second) why = "the name occurs twice";
    if (!why.empty()) faults.push_back(not_held(t, why));
  }
  throw_not_held(faults, "a safetensors file");
}

// "__metadata__":{...}, or "" without metadata.
std::string metadata_entry(const SafetensorsMetadata& metadata) {
  if (metadata.empty()) return "";
  std::string json = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (&key != &metadata[0].first) json += ',';
    append_json_string(json, key);
    json += ':';
    append_json_string(json, value);
  }
  return json += '}';
}

// The shape as the format counts it: 4-bit floats one by one, where torch has pairs.
void append_dims(std::string& out, const TensorSpec& t) {
  for (std::size_t d = 0; d < t.dims.size(); d++) {
    bool pairs = t.dtype == DType::kF4x2 && d + 1 == t.dims.size();
    out += cat(d ? "," : "", pairs ? checked_mul(t.dims[d], 2, "a dimension") : t.dims[d]);
  }
}

// "model-00001-of-00012.safetensors"; without numbers if there is one file.
std::string shard_name(i32 file, i32 count) {
  if (count == 1) return "model.safetensors";
  char text[48];
  std::snprintf(text, sizeof text, "model-%05d-of-%05d.safetensors", file + 1, count);
  return text;
}

}  // namespace

SafetensorsLayout::SafetensorsLayout(std::span<const TensorSpec> tensors, const SafetensorsOptions& options)
    : places_(tensors.size()) {
  check(tensors);
  for (std::size_t t = 0; t < tensors.size(); t++)
    places_[t].bytes = dtype_bytes(tensors[t].dtype, Shape(tensors[t].dims).items());
  i32 count = split(options.max_shard_bytes);
  sort(tensors);
  std::string metadata = metadata_entry(options.metadata);
  std::size_t begin = 0;
  for (i32 f = 0; f < count; f++) {
    std::size_t end = begin;
    while (end < order_.size() && file(order_[end]) == f) end++;
    i64 data_bytes = 0;
    std::string entries = data_entries(tensors, std::span(order_).subspan(begin, end - begin), data_bytes);
    add_file(shard_name(f, count),
             cat("{", metadata, metadata.empty() || entries.empty() ? "" : ",", entries, "}"), data_bytes,
             options.alignment);
    begin = end;
  }
  for (Place& p : places_) p.offset += static_cast<i64>(files_[p.file].header.size());
  if (count > 1) write_index(tensors);
}

// As Hugging Face splits: a file is full when the next tensor does not fit. A tensor too large for any file
// has one of its own, and the file that was being filled is continued after it. Returns the number of
// files.
i32 SafetensorsLayout::split(i64 max_shard_bytes) {
  if (max_shard_bytes == 0) return 1;
  std::vector<std::size_t> filling;  // the tensors of the file that is being filled
  i64 filled = 0;
  i32 files = 0;
  auto close = [&] {
    if (filling.empty()) return;
    for (std::size_t t : filling) places_[t].file = files;
    files++;
    filling.clear();
    filled = 0;
  };
  for (std::size_t t = 0; t < places_.size(); t++) {
    i64 bytes = places_[t].bytes;
    if (bytes > max_shard_bytes) {
      places_[t].file = files++;
      continue;
    }
    if (bytes > max_shard_bytes - filled) close();
    filling.push_back(t);
    filled += bytes;
  }
  close();
  return std::max(files, 1);
}

// By file, type, name.
void SafetensorsLayout::sort(std::span<const TensorSpec> tensors) {
  order_.resize(tensors.size());
  std::iota(order_.begin(), order_.end(), 0);
  auto key = [&](i64 i) {
    const TensorSpec& t = tensors[i];
    return std::tuple(file(i), place_of(t.dtype), t.name);
  };
  std::sort(order_.begin(), order_.end(), [&](i64 a, i64 b) { return key(a) < key(b); });
}

// Places the tensors of one file one behind the other, counted from its first data byte, and returns their
// entries in the header.
std::string SafetensorsLayout::data_entries(std::span<const TensorSpec> tensors, std::span<const i64> of_file,
                                            i64& data_bytes) {
  std::string json;
  for (i64 i : of_file) {
    const TensorSpec& t = tensors[i];
    Place& place = places_[i];
    place.offset = data_bytes;
    data_bytes = checked_add(data_bytes, place.bytes, "the size of the file");
    if (!json.empty()) json += ',';
    append_json_string(json, t.name);
    // torch's pairs are the one type of another name.
    json += cat(":{\"dtype\":\"", t.dtype == DType::kF4x2 ? "F4" : dtype_info(t.dtype).safetensors,
                "\",\"shape\":[");
    append_dims(json, t);
    json += cat("],\"data_offsets\":[", place.offset, ",", data_bytes, "]}");
  }
  return json;
}

// Spaces behind the JSON align the first data byte.
void SafetensorsLayout::add_file(std::string name, std::string json, i64 data_bytes, i64 alignment) {
  i64 unpadded = static_cast<i64>(kLengthBytes + json.size());
  json.append(static_cast<std::size_t>(round_up(unpadded, alignment, "the header") - unpadded), ' ');
  if (static_cast<i64>(json.size()) > SafetensorsTable::kMaxHeaderBytes)
    throw Error(Code::kNotHeld, "the header would be larger than readers accept")
        .file(name)
        .expected(cat("at most ", SafetensorsTable::kMaxHeaderBytes, " bytes"))
        .found(cat(json.size(), " bytes"))
        .help("write several files");
  File file{std::move(name), "", 0};
  for (std::size_t b = 0; b < kLengthBytes; b++)
    file.header += static_cast<char>(static_cast<u64>(json.size()) >> (8 * b));
  file.header += json;
  file.bytes = checked_add(static_cast<i64>(file.header.size()), data_bytes, "the size of the file");
  files_.push_back(std::move(file));
}

// In the order of names, indented as Hugging Face writes it.
void SafetensorsLayout::write_index(std::span<const TensorSpec> tensors) {
  i64 total = 0;
  for (const Place& p : places_) total = checked_add(total, p.bytes, "the size of all files");
  std::vector<std::size_t> by_name(tensors.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  index_ = cat("{\n  \"metadata\": {\n    \"total_size\": ", total, "\n  },\n  \"weight_map\": {");
  for (std::size_t i = 0; i < by_name.size(); i++) {
    index_ += i == 0 ? "\n    " : ",\n    ";
    append_json_string(index_, tensors[by_name[i]].name);
    index_ += cat(": \"", files_[places_[by_name[i]].file].name, "\"");
  }
  index_ += "\n  }\n}\n";
}

std::vector<OutputFile> SafetensorsLayout::output_files() const {
  std::vector<OutputFile> out;
  for (const File& f : files_) out.push_back({f.name, f.bytes});
  if (!index_.empty()) out.push_back({index_name_, std::ssize(index_)});
  return out;
}

}  // namespace mckpt::impl
