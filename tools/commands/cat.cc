// mckpt cat: the values of one tensor, or of a part of it.
//
//   $ mckpt cat tiny_qwen3_moe 'model.norm.weight[:6]'
//   model.norm.weight  bfloat16  [6] of [16]                     (on stderr)
//   0.96875  0.93359375  0.80859375  1.09375  0.98046875  1.0625
//
//   {"schema": "mckpt.cat/1", "ok": true, "name": "model.norm.weight", "dtype": "bfloat16", "tensor_shape": [16],
//    "offsets": [0], "shape": [2], "values": [0.96875, 0.93359375], "problems": []}         [:2] with --json
//
// The argument is first looked up as a name, because a name may itself end in brackets; if no tensor has it,
// the brackets at its end are a slice, as in numpy. Values are printed in the shortest form that reads back
// as the same value. A tensor of more than 1000 values is shown by its edges unless a slice was given.
#include "core/base/argument.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/quantized/dequantized_store.h"
#include "io/choice/slice.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "io/store/lone_shard.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/value_rows.h"
#include "tools/answers/tensors/values.h"
#include "tools/commands/commands.h"
#include "tools/options/base_flag.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

// More values than this are shown by their edges, unless a slice asked for them.
constexpr i64 kManyValues = 1000;

// The tensor and the range of each dimension that is printed. A range that came from a single index ([3] and
// not [3:4]) is not a dimension of the answer.
struct Target {
  i64 tensor = -1;
  std::vector<SliceRange> ranges;
  bool sliced = false;

  std::vector<i64> shape() const {
    std::vector<i64> out;
    for (const SliceRange& r : ranges)
      if (!r.single) out.push_back(r.end - r.begin);
    return out;
  }
  std::vector<i64> offsets() const {
    std::vector<i64> out;
    for (const SliceRange& r : ranges) out.push_back(r.begin);
    return out;
  }
};

// A name that is not of a tensor but of an object, or the beginning of the names of objects: "args" of
// "args.bf16".
void refuse_object(const Store& store, const std::string& name) {
  if (find_tensor(store, name) >= 0) return;
  for (const Object& o : store.objects()) {
    bool inside = o.name.size() > name.size() && o.name.starts_with(name) && o.name[name.size()] == '.';
    if (o.name != name && !inside && o.name != cat("objects.", name)) continue;
    throw Error(Code::kNoSuchTensor, cat("'", escaped(name), "' is an object and no tensor"))
        .file(store.root())
        .help(cat("mckpt inspect ", as_argument(store.root()), " --args   shows the objects"));
  }
}

// Whether the text is the name of a tensor, with or without a slice behind it.
bool has_tensor(const Store& store, const std::string& text) {
  return find_tensor(store, text) >= 0 || find_tensor(store, split_sliced_name(text).name) >= 0;
}

// Finds the tensor and reads the slice. Throws kNoSuchTensor with the nearest name, kUsage for a slice that
// does not fit the shape.
Target find_target(const Store& store, const std::string& text) {
  Target target;
  // A name may end in brackets itself.
  SlicedName parts = {text, "", false};
  target.tensor = find_tensor(store, text);
  if (target.tensor < 0) {
    parts = split_sliced_name(text);
    refuse_object(store, parts.name);
    target.tensor = tensor_named(store, parts.name);
  }
  target.ranges = parse_slice(parts.slice, store.dims(target.tensor));
  target.sliced = parts.sliced;
  return target;
}

// Numbers with offsets and shape of the slice, so that a program can place the values in the tensor.
void write_json(Output& out, const GlobalFlags& flags, const Store& store, const Target& target) {
  ValueRows values(store, target.tensor, target.ranges, false);
  Progress progress(flags, "cat", values.bytes());
  values.watch([&](i64 bytes) { progress.add(bytes); });
  AnswerJson json(out);
  json.begin_answer("cat", is_sound(store)).field("name", store.name(target.tensor));
  json.field("dtype", dtype_name(store.dtype(target.tensor)));
  json.field("tensor_shape", store.dims(target.tensor));
  json.field("offsets", std::span<const i64>(target.offsets()));
  json.field("shape", std::span<const i64>(target.shape())).key("values");
  write_values(json, values);
  check_unchanged(store.opening());
  json.key("problems");
  write_findings(json, store.findings());
  json.end_answer();
}

// The name goes to stderr, so that stdout has numbers only.
void write_text(Output& out, const GlobalFlags& flags, const Store& store, const Target& target) {
  std::vector<i64> shape = target.shape();
  note(flags, cat(escaped(store.name(target.tensor)), "  ", dtype_name(store.dtype(target.tensor)), "  ",
                  dims_to_string(shape),
                  target.sliced ? cat(" of ", dims_to_string(store.dims(target.tensor))) : ""));
  bool many = Shape(shape).items() > kManyValues;
  ValueRows values(store, target.tensor, target.ranges, !target.sliced && many);
  Progress progress(flags, "cat", values.bytes());
  values.watch([&](i64 bytes) { progress.add(bytes); });
  write_values(out, values);
  check_unchanged(store.opening());
}

}  // namespace

Exit cat_command(CommandLine& line) {
  std::string path, name;
  bool raw = false;
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  line.positional("NAME[SLICE]", name, "a tensor, or a part of it: 'lm_head.weight[0:4, :8]'").required();
  line.flag("--raw", raw, "of a quantised weight: its codes as they are stored, not the values").common();
  BaseFlag base;
  base.declare(line);
  line.description(
      "Prints values in the shortest decimal form that reads back as the same value. Without a slice, only the first and last items of each dimension of a large tensor are printed. A slice may span several shards of a tensor.");
  line.example("mckpt cat model.safetensors 'model.norm.weight'");
  line.example("mckpt cat ckpt 'model.module.decoder.final_layernorm.weight[:8]'");
  line.example("mckpt cat Qwen3-0.6B 'lm_head.weight[-1, :16]' --json");
  line.parse();
  base.settle(line, {&path, 1});

  std::unique_ptr<Store> store = raw ? open_store(path, line.opening()) : open_values(path, line.opening());
  if (!raw) warn_of_codes(line.flags(), *store, path);
  // Scales are not tensors of the view over quantised weights, but of the files.
  if (!raw && dequantized_view(*store) && !has_tensor(*store, name)) store = open_store(path, line.opening());
  store = local_values(std::move(store));
  Target target = find_target(*store, name);
  Output out(line.flags());
  out.json() ? write_json(out, line.flags(), *store, target) : write_text(out, line.flags(), *store, target);
  out.flush();
  return report_findings(line.flags(), *store);
}

}  // namespace mckpt::impl
