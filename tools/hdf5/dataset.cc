// Reports type, shape, filters and storage of one dataset.
//
//   contiguous   one stretch of the file                  offset and size
//   compact      at most 64 KiB in the header             the bytes themselves
//   chunked      a grid of chunks, filtered (gzip, ...)   chunk shape, filters, a place for each chunk
//   virtual      boxes of other datasets                  file, dataset and box of each
//   external files                                        refused: the data are in other files
//
// Filters are not run here: mckpt inflates chunks itself. Numbers that the library reports are passed on and
// checked by mckpt.
#include "hdf5/dataset.h"

#include <algorithm>
#include <vector>

#include "hdf5/chunks.h"
#include "hdf5/type.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Blame;
using hdf5_wire::Storage;

// One dataset that is open, with what was read of its header.
struct Dataset {
  const std::string& name;
  hid_t id, type, properties;
  ElementType element;
  std::vector<hsize_t> dims;
};

// Each writes a fault and returns false, so that a caller can return its result.
bool damaged(Answer& out, const Dataset& d, std::string_view words) {
  out.fault(d.name, Blame::kDamaged, words);
  return false;
}

bool unsupported(Answer& out, const Dataset& d, std::string_view words) {
  out.fault(d.name, Blame::kUnsupported, words);
  return false;
}

// The value of items that were never written, as bytes of the type; empty for the default, zero.
bool add_fill_value(Answer& out, const Dataset& d) {
  H5D_fill_value_t state;
  if (H5Pfill_value_defined(d.properties, &state) < 0) return damaged(out, d, library_words());
  std::string value;
  if (state == H5D_FILL_VALUE_USER_DEFINED) {
    value.resize(d.element.bytes);
    if (H5Pget_fill_value(d.properties, d.type, value.data()) < 0) return damaged(out, d, library_words());
  }
  out.text(value);
  return true;
}

bool add_contiguous(Answer& out, const Dataset& d) {
  int files = H5Pget_external_count(d.properties);
  if (files < 0) return damaged(out, d, library_words());
  if (files > 0) return unsupported(out, d, "external storage: the data are in another file");
  haddr_t offset = H5Dget_offset(d.id);
  out.byte(static_cast<int>(Storage::kContiguous));
  out.number(offset == HADDR_UNDEF ? hdf5_wire::kUnwritten : offset).number(H5Dget_storage_size(d.id));
  return true;
}

// The data are a part of the header, so the bytes themselves are sent.
bool add_compact(Answer& out, const Dataset& d) {
  constexpr hsize_t kMostBytes = 64 << 10;  // what fits into a header
  hsize_t bytes = d.element.bytes;
  for (hsize_t n : d.dims)
    if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = kMostBytes + 1;
  if (bytes > kMostBytes || bytes != H5Dget_storage_size(d.id))
    return damaged(out, d, "the size of the data in the header does not fit the dimensions");
  std::string data(bytes, '\0');
  if (bytes > 0 && H5Dread(d.id, d.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data.data()) < 0)
    return damaged(out, d, library_words());
  out.byte(static_cast<int>(Storage::kCompact)).text(data);
  return true;
}

// Each filter with its first parameter, in the order in which they were applied when the chunk was written.
bool add_filters(Answer& out, const Dataset& d) {
  unsigned options = 0;
  if (H5Pget_chunk_opts(d.properties, &options) < 0) return damaged(out, d, library_words());
  if (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS)
    return unsupported(out, d, "chunks at the edge that are stored without the filters");
  int filters = H5Pget_nfilters(d.properties);
  if (filters < 0) return damaged(out, d, library_words());
  out.number(static_cast<std::uint64_t>(filters));
  for (int i = 0; i < filters; i++) {
    unsigned flags = 0, config = 0, parameters[8] = {};
    size_t count = std::size(parameters);
    H5Z_filter_t id = H5Pget_filter2(d.properties, static_cast<unsigned>(i), &flags, &count, parameters, 0,
                                     nullptr, &config);
    if (id < 0) return damaged(out, d, library_words());
    out.number(static_cast<std::uint64_t>(id)).number(parameters[0]);
  }
  return true;
}

