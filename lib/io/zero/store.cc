// The store's answers, by arithmetic on layouts and columns.
#include "io/zero/store.h"

#include <algorithm>

#include "core/items/stretch_boxes.h"
#include "io/store/open/format_ids.h"

namespace mckpt::impl {

ZeroStore::ZeroStore(const std::string& root, const OpenOptions& opening)
    : files_of_(root, Format::kDeepSpeed, opening) {
  opening_ = opening;
  root_ = root;
  format_ = Format::kDeepSpeed;
}

i32 ZeroStore::add_file(std::string path, i64 bytes, TorchFile file, std::string_view prefix, i32 rank) {
  const std::size_t findings = files_of_.findings().size(), objects = files_of_.objects().size();
  const i32 index = files_of_.add_file(std::move(path), bytes, std::move(file), prefix, rank);
  files_.push_back(files_of_.files().back());
  findings_.insert(findings_.end(), files_of_.findings().begin() + findings, files_of_.findings().end());
  objects_.insert(objects_.end(), files_of_.objects().begin() + objects, files_of_.objects().end());
  return index;
}

i64 ZeroStore::add_layout(const Shape& shape, std::span<const ZeroStretch> stretches) {
  Layout layout{{shape.dims().begin(), shape.dims().end()}, boxes_.size(), 0, numbers_.size()};
  const std::size_t rank = layout.dims.size();
  for (const ZeroStretch& s : stretches) {
    const std::size_t numbers = numbers_.size();
    const i64 count = stretch_boxes(layout.dims, s.items, numbers_);
    i64 begin = s.begin;
    for (i64 b = 0; b < count; b++) {
      boxes_.push_back({begin, static_cast<i32>(s.part), false});
      begin += checked_items({numbers_.data() + numbers + (2 * b + 1) * rank, rank});
    }
  }
  layout.end = boxes_.size();
  layouts_.push_back(std::move(layout));
  return std::ssize(layouts_) - 1;
}

i64 ZeroStore::add_copies_layout(const Shape& shape, i64 copies) {
  Layout layout{{shape.dims().begin(), shape.dims().end()}, boxes_.size(), 0, numbers_.size()};
  for (i64 part = 0; part < copies; part++) {
    boxes_.push_back({0, static_cast<i32>(part), part > 0});
    numbers_.insert(numbers_.end(), layout.dims.size(), 0);
    numbers_.insert(numbers_.end(), layout.dims.begin(), layout.dims.end());
  }
  layout.end = boxes_.size();
  layouts_.push_back(std::move(layout));
  return std::ssize(layouts_) - 1;
}

i64 ZeroStore::add_column(std::vector<ZeroPlace> places) {
  auto first = std::ranges::find_if(places, &ZeroPlace::is_there);
  const DType dtype = table(first->file).dtype(first->row);
  columns_.push_back({std::move(places), dtype});
  return std::ssize(columns_) - 1;
}

// The layout itself if the column has all its parts.
i64 ZeroStore::without_missing(i64 of, const Column& column) {
  auto has = [&](const Box& b) { return column.places[b.part].is_there(); };
  const Layout& whole = layouts_[of];
  if (std::all_of(boxes_.begin() + whole.first, boxes_.begin() + whole.end, has)) return of;
  Layout left{whole.dims, boxes_.size(), 0, numbers_.size()};
  const std::size_t step = 2 * whole.dims.size();
  for (u64 b = whole.first; b < whole.end; b++) {
    if (!has(boxes_[b])) continue;
    boxes_.push_back(Box(boxes_[b]));
    for (std::size_t i = 0; i < step; i++)
      numbers_.push_back(i64(numbers_[whole.numbers + (b - whole.first) * step + i]));
  }
  left.end = boxes_.size();
  layouts_.push_back(std::move(left));
  return std::ssize(layouts_) - 1;
}

void ZeroStore::add_tensor(std::string_view name, i64 layout, i64 column, bool of_model) {
  layout = without_missing(layout, columns_[column]);
  tensors_.push_back({names_.size(), static_cast<u32>(name.size()), static_cast<u32>(layout),
                      static_cast<u32>(column), of_model});
  names_ += name;
}

void ZeroStore::add_row(std::string_view name, ZeroPlace place) {
  add_tensor(name, add_copies_layout(Shape(table(place.file).dims(place.row)), 1), add_column({place}),
             false);
}

void ZeroStore::add_module_copy(std::string name, std::string_view of, const ZeroPlace& place) {
  module_copies_.push_back({std::move(name), std::string(of),
                            add_copies_layout(Shape(table(place.file).dims(place.row)), 1),
                            add_column({place})});
}

void ZeroStore::list_module_copies(const std::function<bool(const ModuleCopy&)>& wanted) {
  for (const ModuleCopy& c : module_copies_)
    if (wanted(c)) add_tensor(c.name, c.layout, c.column, false);
}

std::vector<ZeroStore::Taken> ZeroStore::take_tensors() {
  std::vector<Taken> out;
  for (i64 t = 0; t < tensor_count(); t++)
    out.push_back({std::string(name(t)), tensors_[t].layout, tensors_[t].column, tensors_[t].of_model});
  tensors_.clear(), names_.clear();
  return out;
}

std::vector<ZeroStore::TakenBox> ZeroStore::boxes_of(i64 of) const {
  const Layout& layout = layouts_[of];
  const std::size_t rank = layout.dims.size();
  const i64* numbers = numbers_.data() + layout.numbers;
  std::vector<TakenBox> out;
  for (u64 b = layout.first; b < layout.end; b++, numbers += 2 * rank)
    out.push_back({{numbers, numbers + rank},
                   {numbers + rank, numbers + 2 * rank},
                   boxes_[b].part,
                   boxes_[b].begin,
                   boxes_[b].replica});
  return out;
}

i64 ZeroStore::add_boxes_layout(const Shape& shape, std::span<const TakenBox> boxes) {
  Layout layout{{shape.dims().begin(), shape.dims().end()}, boxes_.size(), 0, numbers_.size()};
  for (const TakenBox& b : boxes) {
    boxes_.push_back({b.begin, static_cast<i32>(b.part), b.replica});
    numbers_.insert(numbers_.end(), b.offsets.begin(), b.offsets.end());
    numbers_.insert(numbers_.end(), b.sizes.begin(), b.sizes.end());
  }
  layout.end = boxes_.size();
  layouts_.push_back(std::move(layout));
  return std::ssize(layouts_) - 1;
}

std::string_view ZeroStore::name(i64 tensor) const {
  const Tensor& t = tensors_[tensor];
  return {names_.data() + t.name_begin, t.name_bytes};
}

DType ZeroStore::dtype(i64 tensor) const { return column_of(tensor).dtype; }

i64 ZeroStore::chunk_count(i64 tensor) const {
  return static_cast<i64>(layout_of(tensor).end - layout_of(tensor).first);
}

const ZeroStore::Box& ZeroStore::box_at(i64 tensor, i64 index) const {
  return boxes_[layout_of(tensor).first + static_cast<u64>(index)];
}

i64 ZeroStore::offset_of(i64 tensor, const Box& box) const {
  const ZeroPlace& place = place_of(tensor, box);
  return table(place.file).offset(place.row) + dtype_bytes(dtype(tensor), box.begin);
}

// A row that is a tensor by itself may have strides; its bytes then reach further than its items.
Chunk ZeroStore::chunk(i64 tensor, i64 index) const {
  const Box& box = box_at(tensor, index);
  const ZeroPlace& place = place_of(tensor, box);
  const Layout& layout = layout_of(tensor);
  const std::size_t rank = layout.dims.size();
  const i64* numbers = numbers_.data() + layout.numbers + static_cast<u64>(index) * 2 * rank;
  const std::span<const i64> offsets(numbers, rank), sizes(numbers + rank, rank);
  const TorchTable& rows = table(place.file);
  return {.offsets = offsets,
          .sizes = sizes,
          .file = place.file,
          .rank = files_of_.rank(place.file),
          .record_offset = offset_of(tensor, box),
          .record_bytes = rows.strides(place.row).empty() ? dtype_bytes(dtype(tensor), checked_items(sizes))
                                                          : rows.extent_bytes(place.row),
          .replica = box.replica};
}

ChunkData ZeroStore::resolve(i64 tensor, i64 index) const {
  const Box& box = box_at(tensor, index);
  const ZeroPlace& place = place_of(tensor, box);
  std::span<const i64> strides = table(place.file).strides(place.row);
  ChunkData out{.file = place.file,
                .offset = offset_of(tensor, box),
                .dtype = table(place.file).dtype(place.row),
                .strides = {strides.begin(), strides.end()},
                .big_endian = files_of_.big_endian(place.file)};
  if (const Checksum* sum = files_of_.record_sum(place.file, place.row)) {
    out.checksum = *sum;
    out.checksum->file = place.file, out.checksum->tensor = -1;  // the record is part of many tensors
  }
  return out;
}

// Records are parts of many tensors, so none is named.
std::optional<u32> ZeroStore::checksum(const ZeroPlace& place) const {
  const Checksum* sum = files_of_.record_sum(place.file, place.row);
  const TorchTable& t = table(place.file);
  bool exact = sum && sum->offset == t.offset(place.row) && sum->bytes == t.extent_bytes(place.row);
  return exact ? std::optional(sum->crc32) : std::nullopt;
}

void ZeroStore::each_checksum(const std::function<void(const Checksum&)>& visit) const {
  files_of_.each_checksum([&](Checksum c) {
    c.tensor = -1;
    visit(c);
  });
}

}  // namespace mckpt::impl
