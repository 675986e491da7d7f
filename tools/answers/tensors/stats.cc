// Prints statistics of tensors: numbers in four digits for people, exact ones for programs.
//
//   min   max   mean     std  zeros  NaN          Inf  min to max
//    -2   1.5  0.991  0.0812      0  2 @ [0, 14]    0  |.    :#: ....  .|
//
//   L2 of all parameters  12.6  (45 tensors)
//
// The bars are the histogram, one character a bin; a bin with any value has a bar, however few values are in
// it.
#include "tools/answers/tensors/stats.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "convert/asked/results.h"
#include "convert/open/rank_parameters.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/json/json_writer.h"
#include "io/store/state_part.h"
#include "io/store/store.h"
#include "io/values/element.h"
#include "io/values/stats_list.h"
#include "io/values/tensor_stats.h"
#include "options/results.h"
#include "tools/render/output.h"
#include "tools/render/text_table.h"

namespace mckpt::impl {
namespace {

// Writes each field of Statistics under the program's name. Numbers about finite values are null where there
// are none. Extremes of integers stay exact: a double would round those beyond 2^53.
struct WriteField {
  JsonWriter& json;
  const TensorStats& exact;
  ElementForm::Kind kind;

  void operator()(std::string_view field, i64 value, const char*) const {
    json.field(program_name(field), value);
  }
  void operator()(std::string_view field, double value, const char*) const {
    const bool integer = kind == ElementForm::Kind::kI64 || kind == ElementForm::Kind::kU64;
    json.key(program_name(field));
    if (exact.finite == 0)
      json.null();
    else if (integer && (field == "min" || field == "max"))
      write_integer(field == "min" ? exact.min : exact.max);
    else
      json.value(value);
  }
  void write_integer(long double v) const {
    kind == ElementForm::Kind::kI64 ? json.value(static_cast<i64>(v)) : json.value(static_cast<u64>(v));
  }
};

// The index of the first NaN or infinity in the dimensions of the tensor, or null.
void write_first(JsonWriter& json, std::string_view name, i64 first, const Store& store, i64 tensor,
                 i64 per_element) {
  json.key(name);
  first < 0 ? json.null()
            : json.value(std::span<const i64>(item_index(first / per_element, store.dims(tensor))));
}

std::string short_number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", v);
  return text;
}

// One character a bin, as high as the bin is full.
std::string bars(const std::vector<i64>& bins, bool unicode) {
  static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
  i64 most = 1;
  for (i64 n : bins) most = std::max(most, n);
  std::string out;
  for (i64 n : bins) {
    // A bin that is not empty always shows a bar.
    i64 height =
        n == 0 ? 0
               : std::max<i64>(1, static_cast<i64>(8.0 * static_cast<double>(n) / static_cast<double>(most)));
    out += (unicode ? kBlocks : kAscii)[height];
  }
  return out;
}

// "0", or the number of NaN (or infinities) and the index of the first: "2 @ [0, 14]".
std::string odd_count(i64 count, i64 first, const Store& store, i64 tensor) {
  if (count == 0) return "0";
  i64 item = first / element_form(store.dtype(tensor)).per_element;
  return cat(with_commas(count), " @ ", dims_to_string(item_index(item, store.dims(tensor))));
}

std::string left_out(i64 count, std::string_view one, std::string_view many) {
  if (count == 0) return "";
  return count == 1 ? cat("; 1 other is ", one) : cat("; ", with_commas(count), " others are ", many);
}

}  // namespace

void write_stats(JsonWriter& json, const Store& store, i64 tensor, const TensorStats& s) {
  ElementForm form = element_form(store.dtype(tensor));
  json.field("name", store.name(tensor)).field("dtype", dtype_name(store.dtype(tensor)));
  json.field("shape", store.dims(tensor));
  fields(statistics_of(s), WriteField{json, s, form.kind});
  write_first(json, "first_nan", s.non_finite.first_nan, store, tensor, form.per_element);
  write_first(json, "first_inf", s.non_finite.first_infinity, store, tensor, form.per_element);
  json.field("histogram", std::span<const i64>(s.histogram));
}

void write_stats(Output& out, const Store& store, std::span<const i64> tensors, const StatsList& stats) {
  using enum Align;
  TextTable table({{"name", kLeft},
                   {"dtype", kLeft},
                   {"shape", kLeft},
                   {"min", kRight},
                   {"max", kRight},
                   {"mean", kRight},
                   {"std", kRight},
                   {"L2", kRight},
                   {"zeros", kRight},
                   {"NaN", kRight},
                   {"Inf", kRight},
                   {"min to max", kLeft}});
  auto row = [&](std::size_t i) {
    i64 t = tensors[i];
    const TensorStats s = stats[i];
    auto number = [&](double v) { return s.finite > 0 ? short_number(v) : "-"; };
    std::string histogram = s.histogram.empty() ? "" : cat("|", bars(s.histogram, out.unicode()), "|");
    table.row({escaped(store.name(t)), std::string(dtype_name(store.dtype(t))), dims_to_string(store.dims(t)),
               number(static_cast<double>(s.min)), number(static_cast<double>(s.max)), number(s.mean),
               number(s.deviation), number(l2_norm(s)), with_commas(s.zeros),
               odd_count(s.non_finite.nans, s.non_finite.first_nan, store, t),
               odd_count(s.non_finite.infinities, s.non_finite.first_infinity, store, t), histogram});
  };
  table.write_made(out, [&] {
    for (std::size_t i = 0; i < tensors.size(); i++) row(i);
  });
  const GlobalNorm all = global_norm(store, tensors, stats);
  if (!all.l2)
    out.line(
        "\nL2 of all parameters  -  (not known: several ranks may have copies of one parameter, and nothing says "
        "which without all files of the ranks and the config.json of the model in hf_assets)");
  else if (all.tensors > 0)
    out.line(cat("\nL2 of all parameters  ", short_number(*all.l2), "  (", counted(all.tensors, "tensor"),
                 left_out(all.others, "a state or packed", "states or packed"),
                 left_out(all.copies, "a copy or unused", "copies or unused"), ")"));
}

GlobalNorm global_norm(const Store& store, std::span<const i64> tensors, const StatsList& stats) {
  StateParts parts(store);
  const bool ranks = has_rank_copies(store);
  const std::optional<std::vector<i64>> originals = ranks ? originals_of_ranks(store) : std::nullopt;
  std::set<i64> summed;  // of originals
  long double squares = 0;
  GlobalNorm out;
  for (std::size_t i = 0; i < tensors.size(); i++) {
    const i64 t = tensors[i];
    if (parts.part(t) != StatePart::kModel || parts.is_packed(t)) {
      out.others++;
      continue;
    }
    const i64 original = originals ? (*originals)[static_cast<std::size_t>(t)] : t;
    if (original < 0 || !summed.insert(original).second) {
      out.copies++;
      continue;
    }
    squares += stats[i].sum_of_squares;
    out.tensors++;
  }
  if (ranks && !originals && out.tensors > 0) return {};
  out.l2 = l2_norm(squares);
  return out;
}

}  // namespace mckpt::impl
