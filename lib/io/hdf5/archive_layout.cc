// Decides for every tensor whether it is one dataset or a virtual one, asks HDF5 for the places, and lays the
// files of the checkpoint over them.
#include "io/hdf5/archive_layout.h"

#include <algorithm>
#include <array>
#include <memory>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "io/file/crc32.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/layout.h"
#include "io/hdf5/requested_paths.h"
#include "io/output/output_files.h"

namespace mckpt::impl {
namespace {

// A tensor of up to this many bytes is in the first file, so that a model with thousands of norms and biases
// is not one with thousands of virtual datasets.
constexpr i64 kSmallBytes = 64 << 10;

bool is_part_of_byte(DType dtype) { return dtype_info(dtype).bits < 8; }

std::string path_in_group(std::string_view kind, std::string_view name) {
  return cat("/", kArchiveGroup, "/", kind, "/", name);
}

// HDF5 gives '%' in the names of a mapping a meaning.
std::string for_mapping(std::string_view name) {
  std::string out;
  for (char c : name) out.append(c == '%' ? 2 : 1, c);
  return out;
}

// Whether the chunks are rows of the tensor, one behind the other, and all of it. pre: ascending by first
// row.
bool are_rows(const ArchiveTensor& tensor, std::span<const i64> chunks,
              const std::vector<ArchiveChunk>& all) {
  i64 at = 0;
  for (i64 c : chunks) {
    const ArchiveChunk& chunk = all[c];
    for (std::size_t d = 1; d < tensor.dims.size(); d++)
      if (chunk.offsets[d] != 0 || chunk.sizes[d] != tensor.dims[d]) return false;
    if (tensor.dims.empty()) return chunks.size() == 1;
    if (chunk.offsets[0] != at) return false;
    at += chunk.sizes[0];
  }
  return tensor.dims.empty() ? false : at == tensor.dims[0];
}

}  // namespace

// A file of the archive while it is described.
struct ArchiveLayout::Part {
  std::string name;
  Hdf5Request request{0};
  std::unique_ptr<RequestedPaths> paths{};
  // Chunks with the number of the dataset that has them, and where in it.
  struct Placed {
    i64 chunk, dataset, at;
  };
  std::vector<Placed> placed{};
  ComposedHdf5 composed{};
};

// The group comes first, so that no tensor can be in it.
ArchiveLayout::ArchiveLayout(ArchiveContents contents, std::span<const std::string> helper_folders)
    : in_(std::move(contents)), part_of_file_(in_.files.size(), -1) {
  parts_.reserve(in_.files.size() + 1);  // paths refer to the requests
  Part& first = parts_.emplace_back();
  first.name = in_.file_name.empty() ? std::string(kArchiveName) : in_.file_name;
  first.request = Hdf5Request(kUserBlockBytes);
  for (const auto& [name, value] : in_.facts) first.request.text(name, value);
  first.paths = std::make_unique<RequestedPaths>(first.request);
  index_.folder = in_.file_name.empty();
  index_.opened = in_.opened;
  index_.files = in_.files;
  find_rows();
  add_files();
  place_tensors();
  compose(helper_folders);
  make_rows();
}

ArchiveLayout::~ArchiveLayout() = default;

// If chunks share bytes, the first is the row, and the others are stored once more.
void ArchiveLayout::find_rows() {
  rows_of_file_.resize(in_.files.size());
  for (i64 c = 0; c < std::ssize(in_.chunks); c++)
    if (in_.chunks[c].begin >= 0 && in_.chunks[c].bytes > 0) rows_of_file_[in_.chunks[c].file].push_back(c);
  for (std::vector<i64>& chunks : rows_of_file_) {
    std::ranges::stable_sort(chunks, {}, [&](i64 c) { return in_.chunks[c].begin; });
    i64 end = 0;
    std::erase_if(chunks, [&](i64 c) {
      ArchiveChunk& chunk = in_.chunks[c];
      if (chunk.begin < end) return true;
      end = chunk.begin + chunk.bytes;
      return !(chunk.is_row = true);
    });
  }
}

// Adds the bytes between the data of each file, and room for the index.
void ArchiveLayout::add_files() {
  Part& first = parts_[0];
  const Hdf5Type byte = hdf5_type(DType::kU8), number = hdf5_type(DType::kU64);
  i64 rows = 0;
  for (i64 f = 0; f < std::ssize(in_.files); f++) {
    i64 rest = in_.files[f].bytes, at = 0;
    for (i64 c : rows_of_file_[f]) {
      const ArchiveChunk& chunk = in_.chunks[c];
      rows += 1 + (chunk.begin > at);
      at = chunk.begin + chunk.bytes;
      rest -= chunk.bytes;
    }
    rows += at < in_.files[f].bytes;
    std::string path = path_in_group("files", in_.files[f].name);
    first.paths->add(path, in_.files[f].name);
    rest_dataset_.push_back(first.request.contiguous(path, byte, std::array{rest}));
    rest_bytes_.push_back(rest);
  }
  std::string path = cat("/", kArchiveGroup, "/index");
  first.paths->add(path, path);
  index_dataset_ = first.request.contiguous(path, number, std::array{rows, ArchiveIndex::kColumns});
  first.request.text("columns", "file, first byte, bytes, part, offset in part, CRC-32");
  place_.rows_bytes = rows * ArchiveIndex::kColumns * static_cast<i64>(sizeof(u64));
}

i64 ArchiveLayout::part_of(i64 file) {
  if (!index_.folder) return 0;
  i64& part = part_of_file_[file];
  if (part >= 0) return part;
  part = std::ssize(parts_);
  Part& made = parts_.emplace_back();
  made.name = part_name(file);
  made.request = Hdf5Request(0);
  made.paths = std::make_unique<RequestedPaths>(made.request);
  return part;
}

// "mp_rank_00/model_optim_rng.pt" is mp_rank_00_model_optim_rng.pt.h5; names that would be equal get numbers.
std::string ArchiveLayout::part_name(i64 file) {
  std::string name = in_.files[file].name;
  std::ranges::replace(name, '/', '_');
  auto taken = [&](const std::string& n) {
    return std::ranges::find(parts_, n, &Part::name) != parts_.end();
  };
  return taken(name + ".h5") ? cat(name, "_", file, ".h5") : name + ".h5";
}

void ArchiveLayout::place_tensors() {
  std::vector<std::vector<i64>> chunks(in_.tensors.size());
  for (i64 c = 0; c < std::ssize(in_.chunks); c++) chunks[in_.chunks[c].tensor].push_back(c);
  for (i64 t = 0; t < std::ssize(in_.tensors); t++) {
    const ArchiveTensor& tensor = in_.tensors[t];
    std::vector<i64>& own = chunks[t];
    std::ranges::stable_sort(own, {}, [&](i64 c) { return in_.chunks[c].offsets; });
    i64 bytes = 0;
    for (i64 c : own) bytes += in_.chunks[c].bytes;
    bool whole = own.empty() || are_rows(tensor, own, in_.chunks);
    if (is_part_of_byte(tensor.dtype) && own.size() > 1)
      throw Error(Code::kUnsupportedTensor, "elements smaller than a byte, in several chunks")
          .tensor(tensor.name);
    if (std::string_view name = tensor.name;
        name == kArchiveGroup || name.starts_with(cat(kArchiveGroup, "/")))
      throw Error(Code::kNotHeld, "the name is that of what an archive has beside the tensors")
          .tensor(tensor.name);
    if (whole && (!index_.folder || bytes <= kSmallBytes || is_part_of_byte(tensor.dtype)))
      add_whole(t, own);
    else
      add_virtual(t, own);
  }
}

// One dataset with the data of all chunks, one behind the other.
void ArchiveLayout::add_whole(i64 t, std::span<const i64> chunks) {
  const ArchiveTensor& tensor = in_.tensors[t];
  Part& first = parts_[0];
  std::string path = cat("/", tensor.name);
  first.paths->add(path, tensor.name);
  std::vector<i64> dims = tensor.dims;
  if (is_part_of_byte(tensor.dtype)) dims = {chunks.empty() ? 0 : in_.chunks[chunks[0]].bytes};
  i64 dataset = first.request.contiguous(path, hdf5_type(tensor.dtype), dims), at = 0;
  first.request.text("dtype", dtype_name(tensor.dtype));
  for (i64 c : chunks) {
    first.placed.push_back({c, dataset, at});
    in_.chunks[c].part = 0;
    at += in_.chunks[c].bytes;
  }
}

// A dataset for each chunk, in the part of the file that has the chunk, and a virtual one over them.
void ArchiveLayout::add_virtual(i64 t, std::span<const i64> chunks) {
  const ArchiveTensor& tensor = in_.tensors[t];
  const Hdf5Type type = hdf5_type(tensor.dtype);
  std::vector<Hdf5Mapping> mappings;
  std::vector<i64> used;  // parts that have a chunk of the tensor already
  for (i64 c : chunks) {
    ArchiveChunk& chunk = in_.chunks[c];
    chunk.part = part_of(chunk.file);
    Part& part = parts_[chunk.part];
    bool again = std::ranges::count(used, chunk.part) > 0;
    used.push_back(chunk.part);
    std::string path = cat("/", tensor.name);
    if (chunk.part == 0 || again) path = path_in_group("chunks", cat(tensor.name, "/", mappings.size()));
    part.paths->add(path, tensor.name);
    i64 dataset = part.request.contiguous(path, type, chunk.sizes);
    part.request.text("dtype", dtype_name(tensor.dtype));
    part.request.numbers("shape", tensor.dims);
    part.request.numbers("offset", chunk.offsets);
    part.placed.push_back({c, dataset, 0});
    mappings.push_back(
        {chunk.part == 0 ? "." : for_mapping(part.name), for_mapping(path), chunk.offsets, chunk.sizes});
  }
  Part& first = parts_[0];
  std::string path = cat("/", tensor.name);
  first.paths->add(path, tensor.name);
  first.request.virtual_dataset(path, type, tensor.dims, mappings);
  first.request.text("dtype", dtype_name(tensor.dtype));
}

// The names come last, because they name all parts; their length does not depend on sizes and sums.
void ArchiveLayout::compose(std::span<const std::string> helper_folders) {
  for (const Part& p : parts_) index_.parts.push_back({p.name, 0, 0});
  place_.names_bytes = std::ssize(index_.name_text());
  Part& first = parts_[0];
  std::string path = cat("/", kArchiveGroup, "/names");
  first.paths->add(path, path);
  names_dataset_ = first.request.contiguous(path, hdf5_type(DType::kU8), std::array{place_.names_bytes});
  for (i64 p = 0; p < std::ssize(parts_); p++) {
    Part& part = parts_[p];
    part.paths.reset();
    part.composed = compose_hdf5(std::move(part.request), helper_folders);
    for (const Part::Placed& placed : part.placed)
      in_.chunks[placed.chunk].offset = part.composed.offsets[placed.dataset] + placed.at;
    index_.parts[p].bytes = part.composed.bytes;
  }
  for (i64 dataset : rest_dataset_) rest_offset_.push_back(first.composed.offsets[dataset]);
  place_.rows_offset = first.composed.offsets[index_dataset_];
  place_.names_offset = first.composed.offsets[names_dataset_];
}

void ArchiveLayout::make_rows() {
  for (i64 f = 0; f < std::ssize(in_.files); f++) {
    i64 at = 0, rest = rest_offset_[f];
    auto add_rest = [&](i64 end) {
      if (end == at) return;
      index_.rows.push_back({f, at, end - at, 0, rest, 0});
      chunk_of_row_.push_back(-1);
      rest += end - at;
      at = end;
    };
    for (i64 c : rows_of_file_[f]) {
      const ArchiveChunk& chunk = in_.chunks[c];
      add_rest(chunk.begin);
      index_.rows.push_back({f, at, chunk.bytes, chunk.part, chunk.offset, 0});
      chunk_of_row_.push_back(c);
      at += chunk.bytes;
    }
    add_rest(in_.files[f].bytes);
  }
}

std::vector<OutputFile> ArchiveLayout::output_files() const {
  std::vector<OutputFile> out;
  for (const ArchiveIndex::Part& p : index_.parts) out.push_back({p.name, p.bytes});
  return out;
}

std::string ArchiveLayout::identity() const {
  std::string out = index_.name_text();
  out += cat(crc32_text(crc32(0, index_.row_bytes())), "\n");
  for (const Part& p : parts_) {
    u32 sum = 0;
    for (const Hdf5Piece& piece : p.composed.pieces)
      sum = crc32(sum, {reinterpret_cast<const u8*>(piece.bytes.data()), piece.bytes.size()});
    out += cat(crc32_text(sum), "\n");
  }
  return out;
}

namespace {

// The sum of a part's own bytes, front to back: pieces that HDF5 composed, zeros between them.
class FrameSum {
 public:
  explicit FrameSum(std::span<const Hdf5Piece> pieces) : pieces_(pieces) {}

