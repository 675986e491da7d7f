// Goes through the request once and makes one object after the other, each under the name that it has in the
// request. Times are left out and the versions of the format are fixed, so that equal requests give equal
// files:
//
//   superblock and headers   as of HDF5 1.8, with checksums; virtual datasets as of 1.10: read by 1.10 and later
//   data                     contiguous, allocated when a dataset is made, never filled
//
// The request comes from mckpt, but names and sizes in it come from checkpoints; whatever does not fit is a
// fault.
#include "hdf5/compose.h"

#include <algorithm>
#include <vector>

#include "hdf5/memory_driver.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Laid;
using hdf5_wire::TypeClass;
using hdf5_wire::Wanted;

constexpr std::size_t kMostRank = 32;  // the library's own limit
// Metadata are allocated in blocks, so that they do not lie between all data: small ones in a file of few
// objects.
constexpr std::size_t kManyBytes = std::size_t{64} << 10;
constexpr hsize_t kSmallBlock = 8 << 10, kLargeBlock = 1 << 20;

// The exception of this file: words for the fault.
struct Fault {
  std::string words;
};

hid_t checked(hid_t id) {
  if (id < 0) throw Fault{library_words()};
  return id;
}

void check(herr_t done) {
  if (done < 0) throw Fault{library_words()};
}

