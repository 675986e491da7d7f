// The store over one HDF5 file: the helper's answer, judged dataset by dataset. One that does not fit
// itself or the file becomes a finding, and the others are usable.
#include "io/hdf5/file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "io/hdf5/answer.h"
#include "io/hdf5/chunks.h"
#include "io/hdf5/helper.h"
#include "io/hdf5/layout.h"
#include "io/json/json.h"
#include "io/pickle/pickle.h"
#include "io/pickle/write/writer.h"
#include "io/store/finding.h"
#include "io/store/open/format_ids.h"
#include "io/store/open/sniff.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

using hdf5_wire::Storage;

constexpr std::string_view kArchiveNames = "__mckpt__/names";  // which only the file with the index has

// A tensor has one chunk: all of the dataset. A contiguous one is read in place; a compact or chunked one
// is a source that computes its bytes (io/hdf5/chunks.h).
class Hdf5Store final : public Store {
 public:
  Hdf5Store(InputFile file, i64 superblock, Hdf5Answer answer, const OpenOptions& opening);

  i64 tensor_count() const override { return static_cast<i64>(datasets_.size()); }
  std::string_view name(i64 tensor) const override { return at(tensor).name; }
  DType dtype(i64 tensor) const override { return dtypes_[tensor]; }
  std::span<const i64> dims(i64 tensor) const override { return at(tensor).dims; }
  i64 chunk_count(i64) const override { return 1; }
  // For a file with the index of an archive that does not begin as an archive does.
  void report_archive() {
    Error e(Code::kBadHdf5, "this is an archive that mckpt made, but its first 512 bytes are damaged");
    add_finding(e, "");
  }

  Chunk chunk(i64 tensor, i64 index) const override;
  std::shared_ptr<const PickleValue> object(i64 index) const override;
  ChunkData resolve(i64 tensor, i64 index) const override;

 private:
  const Hdf5Dataset& at(i64 tensor) const { return datasets_[tensor]; }
  void add_datasets(std::vector<Hdf5Dataset> datasets);
  void report_overlaps();
  void add_faults(const std::vector<Hdf5Fault>& faults);
  void add_objects(const Hdf5Answer& answer);
  void add_links(const Hdf5Answer& answer, const std::vector<Hdf5Dataset>& datasets);
  void add_finding(Error& e, std::string_view name, bool warning = false);
  // `value` is a pickle; "" if the value is not known.
  void add_object(std::string name, std::string summary, std::string value = "") {
    objects_.push_back({std::move(name), 0, 0, 0, std::move(summary)});
    values_.push_back(std::move(value));
  }

  InputFile file_;
  i64 superblock_;
  std::vector<Hdf5Dataset> datasets_;
  std::vector<DType> dtypes_;
  std::vector<std::string> values_;  // of the objects
};

// The error that a fault is: damaged, or not supported. "bad version number" means that only a later
// library knows more.
Error to_error(const Hdf5Fault& fault) {
  // "bad version number for layout message" and the like: only a later library knows better.
  bool newer = fault.words.find("version number") != std::string::npos;
  bool unsupported = newer || fault.blame == hdf5_wire::Blame::kUnsupported;
  Error e(unsupported ? Code::kUnsupportedHdf5 : Code::kBadHdf5,
          cat(fault.blame == hdf5_wire::Blame::kUnsupported ? "not read: " : "the HDF5 library says: ",
              escaped(fault.words, 500)));
  if (newer)
    e.help(
        "the file needs a newer HDF5 library than mckpt has here; h5py.File(..., libver=('earliest', 'v110')) writes files that all of them read");
  return e;
}

// "float 0.5", "str 'relu'".
std::string attribute_summary(const Hdf5Attribute& a) {
  if (a.type.empty()) return escaped(a.value);
  if (a.type == "str") return cat("str '", escaped(a.value), "'");
  return cat(escaped(a.type), " ", escaped(a.value));
}

// A text, or bytes where it is none.
void write_text(PickleWriter& to, std::string_view text) {
  if (is_utf8(text))
    to.text(text);
  else
    to.bytes({reinterpret_cast<const u8*>(text.data()), text.size()});
}

constexpr std::size_t kMostShown = 256;  // items that are a tuple in a pickle

u64 little_endian(std::string_view bytes) {
  u64 n = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) n = n << 8 | static_cast<u8>(bytes[i]);
  return n;
}

// A list of texts, each behind the number of its bytes. Nothing if they are too many, or do not end with the
// bytes.
std::optional<std::vector<std::string_view>> listed_texts(std::string_view bytes) {
  std::vector<std::string_view> out;
  while (!bytes.empty()) {
    if (bytes.size() < 8 || out.size() == kMostShown) return std::nullopt;
    const u64 size = little_endian(bytes.substr(0, 8));
    bytes.remove_prefix(8);
    if (size > bytes.size()) return std::nullopt;
    out.push_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return out;
}

// A number of the layout "int32" and the like. False for another kind, and for numbers that a pickle's int or
// float does not tell apart from others.
bool write_number(PickleWriter& to, std::string_view kind, std::string_view bytes) {
  const u64 bits = little_endian(bytes);
  const int unused = 64 - static_cast<int>(bytes.size()) * 8;
  if (kind.starts_with("int")) return to.integer(static_cast<i64>(bits << unused) >> unused), true;
  if (kind.starts_with("uint")) {
    if (static_cast<i64>(bits) < 0) return false;
    return to.integer(static_cast<i64>(bits)), true;
  }
  if (!kind.starts_with("float") || bytes.size() < 4) return false;
  const double value =
      bytes.size() == 8 ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<u32>(bits));
  if (value != value) return false;
  return to.real(value), true;
}

