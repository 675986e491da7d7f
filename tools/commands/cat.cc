// mckpt cat: values of one tensor.
#include "io/file/source_stamps.h"
#include "io/store/slice.h"
#include "io/store/tensor_choice.h"
#include "io/values/element.h"
#include "io/values/tensor_reader.h"
#include "tools/commands/commands.h"
#include "tools/options/choice.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

// More values than this are shown by their edges, unless a slice asked for them.
constexpr i64 kManyValues = 1000;
constexpr i64 kEdge = 3;

// The values that are shown, walked in order: the indexes of each dimension, where -1 stands for those left
// out.
class Values {
 public:
  Values(const Store& store, i64 tensor, std::vector<SliceRange> ranges, bool elide)
      : store_(store), files_(store), reader_(store, files_), tensor_(tensor), ranges_(std::move(ranges)) {
    form_ = element_form(store.dtype(tensor));
    for (const SliceRange& r : ranges_) {
      std::vector<i64>& list = indexes_.emplace_back();
      bool long_list = elide && r.end - r.begin > 2 * kEdge + 1;
      for (i64 i = r.begin; i < r.end; i++) {
        if (long_list && i == r.begin + kEdge) {
          list.push_back(-1);
          i = r.end - kEdge;
        }
        list.push_back(i);
      }
    }
  }

  std::size_t rank() const { return ranges_.size(); }
  const std::vector<i64>& indexes(std::size_t d) const { return indexes_[d]; }
  bool single(std::size_t d) const { return ranges_[d].single; }

  // Loads the row of the last dimension whose other indexes are `prefix`.
  void load(const std::vector<i64>& prefix) {
    std::span<const i64> dims = store_.dims(tensor_);
    i64 begin = 0;
    for (std::size_t d = 0; d < dims.size(); d++)
      begin = begin * dims[d] + (d < prefix.size() ? prefix[d] : 0);
    SliceRange last = ranges_.empty() ? SliceRange{0, 1, true} : ranges_.back();
    row_begin_ = last.begin;
    row_.clear();
    i64 bits = dtype_info(store_.dtype(tensor_)).bits;
    if (bits % 8 != 0) {  // such elements can only be read from the first on
      reader_.read(tensor_, [&](std::span<const u8> bytes, i64) {
        row_.insert(row_.end(), bytes.begin(), bytes.end());
      });
      row_begin_ = -begin;
      return;
    }
    reader_.read(tensor_, begin + last.begin, begin + last.end, [&](std::span<const u8> bytes, i64) {
      row_.insert(row_.end(), bytes.begin(), bytes.end());
    });
  }

  // The element at an index of the last dimension, in parts: a complex number has two.
  int parts() const { return form_.per_element; }
  std::string text(i64 index, int part) const {
    return number_text(store_.dtype(tensor_), row_.data(), (index - row_begin_) * parts() + part);
  }

 private:
  const Store& store_;
  StoreFiles files_;
  TensorReader reader_;
  i64 tensor_;
  std::vector<SliceRange> ranges_;
  std::vector<std::vector<i64>> indexes_;
  ElementForm form_;
  std::vector<u8> row_;
  i64 row_begin_ = 0;
};

class TextWriter {
 public:
  TextWriter(Output& out, Values& values) : out_(out), values_(values) {}

  void write() {
    if (values_.rank() < 2) {
      TextTable table = empty_table(values_.rank() == 0 ? 1 : values_.indexes(0).size());
      table.row(cells({}));
      table.write(out_);
    } else {
      level({});
    }
  }

 private:
  static TextTable empty_table(std::size_t columns) {
    return TextTable(std::vector<TextTable::Column>(columns, {"", Align::kRight}));
  }

  // One matrix after the other, each told by its index in the larger tensor.
  void level(std::vector<i64> prefix) {
    std::size_t d = prefix.size();
    if (d + 2 == values_.rank()) return matrix(prefix);
    for (i64 i : values_.indexes(d)) {
      if (i < 0) {
        out_.line("\n...");
        continue;
      }
      prefix.push_back(i);
      level(prefix);
      prefix.pop_back();
    }
  }

  void matrix(std::vector<i64> prefix) {
    if (!prefix.empty()) {
      std::string numbers = dims_to_string(prefix);
      out_.line(out_.styled(Style::kDim,
                            cat(first_ ? "" : "\n", numbers.substr(0, numbers.size() - 1), ", :, :]")));
    }
    first_ = false;
    TextTable table = empty_table(values_.indexes(values_.rank() - 1).size());
    for (i64 i : values_.indexes(values_.rank() - 2)) {
      if (i < 0) {
        table.heading("...");
        continue;
      }
      prefix.push_back(i);
      table.row(cells(prefix));
      prefix.pop_back();
    }
    table.write(out_);
  }