// Chunk shape, filters, and the places of the chunks; a damaged index drops the whole record.
bool add_chunked(Answer& out, Effort& effort, const Dataset& d) {
  int rank = static_cast<int>(d.dims.size());
  std::vector<hsize_t> chunk(d.dims.size());
  if (H5Pget_chunk(d.properties, rank, chunk.data()) != rank) return damaged(out, d, library_words());
  if (std::find(chunk.begin(), chunk.end(), 0) != chunk.end()) return damaged(out, d, "chunks of no items");
  out.byte(static_cast<int>(Storage::kChunked));
  for (hsize_t n : chunk) out.number(n);
  if (!add_filters(out, d)) return false;
  ChunkAnswer chunks = add_chunks(out, effort, d.id, d.dims, chunk);
  if (chunks == ChunkAnswer::kDamaged) return damaged(out, d, "the index of the chunks is corrupt");
  if (chunks == ChunkAnswer::kTooMany)
    return unsupported(out, d, "the number of chunks is beyond the limit for a file of this size");
  return true;
}

// The name of mapping `i`'s file or dataset, as one of the library's two functions gives it.
template <typename Get>
std::string mapped_name(Get&& get, hid_t properties, size_t i) {
  ssize_t bytes = get(properties, i, nullptr, 0);
  std::string name(bytes > 0 ? static_cast<std::size_t>(bytes) : 0, '\0');
  if (bytes > 0 && get(properties, i, name.data(), name.size() + 1) < 0) return "";
  return name;
}

// Only boxes of whole datasets, as mckpt writes them.
bool add_virtual(Answer& out, const Dataset& d) {
  size_t count = 0;
  if (H5Pget_virtual_count(d.properties, &count) < 0) return damaged(out, d, library_words());
  out.byte(static_cast<int>(Storage::kVirtual)).number(count);
  for (size_t i = 0; i < count; i++) {
    Handle<H5Sclose> space(H5Pget_virtual_vspace(d.properties, i));
    std::vector<hsize_t> begin(d.dims.size()), end(d.dims.size());
    if (!space || H5Sget_select_bounds(space, begin.data(), end.data()) < 0)
      return damaged(out, d, library_words());
    out.text(mapped_name(H5Pget_virtual_filename, d.properties, i));
    out.text(mapped_name(H5Pget_virtual_dsetname, d.properties, i));
    for (hsize_t n : begin) out.number(n);
    hssize_t items = 1;
    for (std::size_t k = 0; k < begin.size(); k++) {
      out.number(end[k] - begin[k] + 1);
      items *= static_cast<hssize_t>(end[k] - begin[k] + 1);
    }
    if (items != H5Sget_select_npoints(space))
      return unsupported(out, d, "a virtual dataset whose parts are no boxes");
  }
  return true;
}

bool add_storage(Answer& out, Effort& effort, const Dataset& d) {
  switch (H5Pget_layout(d.properties)) {
    case H5D_CONTIGUOUS:
      return add_contiguous(out, d);
    case H5D_COMPACT:
      return add_compact(out, d);
    case H5D_CHUNKED:
      return add_chunked(out, effort, d);
    case H5D_VIRTUAL:
      return add_virtual(out, d);
    default:
      return damaged(out, d, "the layout is of an unknown kind");
  }
}

}  // namespace

void answer_dataset(Answer& out, Effort& effort, const std::string& name, haddr_t address, hid_t id) {
  TypeHandle type(H5Dget_type(id));
  SpaceHandle space(H5Dget_space(id));
  Handle<H5Pclose> properties(H5Dget_create_plist(id));
  if (!type || !space || !properties) return out.fault(name, Blame::kDamaged, library_words());
  Dataset d{name, id, type, properties, element_type(type), {}};
  int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) return out.fault(name, Blame::kDamaged, library_words());
  d.dims.resize(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, d.dims.data(), nullptr);
  bool null = H5Sget_simple_extent_type(space) == H5S_NULL;
  if (null || !d.element.numeric) {
    out.begin(hdf5_wire::Record::kOther).text(name).byte(!null && !d.element.text);
    out.text(null ? "a dataset without values" : d.element.other).end();
    return;
  }
  out.begin(hdf5_wire::Record::kDataset).text(name).number(address);
  add_type(out, d.element);
  out.number(d.dims.size());
  for (hsize_t n : d.dims) out.number(n);
  if (add_fill_value(out, d) && add_storage(out, effort, d)) out.end();
}

}  // namespace mckpt::impl
