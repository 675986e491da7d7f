// Compares the objects of two stores by the values of their pickles, because equal values can have different
// bytes (another protocol, another order of the memo). Nothing of a pickle is executed.
#include "convert/compare/differences/objects.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "convert/compare/differences/one_side.h"
#include "convert/facts/kept_args.h"
#include "convert/facts/megatron_args.h"
#include "convert/facts/pattern_args.h"
#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pipes.h"
#include "io/dcp/packing.h"
#include "io/dcp/run/args.h"
#include "io/file/parallel.h"
#include "io/pickle/differences.h"
#include "io/store/findings.h"
#include "io/store/format.h"
#include "io/store/names/iteration_names.h"
#include "io/store/open/sniff.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/torch/zip.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostOfOneObject = 32, kMostOfAll = 1'000'000;
constexpr std::string_view kMade[] = {"args", "checkpoint_version", "iteration"};

// The facts of one side, numbered.
class Side {
 public:
  Side(const ObjectSide& side, const std::function<bool(std::string_view)>& apart)
      : side_(side), files_(side.store) {
    for (std::size_t f = 0; f < side.facts.all.size(); f++)
      if (const std::string name = name_of(side.facts.all[f]); !apart || !apart(name)) {
        std::string own = name;  // two objects of one name are two all the same
        for (int n = 2; !names_.emplace(own, static_cast<i64>(f)).second; n++) own = cat(name, "#", n);
      }
    for (const Object& o : side.store.objects()) objects_of_[{o.file, o.record_offset}]++;
  }

  bool is_made() const { return side_.translated; }
  const NameMap<std::string, i64>& names() const { return names_; }
  const Object* record(i64 index) const { return side_.facts.object(side_.facts.all[index]); }
  i32 file(i64 index) const { return record(index) ? record(index)->file : -1; }
  const Store& store() const { return side_.store; }
  // Whether the record of the object has other objects too, as the pickle of a file of torch.save has.
  bool is_shared(const Object& o) const {
    auto at = objects_of_.find({o.file, o.record_offset});
    return at != objects_of_.end() && at->second > 1;
  }
  // Null if the format cannot unpickle it.
  std::shared_ptr<const PickleValue> value(i64 index) const {
    return side_.facts.value(side_.facts.all[index]);
  }
  std::vector<u8> bytes(const Object& o) const {
    std::shared_ptr<const ByteSource> record = open_object_record(files_, o);
    return record->read(0, record->size());
  }
  // The bytes of a tensor's storage to which the object refers. Its record is an archive with the storage in
  // it, or the pickle of a file of torch.save.
  std::vector<u8> storage(i64 index, PickleValue of) const {
    const Object* o = record(index);
    if (o == nullptr) return {};
    std::shared_ptr<const ByteSource> record = open_object_record(files_, *o);
    if (sniff(*record) != FileKind::kZip) record = files_.open(o->file);
    if (sniff(*record) != FileKind::kZip)
      throw Error(
          Code::kUnsupportedPickle,
          "the object has a storage that is no tensor's, which is not compared in the form before torch 1.6");
    TorchZip zip(*record, 64);
    const ZipEntry* entry =
        zip.archive().find(cat(zip.top(), "data/", of.as_object().args.at(2).to_text("a storage's key")));
    if (entry == nullptr)
      throw Error(Code::kBadStorage, "a storage of the object has no record").tensor(o->name);
    return zip.archive().read(*entry, record->size());
  }

 private:
  const ObjectSide& side_;
  StoreFiles files_;
  NameMap<std::string, i64> names_;
  std::map<std::pair<i32, i64>, i64> objects_of_;  // by the place of a record
};

// Whether the store, or what it is a view of, is in the folder of this iteration: iter_0000010 is of 10, and
// release is of 0, with which Megatron begins there.
bool is_named(const Store& store, std::string_view iteration) {
  std::string_view folder = store.root();
  folder = folder.substr(folder.rfind('/') + 1);
  if (folder == kReleaseName) return iteration == "0";
  const std::optional<i64> number = iteration_number(folder);
  return number && cat(*number) == iteration;
}

bool is_of_grid(std::string_view object, std::string_view at) {
  if (object != "args" || !at.starts_with('.')) return false;
  return is_grid_arg(at.substr(1)) || is_reset_arg(at.substr(1));
}

// The field of the args at a place in an object; "" where another value is there.
//
//   args  .num_layers               num_layers
//   common.pt  .args.num_layers     num_layers
std::string_view arg_at(std::string_view object, std::string_view at) {
  constexpr std::string_view kInCommon = ".args.";
  if (is_common_state(object)) return at.starts_with(kInCommon) ? at.substr(kInCommon.size()) : "";
  return object == "args" && at.starts_with('.') ? at.substr(1) : "";
}

// Whether both sides have no layer pattern, one by the value None and one by a missing field.
bool is_no_pattern(std::string_view object, const PickleDifference& d) {
  if (!is_pattern_arg(arg_at(object, d.at))) return false;
  return (d.expected == "nothing" && d.found == "None") || (d.expected == "None" && d.found == "nothing");
}

