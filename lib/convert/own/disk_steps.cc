// Each step checks the shapes it takes, since they come from files.
#include "convert/own/disk_steps.h"

#include <algorithm>

#include "convert/own/disk_names.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace mckpt::impl {
namespace {

// A few bytes of a file can declare any number of rows, and each pair of them is a box.
constexpr i64 kMostPairs = i64{1} << 20;
constexpr std::string_view kTooMany = "and those of other layers would be too many tensors";

void need(bool holds, std::string_view text) {
  if (!holds) throw Error(Code::kSourceShape, cat("the tensor ", text));
}

std::string numbered(std::string_view name, i64 number) {
  std::string out(name);
  if (std::size_t star = out.find('*'); star != out.npos) out.replace(star, 1, cat(number));
  return out;
}

class Steps {
 public:
  explicit Steps(StepInput input) : in_(std::move(input)) {}

  std::vector<StepTensor> all(std::span<const DiskStep> steps) {
    for (const DiskStep& step : steps) apply(step);
    return std::move(in_.tensors);
  }

 private:
  void apply(const DiskStep& step) {
    switch (step.kind) {
      case StepKind::kDivide:
        return divide(step);
      case StepKind::kExperts:
        return experts(step);
      case StepKind::kJoin:
        return join(step);
      case StepKind::kTranspose:
        return transpose(step);
      case StepKind::kInterleave:
        return interleave(step);
      case StepKind::kRope:
        return rope(step);
      case StepKind::kTextVision:
        return text_vision(step);
      case StepKind::kPad:
        return pad(step);
      case StepKind::kSame:
        return named_as_target();
      case StepKind::kQueries:
        return queries();
      case StepKind::kUnknown:
        throw Error(Code::kUnknownModel, "how this model's folder has a tensor is not computed");
    }
  }

  BoxedTensor& only(std::size_t rank) {
    need(in_.tensors.size() == 1, "is one of several that are one tensor in the model's folder");
    need(in_.tensors[0].boxes.dims.size() >= rank, "has too few dimensions");
    return in_.tensors[0].boxes;
  }

  // The tensor that the steps made gets the name of the target.
  void named_as_target() { in_.tensors[0].name = in_.targets[0]; }

  i64 number_of(const DiskStep& step) const {
    auto at = in_.numbers.find(step.number);
    return at == in_.numbers.end() ? step.otherwise : at->second;
  }

  static std::vector<BoxedTensor> parts_of(const BoxedTensor& tensor, std::size_t dim, i64 parts) {
    const i64 size = tensor.dims[dim];
    need(parts > 0 && size % parts == 0,
         cat("cannot be divided into ", parts, " tensors of the model's folder"));
    std::vector<BoxedTensor> out;
    for (i64 p = 0; p < parts; p++) out.push_back(tensor.every(dim, {p * (size / parts), size / parts}));
    return out;
  }

  void divide(const DiskStep& step) {
    const BoxedTensor whole = std::move(only(step.dim + std::size_t{1}));
    std::vector<StepTensor> out;
    if (step.number.empty()) {
      std::vector<BoxedTensor> parts = parts_of(whole, step.dim, std::ssize(in_.targets));
      for (std::size_t p = 0; p < parts.size(); p++)
        out.push_back({std::string(in_.targets[p]), std::move(parts[p])});
    } else {
      // As torch.chunk() does: the last part may be smaller, and parts that would be empty are not there.
      const i64 size = whole.dims[step.dim], count = number_of(step);
      need(count > 0 && count <= in_.room, kTooMany);
      const i64 each = std::max<i64>(1, ceil_div(size, count));
      for (i64 p = 0; p == 0 || p * each < size; p++)
        out.push_back({numbered(in_.targets[0], p),
                       whole.every(step.dim, {p * each, std::min(each, size - p * each)})});
    }
    in_.tensors = std::move(out);
  }

  void experts(const DiskStep& step) {
    std::vector<StepTensor> out;
    for (StepTensor& t : in_.tensors) {
      need(t.boxes.dims.size() == 3, "is not a stack of experts");
      if (in_.tensors.size() == 1 && in_.targets.size() == 1) t.name = in_.targets[0];
      for (i64 e = 0; e < t.boxes.dims[step.dim]; e++) {
        need(std::ssize(out) < in_.room, kTooMany);
        out.push_back({numbered(t.name, e), t.boxes.at(step.dim, e)});
      }
    }
    in_.tensors = std::move(out);
  }

