// Reads the index of a sharded folder as a stream: the index of 100,000 tensors is 10 MB of JSON.
#include "io/safetensors/index.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/names.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_keys.h"
#include "io/store/names/torch_names.h"

namespace mckpt::impl {
namespace {

// The numbers of the files by their names: an open table of numbers alone, as an index may name as many
// files as tensors, and each name is kept once.
class FileNumbers {
 public:
  // The place of a name, with its number and one; 0 there: the name is new, and gets the next number.
  u32& at(const std::vector<std::string>& files, std::string_view name) {
    if (2 * (files.size() + 1) > slots_.size()) grow(files);
    return find(files, name);
  }

 private:
  u32& find(const std::vector<std::string>& files, std::string_view name) {
    std::size_t slot = NameHash{}(name) % slots_.size();
    while (slots_[slot] != 0 && files[slots_[slot] - 1] != name) slot = (slot + 1) % slots_.size();
    return slots_[slot];
  }
  void grow(const std::vector<std::string>& files) {
    slots_.assign(std::max<std::size_t>(64, 2 * slots_.size()), 0);
    for (u32 i = 0; i < files.size(); i++) find(files, files[i]) = i + 1;
  }

  std::vector<u32> slots_;
};

bool is_safetensors_name(std::string_view name) { return name.ends_with(".safetensors"); }

// Reads one text; used once.
class IndexReader {
 public:
  // `of_format`: whether a file is of the format that the index is about, which has this name.
  IndexReader(bool (*of_format)(std::string_view), const char* format)
      : of_format_(of_format), format_(format) {}

  SafetensorsIndex read(std::string_view text) {
    JsonValue index = parse_json_list(text, "weight_map", [&](JsonListed entry) { add(std::move(entry)); });
    if (!index.is(JsonType::kObject)) throw Error(Code::kBadJson, "the index is not a JSON object");
    const JsonValue* map = index.find("weight_map");
    if (!map) throw Error(Code::kBadIndex, "the index has no weight_map");
    if (!map->is(JsonType::kObject))
      throw Error(Code::kBadIndex, "weight_map is not an object from names to files").found(map->summary());
    read_metadata(index.find("metadata"));
    sort_files();
    return std::move(index_);
  }

 private:
  // A tensor name and its file. A name that occurs twice is an error of the JSON reader.
  void add(JsonListed entry) {
    if (!entry.value.is(JsonType::kString))
      fail(cat("weight_map: the file of '", escaped(entry.name), "' is not a string (wrong type)"),
           entry.offset);
    u32 file = file_index(entry.value.string(entry.name), entry.offset);
    index_.weight_map.push_back({std::move(entry.name), file});
  }

  // Only transformers asks for the entry, and takes any object.
  void read_metadata(const JsonValue* metadata) {
    if (metadata && metadata->is(JsonType::kObject)) {
      if (const JsonValue* size = metadata->find("total_size")) read_total_size(*size);
      return;
    }
    index_.findings.push_back(
        {.code = Code::kBadIndex,
         .message =
             cat("the index has no object 'metadata', and transformers does not load the folder: found ",
                 metadata ? metadata->summary() : "none"),
         .help = "add the entry \"metadata\": {} to the index",
         .warning = true});
  }

  // total_size serves progress bars only: a wrong one is a warning.
  void read_total_size(const JsonValue& size) {
    i64 value = -1;
    if (size.is(JsonType::kNumber) && json_integer_fault(size.number("total_size"), value).empty() &&
        value >= 0)
      index_.total_size = value;
    else
      index_.findings.push_back(
          {.code = Code::kBadTotalSize,
           .message = cat("metadata.total_size is not a number of bytes: found ", size.summary()),
           .warning = true});
  }

  // The number of a file, new the first time. Throws for a name that leads out of the folder; "./" leads nowhere.
  u32 file_index(std::string name, i64 offset) {
    while (name.starts_with("./")) name.erase(0, 2);
    u32& number = numbers_.at(index_.files, name);
    if (number != 0) return number - 1;
    check_inside_name(name);
    if (!of_format_(name))
      fail(cat("weight_map names the file '", escaped(name), "', which is not in ", format_,
               " format by its name"),
           offset);
    index_.files.emplace_back(name);
    number = static_cast<u32>(index_.files.size());
    return number - 1;
  }

  [[noreturn]] static void fail(std::string message, i64 offset) {
    throw Error(Code::kBadIndex, std::move(message)).offset(offset);
  }

  // Puts the files in natural order (model-2 before model-10) and renumbers the entries.
  void sort_files() {
    std::vector<u32> order(index_.files.size()), place(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](u32 a, u32 b) { return natural_less(index_.files[a], index_.files[b]); });
    for (u32 i = 0; i < order.size(); i++) place[order[i]] = i;
    std::vector<std::string> sorted;
    sorted.reserve(order.size());
    for (u32 i : order) sorted.push_back(std::move(index_.files[i]));
    index_.files = std::move(sorted);
    for (SafetensorsIndex::Entry& e : index_.weight_map) e.file = place[e.file];
  }

  bool (*of_format_)(std::string_view);
  const char* format_;
  SafetensorsIndex index_;
  FileNumbers numbers_;
};

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text) {
  return IndexReader(is_safetensors_name, "safetensors").read(text);
}

SafetensorsIndex parse_torch_index(std::string_view text) {
  return IndexReader(has_torch_suffix, "torch").read(text);
}

}  // namespace mckpt::impl
