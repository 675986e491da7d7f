// Functions that all stores share: labels of files, findings from errors, natural order of tensors, look-up
// by name (a linear search: callers with many names make a table).
#include "io/store/store.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/names.h"
#include "core/items/shape.h"

namespace mckpt::impl {

Finding to_finding(const Error& e) {
  std::string message = e.message();
  if (!e.expected().empty()) message += cat(": expected ", e.expected());
  if (!e.found().empty()) message += cat(e.expected().empty() ? ": found " : ", found ", e.found());
  for (const std::string& note : e.notes()) message += cat("; ", note);
  return {.code = e.code(),
          .tensor = e.tensor(),
          .file = e.file(),
          .message = message,
          .help = e.help(),
          .offset = e.offset()};
}

void add_sums(ChunkData&& data, std::vector<Checksum>& to) {
  if (data.checksum) to.push_back(std::move(*data.checksum));
  std::ranges::move(data.beneath, std::back_inserter(to));
}

void add_sums(const Store& store, i64 tensor, std::vector<Checksum>& to) {
  for (i64 c = 0; c < store.chunk_count(tensor); c++) add_sums(store.resolve(tensor, c), to);
}

void Store::describe_as(const Store& source) {
  root_ = source.root_;
  opening_ = source.opening_;
  format_ = source.format_;
  ranks_ = source.ranks_;
  files_ = source.files_;
  facts_ = source.facts_;
  traits = source.traits;
}

Shape Store::shape(i64 tensor) const { return Shape(dims(tensor)); }

std::string file_path(const Store& store, i32 file) {
  if (file < 0) return store.root();
  const std::string& path = store.files()[file].path;
  return path.empty() ? store.root() : cat(store.root(), "/", path);
}

bool is_file(const Store& store, const Object& object) {
  return object.file >= 0 && store.files()[object.file].path == object.name;
}

std::string_view file_label(const Store& store, i32 file) {
  if (file < 0) return {};
  std::string_view path = store.files()[file].path;
  if (!path.empty()) return path;
  path = store.root();
  return path.substr(path.rfind('/') + 1);
}

std::span<const i64> zero_offsets(std::size_t rank) {
  static constexpr std::array<i64, Shape::kMaxRank> kZeros{};
  return std::span(kZeros).first(rank);
}

std::vector<i64> natural_order(const Store& store) {
  // A sort compares each name with a dozen others, so each gets a key once, which is compared as plain bytes.
  std::size_t bytes = 0;
  for (i64 t = 0; t < store.tensor_count(); t++) bytes += 2 * store.name(t).size();
  auto keys = std::make_unique_for_overwrite<char[]>(bytes);
  struct Row {
    std::string_view key;
    i64 tensor;
  };
  std::vector<Row> rows;
  rows.reserve(static_cast<std::size_t>(store.tensor_count()));
  char* at = keys.get();
  for (i64 t = 0; t < store.tensor_count(); t++) {
    char* end = write_natural_key(at, store.name(t));
    rows.push_back({{at, end}, t});
    at = end;
  }
  auto less = [&](const Row& a, const Row& b) {
    int order = a.key.compare(b.key);
    return order != 0 ? order < 0 : store.name(a.tensor) < store.name(b.tensor);
  };
  // Writers that keep the model's own order are common, and a check is cheaper than a sort.
  if (!std::is_sorted(rows.begin(), rows.end(), less)) std::stable_sort(rows.begin(), rows.end(), less);
  std::vector<i64> order;
  order.reserve(rows.size());
  for (const Row& row : rows) order.push_back(row.tensor);
  return order;
}

std::vector<i64> item_index(i64 item, std::span<const i64> dims) {
  std::vector<i64> index(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    index[d] = item % dims[d];
    item /= dims[d];
  }
  return index;
}

// Tensors without chunks come first, under no file.
std::vector<i64> file_order(const Store& store) {
  struct Place {
    i32 file;
    i64 offset, tensor;
    auto operator<=>(const Place&) const = default;
  };
  std::vector<Place> places;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    if (store.chunk_count(t) == 0) {
      places.push_back({-1, -1, t});
      continue;
    }
    Chunk first = store.chunk(t, 0);
    places.push_back({first.file, first.record_offset, t});
  }
  std::sort(places.begin(), places.end());
  std::vector<i64> order;
  order.reserve(places.size());
  for (const Place& p : places) order.push_back(p.tensor);
  return order;
}

i64 find_tensor(const Store& store, std::string_view name) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (store.name(t) == name) return t;
  return -1;
}

}  // namespace mckpt::impl
