// Reads the index of a sharded folder as a stream: that of 100,000 tensors is 10 MB of JSON.
#include "io/safetensors/index.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/base/names.h"
#include "io/file/folder.h"
#include "io/file/json.h"

namespace mckpt::impl {
namespace {

// Reads one text; used once.
class IndexReader {
 public:
  explicit IndexReader(std::string_view text) : json_(text) {}

  SafetensorsIndex read() {
    if (json_.peek() != JsonType::kObject) json_.fail("the index is not a JSON object");
    bool has_map = false;
    std::string_view key;
    for (json_.begin_object(); json_.next_key(key);) {
      if (key == "weight_map") {
        read_weight_map();
        has_map = true;
      } else if (key == "metadata") {
        read_metadata();
      } else {
        json_.skip();
      }
    }
    json_.end();
    if (!has_map) throw Error(Code::kBadIndex, "the index has no weight_map");
    sort_files();
    return std::move(index_);
  }

 private:
  // Tensor names and their files. A name that occurs twice is an error of the JSON reader.
  void read_weight_map() {
    if (json_.peek() != JsonType::kObject) fail("weight_map is not an object from names to files");
    std::string_view tensor;
    for (json_.begin_object(); json_.next_key(tensor);) {
      if (json_.peek() != JsonType::kString)
        fail(cat("weight_map: the file of '", escaped(tensor), "' is not a string (wrong type)"));
      index_.weight_map.push_back({std::string(tensor), file_index(json_.string())});
    }
  }

  // total_size serves progress bars only: a wrong one is a warning.
  void read_metadata() {
    if (json_.peek() != JsonType::kObject) return json_.skip();
    std::string_view key;
    for (json_.begin_object(); json_.next_key(key);) {
      if (key != "total_size") {
        json_.skip();
        continue;
      }
      if (json_.peek() != JsonType::kNumber) {
        bad_total_size(std::string(json_type_name(json_.peek())));
        json_.skip();
        continue;
      }
      std::string_view number = json_.number();
      i64 value = -1;
      if (!json_integer_fault(number, value).empty() || value < 0) {
        bad_total_size(escaped(number, 40));
      } else {
        index_.total_size = value;
      }
    }
  }

  void bad_total_size(std::string found) {
    index_.findings.push_back({.code = Code::kBadTotalSize,
                               .message = cat("metadata.total_size is not a number of bytes: found ", found),
                               .offset = json_.offset(),
                               .warning = true});
  }

  // The number of a file, new the first time. Throws for a name that leads out of the folder.
  u32 file_index(std::string_view name) {
    if (auto known = known_files_.find(name); known != known_files_.end()) return known->second;
    check_inside_name(name);
    if (!name.ends_with(".safetensors")) {
      fail(cat("weight_map names the file '", escaped(name),
               "', which is not in safetensors format by its name"));
    }
    u32 index = static_cast<u32>(index_.files.size());
    index_.files.emplace_back(name);
    known_files_.emplace(name, index);
    return index;
  }

  [[noreturn]] void fail(std::string message) const {
    throw Error(Code::kBadIndex, std::move(message)).offset(json_.offset());
  }

  // Puts the files in natural order (model-2 before model-10) and renumbers the entries.
  void sort_files() {
    std::vector<u32> order(index_.files.size()), place(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](u32 a, u32 b) { return natural_less(index_.files[a], index_.files[b]); });
    for (u32 i = 0; i < order.size(); i++) place[order[i]] = i;
    std::vector<std::string> sorted;
    for (u32 i : order) sorted.push_back(std::move(index_.files[i]));
    index_.files = std::move(sorted);
    for (SafetensorsIndex::Entry& e : index_.weight_map) e.file = place[e.file];
  }

  JsonReader json_;
  SafetensorsIndex index_;
  NameMap<std::string_view, u32> known_files_;  // views into the text or the reader
};

}  // namespace

SafetensorsIndex parse_safetensors_index(std::string_view text) { return IndexReader(text).read(); }

}  // namespace mckpt::impl