// The items of a short array of numbers or texts as a tuple. False, and an unfinished pickle, for other
// values.
bool write_items(PickleWriter& to, const Hdf5Attribute& a) {
  const std::string_view layout = a.layout, kind = layout.substr(0, layout.find(' '));
  to.op(Op::kMark);
  if (kind == "texts") {
    const auto texts = listed_texts(a.bytes);
    if (!texts) return false;
    for (std::string_view text : *texts) write_text(to, text);
  } else {
    const std::size_t digits = std::min(kind.find_first_of("0123456789"), kind.size());
    std::size_t size = 0;
    std::from_chars(kind.data() + digits, kind.data() + kind.size(), size);
    const bool is_text = kind.starts_with("text");
    if (!is_text) size /= 8;
    if (size == 0 || (!is_text && size > 8) || a.bytes.size() % size != 0 ||
        a.bytes.size() / size > kMostShown)
      return false;
    for (std::string_view rest = a.bytes; !rest.empty(); rest.remove_prefix(size)) {
      const std::string_view item = rest.substr(0, size);
      if (is_text)
        write_text(to, item);
      else if (!write_number(to, kind, item))
        return false;
    }
  }
  to.op(Op::kTuple);
  return true;
}

// The value as Python has it: a text, a number, or a pair of a layout and the items, or bytes where they are
// many or of other kinds. "" if it is not known whole.
std::string pickled_value(const Hdf5Attribute& a) {
  if (a.layout.empty()) return "";
  PickleWriter out;
  i64 number = 0;
  double real = 0;
  const char *begin = a.value.data(), *end = begin + a.value.size();
  if (a.layout == "str") {
    write_text(out, a.bytes);
  } else if (a.type == "bool") {
    out.boolean(a.value == "True");
  } else if (a.type == "int" && std::from_chars(begin, end, number).ec == std::errc()) {
    out.integer(number);
  } else if (a.type == "float" && std::from_chars(begin, end, real).ec == std::errc()) {
    out.real(real);
  } else if (PickleWriter items; write_text(items, a.layout), write_items(items, a)) {
    items.op(Op::kTuple2);
    return items.finish();
  } else {
    write_text(out, a.layout);
    out.bytes({reinterpret_cast<const u8*>(a.bytes.data()), a.bytes.size()});
    out.op(Op::kTuple2);
  }
  return out.finish();
}

std::string pickled_text(std::string_view text) {
  PickleWriter out;
  write_text(out, text);
  return out.finish();
}

// The path that a soft link means: from the root, or from the group that it is in.
std::string link_target(const Hdf5Link& link) {
  std::string_view target = link.target;
  if (target.starts_with('/')) return std::string(target.substr(1));
  std::size_t slash = link.name.rfind('/');
  return slash == std::string::npos ? link.target : cat(link.name.substr(0, slash + 1), target);
}

// A dataset that was never written becomes one with chunks that are missing, which Hdf5Chunks reads as its
// fill value.
void make_chunked(Hdf5Dataset& d) {
  d.storage = Storage::kChunked;
  for (i64 n : d.dims) d.chunk_dims.push_back(std::max<i64>(1, n));
}

Hdf5Store::Hdf5Store(InputFile file, i64 superblock, Hdf5Answer answer, const OpenOptions& opening)
    : file_(std::move(file)), superblock_(superblock) {
  root_ = file_.path();
  opening_ = opening;
  format_ = Format::kHdf5;
  files_.push_back({"", file_.size()});
  add_faults(answer.faults);
  add_objects(answer);
  add_links(answer, answer.datasets);
  add_datasets(std::move(answer.datasets));
  report_overlaps();
}

void Hdf5Store::add_finding(Error& e, std::string_view name, bool warning) {
  e.default_tensor(name);
  Finding finding = to_finding(e);
  finding.file = file_.path();
  finding.warning = warning;
  findings_.push_back(std::move(finding));
}

// Keeps those that check_dataset() accepts.
void Hdf5Store::add_datasets(std::vector<Hdf5Dataset> datasets) {
  for (Hdf5Dataset& d : datasets) {
    try {
      check_dataset(d, file_.size() - superblock_);
      if (d.storage == Storage::kContiguous && d.offset < 0) make_chunked(d);
      if (d.storage == Storage::kChunked) Hdf5Chunks probe(file_, superblock_, d);
    } catch (Error& e) {
      add_finding(e, d.name);
      continue;
    }
    if (partly_unwritten(d)) {
      Error e(Code::kBadHdf5,
              "parts of the dataset were never written; its fill value is read in their place");
      add_finding(e.found(cat(stored_bytes(d), " bytes in the file")), d.name, true);
    }
    dtypes_.push_back(hdf5_dtype(d.type));
    datasets_.push_back(std::move(d));
  }
}