// A view may have taken the args apart: they are then a fact of the side, and not an object of its store.
std::optional<LayerPattern> pattern_of(const ObjectSide& side) {
  try {
    const RunFact* args = side.facts.find(FactKind::kArgs);
    const std::shared_ptr<const PickleValue> value = args ? side.facts.value(*args) : nullptr;
    const std::optional<std::string> text = value ? pattern_of_args(*value) : std::nullopt;
    return text ? std::optional(parse_pattern(*text, Dialect::kGrouped)) : pattern_of_run(side.store);
  } catch (const Error&) {
    return std::nullopt;  // the comparison tells what cannot be read
  }
}

// Whether the patterns of both runs differ in their pipes alone. Pipes belong to the pipeline of a run.
bool differ_in_pipes(const ObjectSide& a, const ObjectSide& b) {
  const std::optional<LayerPattern> one = pattern_of(a), other = pattern_of(b);
  return one && other && one->text != other->text && same_but_pipes(*one, *other);
}

// One comparison of all objects; run() is called once.
class Objects {
 public:
  using LeftOut = std::function<std::string(std::string_view)>;

  Objects(const ObjectSide& there, const ObjectSide& source, const LeftOut& left_out,
          const std::function<bool(std::string_view)>& apart, bool every)
      : found_(there, apart),
        expected_(source, apart),
        left_out_(left_out),
        every_(every),
        other_pipes_(differ_in_pipes(there, source)) {}

  ObjectDifferences run(int threads) {
    std::vector<std::pair<std::string, i64>> names(expected_.names().begin(), expected_.names().end());
    std::ranges::sort(names);
    parallel_for(std::ssize(names), threads, [&](int, i64 n) {
      const auto& [name, index] = names[n];
      auto at = found_.names().find(name);
      if (at == found_.names().end()) return alone(n, name, false);
      compare(n, name, index, at->second);
    });
    std::vector<std::string> others;
    for (const auto& [name, index] : found_.names())
      if (!expected_.names().contains(name)) others.push_back(name);
    std::ranges::sort(others);
    for (const std::string& name : others) alone(std::ssize(names), name, true);
    out_.findings = found();
    std::ranges::stable_sort(out_.differences, {}, &Difference::tensor);
    if (!every_ && std::ssize(out_.differences) > Findings::kMostOfOneCode)
      out_.differences.resize(Findings::kMostOfOneCode);
    std::ranges::sort(out_.of_grid);
    std::ranges::sort(out_.made);
    for (auto& [reason, of_reason] : out_.left_out) std::ranges::sort(of_reason);
    return std::move(out_);
  }

 private:
  void alone(i64 place, const std::string& name, bool of_path) {
    bool can_be_made = std::ranges::find(kMade, name) != std::end(kMade);
    // An object that a view lacks, its format lacks. One that the tested side alone has was made by a
    // conversion into its format as well; of two sides in a list of differences neither was made of the
    // other.
    const Side& lacks = of_path ? expected_ : found_;
    if (can_be_made && (lacks.is_made() || (of_path && !every_ && found_.is_made()))) {
      std::lock_guard lock(mutex_);
      out_.made.push_back(name);
      return;
    }
    if (std::string reason = of_path || !left_out_ ? "" : left_out_(name); !reason.empty()) {
      std::lock_guard lock(mutex_);
      out_.left_out[reason].push_back(name);
      return;
    }
    placed_.add(place, {.code = Code::kUnequal,
                        .tensor = name,
                        .message = only_in((of_path ? found_ : expected_).store(), "object")});
  }

  // Equal bytes need not be parsed, unless the record is a bare pickle: it can refer to storages elsewhere in
  // its file. A record of several objects would be read for each of them, and is parsed once.
  // `side`: whose bytes are read.
  bool same_bytes(i64 expected, i64 found, const Side*& side) const {
    const Object *a = expected_.record(expected), *b = found_.record(found);
    if (!a || !b || a->file < 0 || b->file < 0 || a->record_bytes <= 0 || a->record_bytes != b->record_bytes)
      return false;
    if (expected_.is_shared(*a) || found_.is_shared(*b)) return false;
    side = &found_;
    const auto mine = found_.bytes(*b);
    side = &expected_;
    if (expected_.bytes(*a) != mine) return false;
    if (std::string_view(reinterpret_cast<const char*>(mine.data()), mine.size()).starts_with("PK\3\4"))
      return true;
    const auto value = expected_.value(expected);
    return !value || !contains_kind(*value, PickleValue::Kind::kStorage);
  }