  void join(const DiskStep& step) {
    std::vector<StepTensor> all = std::move(in_.tensors);
    BoxedTensor& first = all[0].boxes;
    need(first.dims.size() > step.dim, "has too few dimensions");
    std::vector<i64> dims = first.dims;
    for (std::size_t i = 1; i < all.size(); i++) {
      BoxedTensor& other = all[i].boxes;
      std::vector<i64> same = other.dims;
      if (same.size() == dims.size()) same[step.dim] = dims[step.dim];
      need(same == dims, "does not fit those that it is joined with");
      first.append(step.dim, std::move(other));
    }
    in_.tensors.clear();
    in_.tensors.push_back({std::string(in_.targets[0]), std::move(first)});
  }

  void transpose(const DiskStep& step) {
    BoxedTensor& tensor = only(std::max<std::size_t>(step.dim, step.other) + 1);
    tensor = tensor.swapped(step.dim, step.other);
    if (in_.targets.size() == 1) named_as_target();
  }

  void interleave(const DiskStep& step) {
    BoxedTensor& tensor = only(step.dim + std::size_t{1});
    const i64 size = tensor.dims[step.dim];
    need(size % 2 == 0 && size / 2 <= kMostPairs, "cannot be divided into pairs");
    if (size > 0) tensor = tensor.interleaved(step.dim, size);
    named_as_target();
  }

  void rope(const DiskStep& step) {
    for (StepTensor& t : in_.tensors) {
      if (!step.names.empty() && std::ranges::none_of(step.names, [&](std::string_view name) {
            return t.name.find(name) != t.name.npos;
          }))
        continue;
      std::vector<i64>& dims = t.boxes.dims;
      if (dims.size() != 1 && dims.size() != 2) continue;
      const i64 heads = number_of(step);
      need(heads > 0 && dims[0] % (2 * heads) == 0 && dims[0] / 2 <= kMostPairs,
           cat("does not have the rows of ", counted(heads, "head"), ", the number in config.json (",
               step.number, ")"));
      if (dims[0] > 0) t.boxes = t.boxes.interleaved(0, dims[0] / heads);
    }
    if (in_.tensors.size() == 1 && in_.targets.size() == 1) named_as_target();
  }

  void text_vision(const DiskStep& step) {
    need(in_.tensors.size() == 2, "has no tensor of the other kind of experts beside it");
    std::vector<StepTensor> out;
    for (std::size_t p = 0; p < in_.targets.size(); p++) {
      i64 expert = 0;
      for (const StepTensor& t : in_.tensors) {
        need(t.boxes.dims.size() == 3, "is not a stack of experts");
        const BoxedTensor part = parts_of(t.boxes, step.other, std::ssize(in_.targets))[p];
        for (i64 e = 0; e < part.dims[step.dim]; e++) {
          need(std::ssize(out) < in_.room, kTooMany);
          out.push_back({numbered(in_.targets[p], expert++), part.at(step.dim, e)});
        }
      }
    }
    in_.tensors = std::move(out);
  }

  void pad(const DiskStep& step) {
    BoxedTensor& tensor = only(1);
    const i64 rows = number_of(step);
    need(tensor.dims[0] <= rows,
         cat("has more rows than the ", with_commas(rows), " of config.json (", step.number, ")"));
    if (tensor.dims[0] < rows && !tensor.pieces.empty()) tensor.append_zeros(rows - tensor.dims[0]);
    named_as_target();
  }

  void queries() {
    const BoxedTensor whole = std::move(only(3));
    need(whole.dims.size() == 3 && whole.dims[1] == 4 && whole.dims[0] <= kMostPairs &&
             in_.targets.size() == 2,
         "is not four queries for each layer");
    std::vector<StepTensor> out;
    for (std::size_t part = 0; part < 2; part++) {
      BoxedTensor rows{{0, whole.dims[2]}, {}};
      for (i64 layer = 0; layer < whole.dims[0]; layer++)
        rows.append(0, whole.at(0, layer).every(0, {part == 0 ? 0 : 1, 2, part == 0 ? 3 : 1}));
      out.push_back({std::string(in_.targets[part]), std::move(rows)});
    }
    in_.tensors = std::move(out);
  }

  StepInput in_;
};

}  // namespace

std::vector<StepTensor> apply_steps(StepInput input, std::span<const DiskStep> steps) {
  return Steps(std::move(input)).all(steps);
}

}  // namespace mckpt::impl