// Reads the request front to back.
class Request {
 public:
  explicit Request(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::size_t bytes) {
    if (bytes > rest_.size()) throw Fault{"the request is cut short"};
    std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  int byte() { return static_cast<unsigned char>(take(1)[0]); }
  std::uint64_t number() {
    std::string_view bytes = take(8);
    std::uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    return v;
  }
  std::string text() { return std::string(take(number())); }
  std::vector<hsize_t> numbers(std::size_t count) {
    if (count > rest_.size() / 8) throw Fault{"the request is cut short"};
    std::vector<hsize_t> out(count);
    for (hsize_t& n : out) n = number();
    return out;
  }

 private:
  std::string_view rest_;
};

// A float of these fields; the fields are set while the type is still large enough for any of them.
hid_t float_type(std::size_t bytes, const std::vector<hsize_t>& n) {
  hid_t type = checked(H5Tcopy(bytes > 4 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE));
  check(H5Tset_fields(type, n[3], n[4], n[5], n[6], n[7]));
  check(H5Tset_size(type, bytes));
  check(H5Tset_ebias(type, n[8]));
  return type;
}

hid_t integer_type(std::size_t bytes, bool negative) {
  hid_t type = checked(H5Tcopy(negative ? H5T_STD_I64LE : H5T_STD_U64LE));
  check(H5Tset_size(type, bytes));
  return type;
}

// As h5py writes bool: an enumeration of two names.
hid_t bool_type() {
  hid_t type = checked(H5Tenum_create(H5T_STD_I8LE));
  const signed char no = 0, yes = 1;
  check(H5Tenum_insert(type, "FALSE", &no));
  check(H5Tenum_insert(type, "TRUE", &yes));
  return type;
}

// As h5py writes complex numbers.
hid_t complex_type(std::size_t bytes, const std::vector<hsize_t>& numbers) {
  TypeHandle part(float_type(bytes / 2, numbers));
  hid_t type = checked(H5Tcreate(H5T_COMPOUND, bytes));
  check(H5Tinsert(type, "r", 0, part));
  check(H5Tinsert(type, "i", bytes / 2, part));
  return type;
}

hid_t read_type(Request& in) {
  TypeClass kind = static_cast<TypeClass>(in.byte());
  std::size_t bytes = in.number();
  in.byte();  // the order is always little-endian
  std::vector<hsize_t> numbers = in.numbers(hdf5_wire::kTypeNumbers);
  if (bytes == 0 || bytes > 16) throw Fault{"a type has no such size"};
  switch (kind) {
    case TypeClass::kInteger:
      return integer_type(bytes, numbers[2] != 0);
    case TypeClass::kFloat:
      return float_type(bytes, numbers);
    case TypeClass::kBool:
      return bool_type();
    case TypeClass::kComplex:
      return complex_type(bytes, numbers);
  }
  throw Fault{"a type is of an unknown class"};
}

std::vector<hsize_t> read_dims(Request& in) {
  std::size_t rank = in.number();
  if (rank > kMostRank)
    throw Fault{"a tensor of " + std::to_string(rank) + " dimensions: HDF5 has at most 32"};
  return in.numbers(rank);
}

hid_t space_of(const std::vector<hsize_t>& dims) {
  return checked(dims.empty() ? H5Screate(H5S_SCALAR)
                              : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
}

bool has_items(const std::vector<hsize_t>& dims) {
  return std::find(dims.begin(), dims.end(), hsize_t{0}) == dims.end();
}

// Properties without times.
hid_t timeless(hid_t property_class) {
  hid_t properties = checked(H5Pcreate(property_class));
  check(H5Pset_obj_track_times(properties, 0));
  return properties;
}

// One file. run() is called once.
class Composer {
 public:
  Composer(const std::string& request, hid_t access)
      : in_(request), many_(request.size() > kManyBytes), access_(access) {}

  void run() {
    if (in_.take(hdf5_wire::kRequestMagic.size()) != hdf5_wire::kRequestMagic)
      throw Fault{"the request is of another version"};
    create(in_.number());
    links_ = checked(H5Pcreate(H5P_LINK_CREATE));
    check(H5Pset_char_encoding(links_, H5T_CSET_UTF8));
    object_ = checked(H5Gopen2(file_, "/", H5P_DEFAULT));
    while (one()) {
    }
    check(H5Oclose(object_));
    check(H5Pclose(links_));
    check(H5Fclose(file_));
  }
  const std::vector<std::uint64_t>& offsets() const { return offsets_; }

 private:
  void create(hsize_t user_block) {
    user_block_ = user_block;
    Handle<H5Pclose> how(timeless(H5P_FILE_CREATE));
    check(H5Pset_userblock(how, user_block));
    check(H5Pset_libver_bounds(access_, H5F_LIBVER_V18, H5F_LIBVER_V110));
    check(H5Pset_meta_block_size(access_, many_ ? kLargeBlock : kSmallBlock));
    check(H5Pset_small_data_block_size(access_, many_ ? kLargeBlock : kSmallBlock));
    file_ = checked(H5Fcreate("/composed", H5F_ACC_TRUNC, how, access_));
  }

  // Makes one object or attribute; false at the end.
  bool one() {
    Wanted kind = static_cast<Wanted>(in_.byte());
    if (kind == Wanted::kEnd) return false;
    if (kind == Wanted::kText)
      add_text();
    else if (kind == Wanted::kNumbers)
      add_numbers();
    else
      make(kind, in_.text());
    return true;
  }

  // The new object is the one that attributes belong to from now on.
  void make(Wanted kind, const std::string& path) {
    check(H5Oclose(object_));
    object_ = kind == Wanted::kGroup ? make_group(path) : make_dataset(path, kind == Wanted::kVirtual);
  }

  hid_t make_group(const std::string& path) {
    Handle<H5Pclose> how(timeless(H5P_GROUP_CREATE));
    return checked(H5Gcreate2(file_, path.c_str(), links_, how, H5P_DEFAULT));
  }

  hid_t make_dataset(const std::string& path, bool is_virtual) {
    TypeHandle type(read_type(in_));
    std::vector<hsize_t> dims = read_dims(in_);
    Handle<H5Sclose> space(space_of(dims));
    Handle<H5Pclose> how(timeless(H5P_DATASET_CREATE));
    check(H5Pset_fill_time(how, H5D_FILL_TIME_NEVER));
    if (is_virtual)
      add_mappings(how, dims);
    else if (has_items(dims))
      check(H5Pset_alloc_time(how, H5D_ALLOC_TIME_EARLY));
    hid_t dataset = checked(H5Dcreate2(file_, path.c_str(), type, space, links_, how, H5P_DEFAULT));
    if (is_virtual) return dataset;
    // Without a place, the library returns its mark for "none" plus the size of the user block.
    haddr_t offset = H5Dget_offset(dataset);
    bool placed = offset != HADDR_UNDEF && offset >= user_block_;
    if (has_items(dims) && !placed) throw Fault{"the library gives a dataset no place"};
    offsets_.push_back(placed ? offset : hdf5_wire::kUnwritten);
    return dataset;
  }

  void add_mappings(hid_t how, const std::vector<hsize_t>& dims) {
    for (std::uint64_t i = 0, count = in_.number(); i < count; i++) {
      std::string file = in_.text(), dataset = in_.text();
      std::vector<hsize_t> begin = in_.numbers(dims.size()), sizes = in_.numbers(dims.size());
      Handle<H5Sclose> target(space_of(dims)), source(space_of(sizes));
      check(H5Sselect_hyperslab(target, H5S_SELECT_SET, begin.data(), nullptr, sizes.data(), nullptr));
      check(H5Pset_virtual(how, target, file.c_str(), dataset.c_str(), source));
    }
  }

  void add_attribute(const std::string& name, hid_t type, hid_t memory_type, const std::vector<hsize_t>& dims,
                     const void* value) {
    Handle<H5Sclose> space(space_of(dims));
    Handle<H5Pclose> how(checked(H5Pcreate(H5P_ATTRIBUTE_CREATE)));
    check(H5Pset_char_encoding(how, H5T_CSET_UTF8));
    Handle<H5Aclose> attribute(checked(H5Acreate2(object_, name.c_str(), type, space, how, H5P_DEFAULT)));
    if (has_items(dims)) check(H5Awrite(attribute, memory_type, value));
  }

  void add_text() {
    std::string name = in_.text(), value = in_.text();
    TypeHandle type(checked(H5Tcopy(H5T_C_S1)));
    check(H5Tset_size(type, H5T_VARIABLE));  // h5py shows a text of a fixed size as bytes
    check(H5Tset_cset(type, H5T_CSET_UTF8));
    const char* text = value.c_str();
    add_attribute(name, type, type, {}, &text);
  }

  void add_numbers() {
    std::string name = in_.text();
    std::vector<hsize_t> values = in_.numbers(in_.number());
    add_attribute(name, H5T_STD_I64LE, H5T_NATIVE_INT64, {values.size()}, values.data());
  }

  Request in_;
  bool many_;
  hsize_t user_block_ = 0;
  hid_t access_, file_ = -1, links_ = -1, object_ = -1;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

void compose(Answer& out, const std::string& request, hid_t access) {
  try {
    Composer composer(request, access);
    composer.run();
    for (std::uint64_t offset : composer.offsets()) out.begin(Laid::kOffset).number(offset).end();
    each_written([&](std::uint64_t offset, std::string_view bytes) {
      out.begin(Laid::kPiece).number(offset).text(bytes).end();
    });
    out.begin(Laid::kBytes).number(composed_bytes()).end();
  } catch (const Fault& fault) {
    out.begin(Laid::kFault).text(fault.words).end();
  }
  out.finish();
}

}  // namespace mckpt::impl