  void compare(i64 place, const std::string& name, i64 expected, i64 found) {
    const Side* side = &expected_;
    try {
      if (same_bytes(expected, found, side)) return count();
      auto a = expected_.value(expected);
      side = &found_;
      auto b = found_.value(found);
      if ((!a || !b) && are_of_hdf5()) return describe(place, name, expected, found);
      if (!a || !b) throw Error(Code::kUnsupportedPickle, "the object has no value that could be compared");
      PickleDifferences differences = pickle_differences(
          *a, *b, every_ ? kMostOfAll : kMostOfOneObject, [&](PickleValue x, PickleValue y) {
            return expected_.storage(expected, x) == found_.storage(found, y);
          });
      tell(place, name, differences, found_.file(found));
      count();
    } catch (const Error& e) {
      if (e.code() == Code::kInterrupted) throw;
      Finding finding = to_finding(e);
      finding.tensor = name;
      finding.file = file_label(side->store(), side->file(side == &found_ ? found : expected));
      if (side == &expected_) finding.message += of_side(expected_.store().root());
      placed_.add(place, std::move(finding));
      std::lock_guard lock(mutex_);
      out_.unread++;
    }
  }

  bool are_of_hdf5() const {
    return format_family(found_.store().format()) == FormatFamily::kHdf5 &&
           format_family(expected_.store().format()) == FormatFamily::kHdf5;
  }

  // Objects without a value, such as references, differ if their kinds do, and are named otherwise: a file is
  // not unequal to its own copy.
  void describe(i64 place, const std::string& name, i64 expected, i64 found) {
    const Object *a = expected_.record(expected), *b = found_.record(found);
    if (a && b && a->summary != b->summary) {
      const std::string label(file_label(found_.store(), found_.file(found)));
      placed_.add(place,
                  {.code = Code::kUnequal,
                   .tensor = name,
                   .file = label,
                   .message = cat("the object differs: expected ", a->summary, ", found ", b->summary)});
      std::lock_guard lock(mutex_);
      out_.differences.push_back({name, label, "", a->summary, b->summary});
      return;
    }
    std::lock_guard lock(mutex_);
    out_.left_out["of a kind whose values are not read"].push_back(name);
    out_.unread++;
  }

  void count() {
    std::lock_guard lock(mutex_);
    out_.objects++;
  }

  void tell(i64 place, const std::string& name, const PickleDifferences& differences, i32 file) {
    for (const PickleDifference& d : differences.first) {
      if (is_no_pattern(name, d)) continue;
      const std::string_view arg = arg_at(name, d.at);
      if (is_of_grid(name, d.at) || (other_pipes_ && is_pattern_arg(arg))) {
        std::lock_guard lock(mutex_);
        out_.of_grid.emplace_back(arg);
        continue;
      }
      if ((name == "iteration" || (name == "args" && d.at == ".iteration")) && is_renumbered(d)) {
        std::lock_guard lock(mutex_);
        out_.renumbered = true;
        continue;
      }
      std::string where = d.at.empty() ? "differs" : cat("differs at ", d.at);
      std::string label(file_label(found_.store(), file));
      placed_.add(place,
                  {.code = Code::kUnequal,
                   .tensor = name,
                   .file = label,
                   .message = cat("the object ", where, ": expected ", d.expected, ", found ", d.found)});
      std::lock_guard lock(mutex_);
      out_.differences.push_back({name, label, d.at, d.expected, d.found});
    }
    if (i64 left = differences.count - std::ssize(differences.first); left > 0)
      placed_.add(place, {.code = Code::kUnequal,
                          .tensor = name,
                          .message = cat("the object differs in ", counted(left, "more value"))});
  }

  // Whether a folder is named after its iteration: the result of a conversion, or each side of a list of
  // differences.
  bool is_renumbered(const PickleDifference& d) const {
    return is_named(found_.store(), d.found) && (!every_ || is_named(expected_.store(), d.expected));
  }

  std::vector<Finding> found() {
    std::vector<Finding> every;
    Findings first;
    for (Finding& f : placed_.take()) every_ ? every.push_back(std::move(f)) : first.add(std::move(f));
    return every_ ? every : first.take();
  }

  Side found_, expected_;
  const LeftOut& left_out_;
  bool every_;
  bool other_pipes_;
  std::mutex mutex_;
  PlacedFindings placed_;
  ObjectDifferences out_;
};

}  // namespace

ObjectSide::ObjectSide(const CheckpointModel& of)
    : store(of.store()), facts(of.facts()), translated(of.translated()) {}

bool ObjectSide::leaves_objects() const {
  const bool none = std::ranges::all_of(facts.all, [](const RunFact& f) { return f.object < 0; });
  return translated && none && facts.store && !facts.store->objects().empty();
}

std::string of_side(std::string_view path) { return cat(" (an object of ", escaped(path, 4096), ")"); }

ObjectDifferences object_differences(const ObjectSide& there, const ObjectSide& source,
                                     const std::function<std::string(std::string_view)>& left_out,
                                     const std::function<bool(std::string_view)>& apart, bool every,
                                     int threads) {
  return Objects(there, source, left_out, apart, every).run(threads);
}

}  // namespace mckpt::impl
