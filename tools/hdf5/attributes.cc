// Reads attributes that are text or numbers, one value each, as Keras and h5py write them:
//
//   "layer_names"      3 strings        more than one value: the number and the kind
//   "epoch"            int 12
//   "keras_version"    str 2.11.0       texts are cut at 4096 bytes
//
// Beside that, the answer has the whole value, by which two files are compared: the text, or the items of one or
// more numbers or texts of fixed length, behind their type and dimensions. Texts of any length in an array,
// compounds and references have none.
//
// An attribute that cannot be read becomes a fault of its own, and the walk continues. A fault ends the list
// after 4096 attributes of one object.
#include "hdf5/attributes.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <vector>

#include "hdf5/type.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostText = 4096, kMostFixed = std::size_t{1} << 20, kMostWhole = std::size_t{1} << 24;
constexpr int kMostAttributes = 4096;

// The value as text, and its type as Python calls it; "" if it is described only. The whole value is `bytes`, and
// `layout` says what they are; "" if they are not known.
struct Value {
  const char* type = "";
  std::string text;
  std::string layout, bytes;
};

// The argument that the library passes back to visit() for each attribute.
struct Visit {
  Answer& out;
  Effort& effort;
  const std::string& owner;
  int count = 0;
};

bool read_text(hid_t attribute, hid_t type, std::string& to) {
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (H5Aread(attribute, type, &text) < 0) return false;
    to.assign(text ? text : "", text ? strnlen(text, kMostWhole) : 0);
    H5free_memory(text);
    return true;
  }
  std::size_t bytes = H5Tget_size(type);
  if (bytes == 0 || bytes > kMostFixed) return false;
  to.resize(bytes);
  if (H5Aread(attribute, type, to.data()) < 0) return false;
  to.resize(strnlen(to.data(), bytes));
  return true;
}

template <typename T>
bool read_number(hid_t attribute, hid_t memory_type, std::string& to) {
  T value{};
  if (H5Aread(attribute, memory_type, &value) < 0) return false;
  char digits[32];
  to.assign(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return true;
}

// A value by itself. False when the library cannot read it; the type stays "" for what is shown by its kind
// alone.
bool read_one(hid_t attribute, hid_t type, Value& v) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      v.type = "int";
      return H5Tget_sign(type) == H5T_SGN_2
                 ? read_number<long long>(attribute, H5T_NATIVE_LLONG, v.text)
                 : read_number<unsigned long long>(attribute, H5T_NATIVE_ULLONG, v.text);
    case H5T_FLOAT:
      v.type = "float";
      return read_number<double>(attribute, H5T_NATIVE_DOUBLE, v.text);
    case H5T_STRING:
      v.type = "str";
      return read_text(attribute, type, v.text);
    default:
      break;
  }
  if (!is_bool(type)) return true;
  unsigned char value = 0;
  if (H5Aread(attribute, type, &value) < 0) return false;
  v.type = "bool";
  v.text = value ? "True" : "False";
  return true;
}

// Items as this machine has them, so that the same numbers in another byte order are the same. False when the
// library cannot read them.
bool read_items(hid_t attribute, hid_t type, hid_t space, std::size_t count, Value& v) {
  const H5T_class_t kind = H5Tget_class(type);
  const bool text = kind == H5T_STRING && H5Tis_variable_str(type) == 0;
  if (!text && kind != H5T_INTEGER && kind != H5T_FLOAT && kind != H5T_ENUM) return true;
  TypeHandle items(text ? H5Tcopy(type) : H5Tget_native_type(type, H5T_DIR_ASCEND));
  if (!items) return false;
  const std::size_t bytes = H5Tget_size(items);
  // The unused bytes of a long double have no value.
  if (bytes == 0 || bytes > kMostFixed || count > kMostFixed / bytes || (kind == H5T_FLOAT && bytes > 8))
    return true;
  v.bytes.resize(count * bytes);
  if (count > 0 && H5Aread(attribute, items, v.bytes.data()) < 0) return false;
  v.layout = text ? "text" : kind == H5T_FLOAT ? "float" : H5Tget_sign(items) == H5T_SGN_2 ? "int" : "uint";
  v.layout += std::to_string(bytes * (text ? 1 : 8));
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), nullptr) < 0) return false;
  for (hsize_t n : dims) v.layout += " x " + std::to_string(n);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) v.layout += " null";
  return true;
}

bool read_value(hid_t attribute, Value& v) {
  TypeHandle type(H5Aget_type(attribute));
  SpaceHandle space(H5Aget_space(attribute));
  if (!type || !space) return false;
  hssize_t count = H5Sget_simple_extent_npoints(space);
  if (count < 0) return false;
  if (count == 1 && !read_one(attribute, type, v)) return false;
  if (H5Tget_class(type) == H5T_STRING && *v.type) {
    v.layout = v.text.size() < kMostWhole ? "str" : "";
    v.bytes = v.text;
    v.text.resize(std::min(v.text.size(), kMostText));
  } else if (!read_items(attribute, type, space, static_cast<std::size_t>(count), v)) {
    return false;
  }
  if (*v.type) return true;
  ElementType element = element_type(type);
  v.text = std::to_string(count) + " " + (element.numeric ? "numbers" : element.other);
  return true;
}

herr_t visit(hid_t object, const char* name, const H5A_info_t*, void* context) {
  Visit& v = *static_cast<Visit*>(context);
  std::string full = v.owner + "@" + name;
  if (++v.count > kMostAttributes) {
    v.out.fault(v.owner, hdf5_wire::Blame::kUnsupported, "more attributes than the limit of 4096");
    return 1;
  }
  Value value;
  Handle<H5Aclose> attribute(H5Aopen(object, name, H5P_DEFAULT));
  if (!attribute || !read_value(attribute, value)) {
    v.out.fault(full, hdf5_wire::Blame::kDamaged, library_words());
    return 0;
  }
  if (!v.effort.take_value(value.bytes.size())) value.layout.clear(), value.bytes.clear();
  v.out.begin(hdf5_wire::Record::kAttribute).text(v.owner).text(name).text(value.type).text(value.text);
  v.out.text(value.layout).text(value.bytes).end();
  return 0;
}

}  // namespace

void answer_attributes(Answer& out, Effort& effort, const std::string& name, hid_t object) {
  Visit v{out, effort, name};
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, visit, &v) < 0)
    out.fault(name, hdf5_wire::Blame::kDamaged, "the attributes cannot be read: " + library_words());
}

}  // namespace mckpt::impl