  std::vector<std::string> cells(const std::vector<i64>& prefix) {
    values_.load(prefix);
    if (values_.rank() == 0) return {element(0)};
    std::vector<std::string> out;
    for (i64 i : values_.indexes(values_.rank() - 1)) out.push_back(i < 0 ? "..." : element(i));
    return out;
  }

  std::string element(i64 index) const {
    if (values_.parts() == 1) return values_.text(index, 0);
    return cat(values_.text(index, 0), "|", values_.text(index, 1));
  }

  Output& out_;
  Values& values_;
  bool first_ = true;
};

// Nested arrays; a dimension that was indexed is gone.
void write_json_level(JsonWriter& json, Values& values, std::vector<i64> prefix) {
  auto element = [&](i64 index) {
    if (values.parts() > 1) json.begin_array();
    for (int p = 0; p < values.parts(); p++) {
      std::string text = values.text(index, p);
      bool quoted = text == "NaN" || text == "Infinity" || text == "-Infinity";
      quoted ? json.value(text) : json.literal(text);
    }
    if (values.parts() > 1) json.end_array();
  };
  std::size_t d = prefix.size();
  bool last = d + 1 >= values.rank();
  if (last) values.load(prefix);
  if (values.rank() == 0) return element(0);
  if (!values.single(d)) json.begin_array();
  for (i64 i : values.indexes(d)) {
    if (last) {
      element(i);
      continue;
    }
    prefix.push_back(i);
    write_json_level(json, values, prefix);
    prefix.pop_back();
  }
  if (!values.single(d)) json.end_array();
}

struct Target {
  i64 tensor = -1;
  std::vector<SliceRange> ranges;
  bool sliced = false;
};

Target find_target(const Store& store, const std::string& text) {
  Target target;
  // A name may end in brackets itself.
  SlicedName parts = {text, "", false};
  target.tensor = find_tensor(store, text);
  if (target.tensor < 0) {
    parts = split_sliced_name(text);
    target.tensor = tensor_named(store, parts.name);
  }
  target.ranges = parse_slice(parts.slice, store.dims(target.tensor));
  target.sliced = parts.sliced;
  return target;
}

}  // namespace

Exit cat_command(CommandLine& line) {
  std::string path, name;
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  line.positional("NAME[SLICE]", name, "a tensor, or a part of it: 'lm_head.weight[0:4, :8]'").required();
  line.description(
      "Prints values in the shortest decimal form that reads back as the same value. Without a slice, only "
      "the first and last items of each dimension of a large tensor are printed. A slice may span several "
      "shards of a tensor.");
  line.example("mckpt cat model.safetensors 'model.norm.weight'");
  line.example("mckpt cat ckpt 'lm_head.weight[-1, :16]' --json");
  line.parse();

  std::unique_ptr<Store> store = open_store(path);
  Target target = find_target(*store, name);
  std::vector<i64> shape, offsets;
  i64 count = 1;
  for (const SliceRange& r : target.ranges) {
    offsets.push_back(r.begin);
    if (!r.single) shape.push_back(r.end - r.begin);
    count *= r.end - r.begin;
  }
  Output out(line.flags());
  if (out.json()) {
    Values values(*store, target.tensor, target.ranges, false);
    AnswerJson json(out);
    json.begin_answer("cat", is_sound(*store)).field("name", store->name(target.tensor));
    json.field("dtype", dtype_name(store->dtype(target.tensor)))
        .field("tensor_shape", store->dims(target.tensor));
    json.field("offsets", std::span<const i64>(offsets))
        .field("shape", std::span<const i64>(shape))
        .key("values");
    write_json_level(json, values, {});
    check_sources_unchanged();
    json.key("problems");
    write_findings(json, store->findings());
    json.end_answer();
  } else {
    note(line.flags(), cat(escaped(store->name(target.tensor)), "  ", dtype_name(store->dtype(target.tensor)),
                           "  ", dims_to_string(shape),
                           target.sliced ? cat(" of ", dims_to_string(store->dims(target.tensor))) : ""));
    Values values(*store, target.tensor, target.ranges, !target.sliced && count > kManyValues);
    TextWriter(out, values).write();
    check_sources_unchanged();
  }
  out.flush();
  return report_findings(line.flags(), *store);
}

}  // namespace mckpt