  // Adds bytes [at, end) unless they are counted elsewhere.
  void add(i64 at, i64 end) {
    while (at < end) {
      while (next_ < pieces_.size() && end_of(pieces_[next_]) <= at) next_++;
      bool in_piece = next_ < pieces_.size() && pieces_[next_].offset < end;
      i64 piece = in_piece ? std::max(pieces_[next_].offset, at) : end;
      for (; at < piece; at += std::min<i64>(piece - at, std::ssize(kZeros)))
        sum_ = crc32(sum_, std::span(kZeros).first(
                               static_cast<std::size_t>(std::min<i64>(piece - at, std::ssize(kZeros)))));
      if (!in_piece) return;
      const Hdf5Piece& p = pieces_[next_];
      i64 stop = std::min(end, end_of(p));
      sum_ = crc32(sum_, {reinterpret_cast<const u8*>(p.bytes.data()) + (at - p.offset),
                          static_cast<std::size_t>(stop - at)});
      at = stop;
    }
  }
  void join(u32 sum, i64 bytes) { sum_ = crc32_join(sum_, sum, bytes); }
  u32 sum() const { return sum_; }

 private:
  static constexpr std::array<u8, 4096> kZeros{};
  static i64 end_of(const Hdf5Piece& p) { return p.offset + std::ssize(p.bytes); }

