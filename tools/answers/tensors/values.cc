// Prints numbers in columns; "..." takes the place of what is left out.
//
//   [0, :, :]             a tensor of three dimensions: one matrix after the other, each below its index
//   0.5  1  ...  2
//   ...
//   3    4  ...  5
//
// A number that has two parts is printed with a bar between them, and is an array in JSON. NaN and infinities
// are strings in JSON, which has no such numbers.
#include "tools/answers/tensors/values.h"

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/json/json_writer.h"
#include "io/values/value_rows.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// Prints the values matrix by matrix; only one row of values is loaded at a time.
class ValueTables {
 public:
  ValueTables(Output& out, ValueRows& values) : out_(out), values_(values) {}

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

  // One matrix after the other, each below its index in the larger tensor.
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
  ValueRows& values_;
  bool first_ = true;
};

void write_level(JsonWriter& json, ValueRows& values, std::vector<i64> prefix) {
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
    write_level(json, values, prefix);
    prefix.pop_back();
  }
  if (!values.single(d)) json.end_array();
}

}  // namespace

void write_values(Output& out, ValueRows& values) { ValueTables(out, values).write(); }

void write_values(JsonWriter& json, ValueRows& values) { write_level(json, values, {}); }

}  // namespace mckpt::impl
