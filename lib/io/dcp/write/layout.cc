// Assigns every chunk and object its place: records follow one another in a rank's file without gaps. Two
// chunks of one type and size have the same frame (record.h), so a model has only a few dozen of them.
#include "io/dcp/write/layout.h"

#include "io/dcp/write/record.h"
#include "io/file/crc32.h"
#include "io/output/output_files.h"

namespace mckpt::impl {

DcpLayout::DcpLayout(i64 ranks) : file_bytes_(static_cast<std::size_t>(ranks)) {}
DcpLayout::DcpLayout(DcpLayout&&) noexcept = default;
DcpLayout::~DcpLayout() = default;

i32 DcpLayout::add_key(DcpLayoutKey key) {
  keys_.push_back(std::move(key));
  return static_cast<i32>(keys_.size() - 1);
}

// The frame is found by the type and the raw bytes of the sizes.
i64 DcpLayout::add_chunk(i32 key, i32 rank, std::span<const i64> offsets, std::span<const i64> sizes) {
  DType dtype = this->key(key).dtype;
  std::string shape_id(1, static_cast<char>(dtype));
  shape_id.append(reinterpret_cast<const char*>(sizes.data()), sizes.size_bytes());
  auto [at, first] = frame_of_.try_emplace(std::move(shape_id), static_cast<i32>(frames_.size()));
  if (first) frames_.push_back(std::make_unique<const DcpTensorFrame>(dtype, sizes));

  i64& end = file_bytes_[rank];
  chunks_.push_back({key, rank, at->second, std::ssize(boxes_), end});
  boxes_.insert(boxes_.end(), offsets.begin(), offsets.end());
  boxes_.insert(boxes_.end(), sizes.begin(), sizes.end());
  end = checked_add(end, frames_[at->second]->record_bytes(), "the size of a file");
  return std::ssize(chunks_) - 1;
}

// An object without a record is written by its owner, a record here by write_objects().
i64 DcpLayout::add_object_record(DcpName name, i32 rank, i64 bytes) {
  i64& end = file_bytes_[rank];
  objects_.push_back({std::move(name), rank, end, bytes, ""});
  end = checked_add(end, bytes, "the size of a file");
  return objects_.back().offset;
}

void DcpLayout::add_object(DcpName name, i32 rank, std::string_view pickle) {
  add_archive(std::move(name), rank, dcp_object_record(pickle));
}

void DcpLayout::add_archive(DcpName name, i32 rank, std::string archive) {
  add_object_record(std::move(name), rank, std::ssize(archive));
  objects_.back().record = std::move(archive);
}

void DcpLayout::add_value(DcpName name, i32 rank, DType dtype, std::span<const u8> bytes) {
  DcpTensorFrame frame(dtype, {});
  std::string record(frame.head().begin(), frame.head().end());
  record.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<u8> tail(static_cast<std::size_t>(frame.tail_bytes()));
  frame.write_tail(crc32(0, bytes), tail);
  record.append(tail.begin(), tail.end());
  add_object_record(std::move(name), rank, std::ssize(record));
  objects_.back().record = std::move(record);
  objects_.back().dtype = dtype;
}

i64 DcpLayout::Chunk::data_offset() const { return record_offset + std::ssize(frame->head()); }

DcpLayout::Chunk DcpLayout::chunk(i64 index) const {
  const Column& c = chunks_[index];
  std::size_t rank = static_cast<std::size_t>(key(c.key).shape.rank());
  std::span<const i64> box = std::span(boxes_).subspan(static_cast<std::size_t>(c.box), 2 * rank);
  return {c.key, c.rank, box.first(rank), box.subspan(rank), c.record_offset, frames_[c.frame].get()};
}

std::vector<OutputFile> DcpLayout::files() const {
  std::vector<OutputFile> out;
  for (std::size_t rank = 0; rank < file_bytes_.size(); rank++)
    out.push_back({dcp_file_name(static_cast<i64>(rank)), file_bytes_[rank]});
  return out;
}

// A chunk of no items has no data that a copy would write, but its record is complete all the same. The
// CRC-32 of no bytes is 0.
void DcpLayout::write_objects(OutputFiles& out) const {
  for (const Object& o : objects_)
    out.write(o.rank, o.offset, {reinterpret_cast<const u8*>(o.record.data()), o.record.size()});
  for (const Column& c : chunks_) {
    const DcpTensorFrame& frame = *frames_[c.frame];
    if (frame.data_bytes() > 0) continue;
    std::vector<u8> record(frame.head().begin(), frame.head().end());
    record.resize(static_cast<std::size_t>(frame.record_bytes()));
    frame.write_tail(0, std::span(record).subspan(frame.head().size()));
    out.write(c.rank, c.record_offset, record);
  }
}

}  // namespace mckpt::impl