  std::span<const Hdf5Piece> pieces_;
  std::size_t next_ = 0;
  u32 sum_ = 0;
};

}  // namespace

// Stretches of a part that have sums: rows, the index, and data of chunks that are not rows, which are among
// the rest.
std::vector<ArchiveLayout::Stretch> ArchiveLayout::known_stretches(i64 part, const SumAt& sum) const {
  std::vector<Stretch> out;
  for (const ArchiveIndex::Row& r : index_.rows)
    if (r.part == part) out.push_back({r.offset, r.bytes, 0, false});
  for (const ArchiveChunk& c : in_.chunks)
    if (c.part == part && !c.is_row && c.bytes > 0)
      out.push_back({c.offset, c.bytes, sum(part, c.offset), true});
  if (part == 0)
    for (auto [offset, bytes] : {std::pair<i64, i64>{0, kUserBlockBytes},
                                 {place_.rows_offset, place_.rows_bytes},
                                 {place_.names_offset, place_.names_bytes}})
      if (bytes > 0) out.push_back({offset, bytes, 0, false});
  std::ranges::sort(out, {}, &Stretch::offset);
  return out;
}

void ArchiveLayout::write(CopySink& out, const SumAt& sum) const {
  ArchiveIndex index = index_;
  IndexPlace place = place_;
  auto bytes_of = [](std::string_view text) {
    return std::span(reinterpret_cast<const u8*>(text.data()), text.size());
  };
  for (ArchiveIndex::Row& r : index.rows) r.crc32 = sum(r.part, r.offset);
  for (i64 p = 0; p < std::ssize(parts_); p++) {
    FrameSum rest(parts_[p].composed.pieces);
    i64 at = 0;
    for (const Stretch& s : known_stretches(p, sum)) {
      rest.add(at, s.offset);
      if (s.counts) rest.join(s.crc32, s.bytes);
      at = s.offset + s.bytes;
    }
    rest.add(at, index.parts[p].bytes);
    index.parts[p].rest_crc32 = rest.sum();
    for (const Hdf5Piece& piece : parts_[p].composed.pieces)
      out.write(static_cast<i32>(p), piece.offset, bytes_of(piece.bytes));
  }
  std::vector<u8> rows = index.row_bytes();
  std::string names = index.name_text();
  place.rows_crc32 = crc32(0, rows);
  place.names_crc32 = crc32(0, bytes_of(names));
  if (!rows.empty()) out.write(0, place.rows_offset, rows);
  out.write(0, place.names_offset, bytes_of(names));
  out.write(0, 0, user_block(place));
}

}  // namespace mckpt::impl
