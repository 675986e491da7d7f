// Reads headers and index of a folder, and lays tensors out like files whose headers are known.
#include "io/safetensors/original.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/file/file.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/safetensors/index.h"
#include "io/safetensors/layout.h"
#include "io/safetensors/table.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/store/tensor_spec.h"

namespace mckpt::impl {
namespace {

constexpr i64 kLengthBytes = 8;
constexpr std::string_view kFileEnd = ".safetensors", kIndexEnd = ".safetensors.index.json";

std::string length_text(i64 length) {
  std::string text;
  for (i64 b = 0; b < kLengthBytes; b++) text += static_cast<char>(static_cast<u64>(length) >> (8 * b));
  return text;
}

// A file of that size of which only the header is there.
class HeaderOnly final : public ByteSource {
 public:
  HeaderOnly(const std::string& head, i64 bytes) : ByteSource(bytes), head_(head) {}

 private:
  void read_inside(i64 offset, std::span<u8> to) const override {
    if (offset + std::ssize(to) > std::ssize(head_))
      throw Error(Code::kReadFailed, "only the header is known");
    std::copy_n(head_.begin() + offset, to.size(), to.begin());
  }

  const std::string& head_;
};

// A name in the result's folder, which comes from a file.
bool is_plain_name(std::string_view name, std::string_view end) {
  return name.ends_with(end) && name.size() > end.size() && name[0] != '.' && name.find('/') == name.npos &&
         name.find('\0') == name.npos && name.find('\\') == name.npos;
}

std::string header_of(const Folder& folder, const std::string& name, i64 data_begin) {
  InputFile file = folder.open_file(name);
  std::string header(static_cast<std::size_t>(data_begin - kLengthBytes), '\0');
  file.read(kLengthBytes, std::span(reinterpret_cast<u8*>(header.data()), header.size()));
  return header;
}

// The index by which the folder was opened; "" if it was opened without one.
std::string index_name_of(const Store& store) {
  for (const auto& [name, value] : store.facts())
    if (name == "index") return value;
  return "";
}

}  // namespace

std::optional<SafetensorsOriginal> original_files(const Store& store) {
  if (!store.driver().hf_folder || !is_sound(store)) return std::nullopt;
  Folder folder(store.root(), store.opening());
  SafetensorsOriginal out;
  for (const StoreFile& f : store.files()) {
    InputFile file = folder.open_file(f.path);
    u8 length[kLengthBytes];
    file.read(0, length);
    i64 header_bytes = 0;
    for (i64 b = kLengthBytes; b-- > 0;) header_bytes = header_bytes << 8 | length[b];
    out.files.push_back({f.path, f.bytes, header_of(folder, f.path, kLengthBytes + header_bytes)});
    if (!is_utf8(out.files.back().header) || !is_plain_name(f.path, kFileEnd)) return std::nullopt;
  }
  out.index_name = index_name_of(store);
  if (!out.index_name.empty()) out.index = json_text(folder.open_file(out.index_name));
  if (!is_utf8(out.index)) return std::nullopt;
  return out;
}

// Every tensor must be in the headers with its type and shape, and every header entry a tensor.
std::optional<SafetensorsLayout> SafetensorsLayout::like(std::span<const TensorSpec> tensors,
                                                         const SafetensorsOriginal& original) {
  SafetensorsLayout out;
  NameMap<std::string_view, i64> numbers;
  for (const TensorSpec& t : tensors) numbers.emplace(t.name, std::ssize(numbers));
  if (std::ssize(numbers) != std::ssize(tensors)) return std::nullopt;
  std::vector<bool> placed(tensors.size());
  NameMap<std::string, i32> file_of;
  for (const SafetensorsOriginal::File& f : original.files) {
    i32 number = static_cast<i32>(out.files_.size());
    if (!is_plain_name(f.name, kFileEnd) || !file_of.emplace(f.name, number).second) return std::nullopt;
    std::string head = length_text(std::ssize(f.header)) + f.header;
    SafetensorsTable table = with_file(f.name, [&] { return SafetensorsTable(HeaderOnly(head, f.bytes)); });
    for (i64 row = 0; row < table.size(); row++) {
      auto at = numbers.find(table.name(row));
      if (at == numbers.end() || placed[at->second]) return std::nullopt;
      const TensorSpec& t = tensors[at->second];
      if (t.dtype != table.dtype(row) || !std::ranges::equal(t.dims, table.dims(row))) return std::nullopt;
      placed[at->second] = true;
      out.order_.push_back(at->second);
      if (out.places_.empty()) out.places_.resize(tensors.size());
      out.places_[at->second] = {number, table.offset(row), table.bytes(row)};
    }
    out.files_.push_back({f.name, std::move(head), f.bytes});
  }
  if (std::ssize(out.order_) != std::ssize(tensors) || out.files_.empty()) return std::nullopt;
  out.original_ = true;
  if (original.index.empty()) return out.files_.size() == 1 ? std::optional(std::move(out)) : std::nullopt;
  if (!is_plain_name(original.index_name, kIndexEnd)) return std::nullopt;
  SafetensorsIndex index =
      with_file(original.index_name, [&] { return parse_safetensors_index(original.index); });
  if (std::ssize(index.weight_map) != std::ssize(tensors)) return std::nullopt;
  for (const SafetensorsIndex::Entry& e : index.weight_map) {
    auto tensor = numbers.find(e.tensor);
    auto file = file_of.find(index.files[e.file]);
    if (tensor == numbers.end() || file == file_of.end() || out.file(tensor->second) != file->second)
      return std::nullopt;
  }
  out.index_name_ = original.index_name;
  out.index_ = original.index;
  return out;
}

}  // namespace mckpt::impl