// Two datasets at one place: a damaged file, or one made to show other data than it seems.
void Hdf5Store::report_overlaps() {
  for (auto [later, other] : overlapping(datasets_)) {
    Error e(Code::kBadHdf5, later == other
                                ? std::string("two chunks have the same place in the file")
                                : cat("the dataset has the same data as ", escaped(datasets_[other].name)));
    add_finding(e, datasets_[later].name);
  }
}

void Hdf5Store::add_faults(const std::vector<Hdf5Fault>& faults) {
  for (const Hdf5Fault& fault : faults) {
    Error e = to_error(fault);
    add_finding(e, fault.name);
  }
}

// Attributes of the root are facts of the file, too.
void Hdf5Store::add_objects(const Hdf5Answer& answer) {
  for (const Hdf5Other& other : answer.others) {
    add_object(other.name, escaped(other.what));
    if (!other.values_left_out) continue;
    Error e(Code::kUnsupportedHdf5,
            cat("values of this type are not a tensor, so the dataset is left out: ", escaped(other.what)));
    add_finding(e, other.name, true);
  }
  for (const Hdf5Attribute& a : answer.attributes) {
    if (a.owner.empty()) add_fact(a.name, a.value);
    add_object(cat(a.owner, "@", a.name), attribute_summary(a), pickled_value(a));
  }
}

// Soft links are objects; one whose target is missing is a warning.
void Hdf5Store::add_links(const Hdf5Answer& answer, const std::vector<Hdf5Dataset>& datasets) {
  if (answer.links.empty()) return;
  NameSet<std::string_view> names(answer.groups.begin(), answer.groups.end());
  for (const Hdf5Dataset& d : datasets) names.insert(d.name);
  for (const Hdf5Other& other : answer.others) names.insert(other.name);
  for (const Hdf5Link& link : answer.links) {
    add_object(link.name, cat("a soft link to ", escaped(link.target)), pickled_text(link.target));
    if (names.contains(link_target(link))) continue;
    Error e(Code::kBadHdf5, "a soft link leads to nothing: its target is missing");
    add_finding(e.found(escaped(link.target)), link.name, true);
  }
}

Chunk Hdf5Store::chunk(i64 tensor, i64) const {
  const Hdf5Dataset& d = at(tensor);
  bool in_place = d.storage == Storage::kContiguous;
  return {.offsets = zero_offsets(d.dims.size()),
          .sizes = d.dims,
          .file = 0,
          .record_offset = in_place ? superblock_ + d.offset : -1,
          .record_bytes = stored_bytes(d)};
}

std::shared_ptr<const PickleValue> Hdf5Store::object(i64 index) const {
  const std::string& value = values_[index];
  if (value.empty()) return nullptr;
  std::shared_ptr<const Pickle> pickle = Pickle::own({value.begin(), value.end()});
  auto root = std::make_shared<PickleValue>(pickle->root());
  return {root.get(), [pickle, root](const PickleValue*) {}};
}

ChunkData Hdf5Store::resolve(i64 tensor, i64) const {
  const Hdf5Dataset& d = at(tensor);
  ChunkData data{.file = 0, .dtype = dtype(tensor), .big_endian = d.type.big_endian && d.type.bytes > 1};
  if (d.storage == Storage::kCompact) {
    data.unpacked = std::make_shared<MemorySource>(d.compact);
  } else if (d.storage == Storage::kChunked) {
    data.unpacked = std::make_shared<Hdf5Chunks>(file_, superblock_, d);
  } else {
    data.offset = superblock_ + d.offset;
  }
  return data;
}

}  // namespace

// A file of which nothing at all could be read is an error; otherwise the rest is worth showing.
std::unique_ptr<Store> hdf5_store(InputFile file, i64 superblock, std::span<const u8> bytes,
                                  const OpenOptions& opening) {
  Hdf5Answer answer = parse_hdf5_answer(bytes);
  bool nothing = answer.datasets.empty() && answer.others.empty() && answer.groups.empty();
  for (const Hdf5Fault& fault : answer.faults)
    if (nothing && fault.name.empty()) throw to_error(fault).prefix("the HDF5 file cannot be opened: ");
  bool archive =
      std::ranges::find(answer.datasets, kArchiveNames, &Hdf5Dataset::name) != answer.datasets.end();
  auto store = std::make_unique<Hdf5Store>(std::move(file), superblock, std::move(answer), opening);
  if (archive) store->report_archive();
  return store;
}

std::unique_ptr<Store> open_hdf5_file(const std::string& path, const OpenOptions& opening) {
  return with_file(path, [&] {
    InputFile file(path, opening);
    i64 superblock = find_hdf5_superblock(file);
    if (superblock < 0) throw Error(Code::kBadHdf5, "the file has no HDF5 signature");
    std::vector<u8> answer = ask_hdf5_helper(file, superblock, opening.helper_folders);
    return hdf5_store(std::move(file), superblock, answer, opening);
  });
}

}  // namespace mckpt::impl
