// Reads attributes that are text or numbers, one value each, as Keras and h5py write them:
//
//   "layer_names"      3 strings        more than one value: the number and the kind
//   "epoch"            int 12
//   "keras_version"    str 2.11.0       texts are cut at 4096 bytes
//
// Beside that, the answer has the whole value, by which two files are compared: the text, or the items behind
// their type and dimensions. References, sequences, long doubles, and compounds with one of these have none.
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

// The value as text, and its type as Python calls it; "" if it is described only. The whole value is `bytes`,
// and `layout` says what they are; "" if they are not known.
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

// The fields of a compound and the levels of nested ones that are looked at. More of them have no whole
// value.
constexpr int kMostFields = 256, kMostDepth = 8;

std::string layout_of(hid_t type, int depth);

// "{r: float64, i: float64}"
std::string layout_of_fields(hid_t type, int depth) {
  const int fields = H5Tget_nmembers(type);
  if (fields <= 0 || fields > kMostFields) return "";
  std::string out;
  for (unsigned i = 0; i < static_cast<unsigned>(fields); i++) {
    TypeHandle field(H5Tget_member_type(type, i));
    const std::string layout = field ? layout_of(field, depth) : "";
    char* name = H5Tget_member_name(type, i);
    if (name != nullptr) out += (i ? ", " : "{") + std::string(name) + ": " + layout;
    const bool whole = name != nullptr && !layout.empty();
    H5free_memory(name);
    if (!whole) return "";
  }
  return out + "}";
}

// The kind of the bytes of one item, in words: "int32", "{r: float64, i: float64}". The text is empty for an
// item whose bytes are not its value: a reference is a place in its own file, a sequence or a text of any
// length is elsewhere, and a long double has unused bits.
std::string layout_of(hid_t type, int depth) {
  const std::size_t bytes = H5Tget_size(type);
  const std::string bits = std::to_string(bytes * 8);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return (H5Tget_sign(type) == H5T_SGN_2 ? "int" : "uint") + bits;
    case H5T_FLOAT:
      return bytes <= 8 ? "float" + bits : "";
    case H5T_BITFIELD:
      return H5Tget_precision(type) == bytes * 8 ? "bits" + bits : "";
    case H5T_STRING:
      return H5Tis_variable_str(type) == 0 ? "text" + std::to_string(bytes) : "";
    case H5T_OPAQUE:
      return element_type(type).other;
    case H5T_ENUM: {
      TypeHandle base(H5Tget_super(type));
      return base ? layout_of(base, depth) : "";
    }
    case H5T_ARRAY: {
      TypeHandle base(H5Tget_super(type));
      const std::string layout = base && depth > 0 ? layout_of(base, depth - 1) : "";
      const int rank = H5Tget_array_ndims(type);
      hsize_t dims[H5S_MAX_RANK];
      if (layout.empty() || rank < 0 || H5Tget_array_dims2(type, dims) < 0) return "";
      std::string out = "(";
      for (int i = 0; i < rank; i++) out += std::to_string(dims[i]) + " x ";
      return out + layout + ")";
    }
    case H5T_COMPOUND:
      return depth > 0 ? layout_of_fields(type, depth - 1) : "";
    default:
      return "";
  }
}

// " x 2 x 3", " null"
bool add_dims(hid_t space, std::string& layout) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (rank > 0 && H5Sget_simple_extent_dims(space, dims.data(), nullptr) < 0) return false;
  for (hsize_t n : dims) layout += " x " + std::to_string(n);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) layout += " null";
  return true;
}

// Texts of any length, each behind the number of its bytes. Without a value if they take more memory than the
// program has: a small file can name one text many times.
bool read_texts(hid_t attribute, hid_t type, hid_t space, std::size_t count, Value& v) {
  if (count > kMostFixed / sizeof(char*)) return true;
  std::vector<char*> texts(count);
  if (count > 0 && H5Aread(attribute, type, texts.data()) < 0) return true;
  bool whole = true;
  for (char* text : texts) {
    const std::uint64_t bytes = text ? strnlen(text, kMostWhole) : 0;
    whole = whole && v.bytes.size() + bytes < kMostWhole;
    if (whole) {
      for (int i = 0; i < 8; i++) v.bytes += static_cast<char>(bytes >> (8 * i) & 0xff);
      v.bytes.append(text ? text : "", bytes);
    }
    H5free_memory(text);
  }
  if (!whole) return v.bytes.clear(), true;
  v.layout = "texts";
  return add_dims(space, v.layout);
}

// Items as this machine has them, so that the same numbers in another byte order are the same. Fields of
// compounds follow each other without gaps, whose bytes have no value. False when the library cannot read
// them.
bool read_items(hid_t attribute, hid_t type, hid_t space, std::size_t count, Value& v) {
  const H5T_class_t kind = H5Tget_class(type);
  if (kind == H5T_STRING && H5Tis_variable_str(type) > 0) return read_texts(attribute, type, space, count, v);
  if (layout_of(type, kMostDepth).empty()) return true;
  const bool as_stored = kind == H5T_STRING || kind == H5T_OPAQUE || kind == H5T_BITFIELD;
  TypeHandle items(as_stored ? H5Tcopy(type) : H5Tget_native_type(type, H5T_DIR_ASCEND));
  if (!items) return false;
  if (H5Tdetect_class(items, H5T_COMPOUND) > 0 && H5Tpack(items) < 0) return false;
  const std::size_t bytes = H5Tget_size(items);
  if (bytes == 0 || bytes > kMostFixed || count > kMostFixed / bytes) return true;
  v.bytes.resize(count * bytes);
  if (count > 0 && H5Aread(attribute, items, v.bytes.data()) < 0) return false;
  v.layout = layout_of(items, kMostDepth);
  return add_dims(space, v.layout);
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
  if (!v.effort.take_value(value.layout.size() + value.bytes.size()))
    value.layout.clear(), value.bytes.clear();
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
