// mckpt layout SHAPE... | MODEL [GLOB]: how Megatron-FSDP packs parameters of given shapes into one bucket,
// or a whole model into all its buckets. No data is read.
//
//   $ mckpt layout 10x4 10 --world 4
//      #  shape    offset  rows  items of each rank
//   a  0  [10, 4]       0    10  r0 [0, 16)  r1 [16, 32)  r2 [32, 40)
//   b  1  [10]         40    10  r2 [0, 8)  r3 [8, 10)
//
//   0                16               32               48
//   |aaaaaaaaaaaaaaaa|aaaaaaaaaaaaaaaa|aaaaaaaabbbbbbbb|bb..............|
//    r0               r1               r2               r3
//
//   $ mckpt layout Qwen3-30B-A3B --ep 4 --dp 16      a line for each group; model.h
//
// Exit status 1: a shard would cut a row in two; the answer then names a number of ranks that does not.
#include "core/base/error.h"
#include "core/fsdp/complete_grid.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/shape.h"
#include "mappings/fsdp/setup.h"
#include "tools/answers/layout/shapes.h"
#include "tools/commands/commands.h"
#include "tools/commands/layout/model.h"
#include "tools/options/command_line.h"
#include "tools/options/of_commands/layout_options.h"
#include "tools/options/parse_number.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// Throws Error(kUsage) for a word that is not a shape; if it is the first word, there is no model of that
// name either.
[[noreturn]] void refuse_word(std::string_view text) {
  Error e(Code::kUsage, "the shape is not valid");
  if (bool digits = text.find_first_not_of("0123456789x") == text.npos; !digits)
    e.note(names_model(std::string(text)) ? "a model is the first argument, and has no shapes beside it"
                                          : "no file or folder has that name, so it is read as a shape");
  throw e.expected("sizes joined by x, as in 4096x128, or 10, or scalar; or the folder of a model")
      .found(cat("'", escaped(text), "'"));
}

// "10x4", "10" or "scalar". Throws kUsage, and what Shape throws.
Shape parse_shape(std::string_view text) {
  if (text == "scalar") return {};
  std::vector<i64> dims;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('x', at), text.size());
    std::string_view digits = text.substr(at, end - at);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) refuse_word(text);
    dims.push_back(parse_i64(digits, "SHAPE"));
    at = end + 1;
  }
  return Shape(dims);
}

PackedShapes packed_shapes(const std::vector<std::string>& words, const LayoutFlags& flags) {
  PackedShapes l;
  for (const std::string& s : words) l.shapes.push_back(parse_shape(s));
  refuse_idle_outer(flags.grid.hsdp(), flags.grid.outer());
  FsdpSetup setup = flags.fsdp.setup(Grid{});
  l.packing = {setup.engine, setup.strategy, flags.world.value_or(1), flags.grid.hsdp(), flags.grid.outer()};
  l.dtype = parse_dtype(flags.dtype.value_or("bf16"), "--dtype");
  l.buffer = pack(l.shapes, l.packing);
  l.cuts = row_cuts(l.buffer);
  return l;
}

Exit answer_shapes(CommandLine& line, const std::vector<std::string>& words, const LayoutFlags& flags) {
  flags.refuse_for_shapes(line);
  PackedShapes l;
  try {
    l = packed_shapes(words, flags);
  } catch (const Error& e) {
    // All sizes come from the command line: a size that is too large is a wrong argument.
    if (e.code() != Code::kSizeOverflow) throw;
    throw Error(Code::kUsage, e.message()).found(e.found());
  }
  Output out(line.flags());
  out.json() ? write_layout_json(out, l) : write_layout_text(out, l);
  out.flush();
  return l.cuts.empty() ? Exit::kOk : Exit::kNo;
}

}  // namespace

Exit layout_command(CommandLine& line) {
  std::vector<std::string> words;
  LayoutFlags flags;
  line.positional(
          "MODEL|SHAPE", words,
          "a Hugging Face folder or a checkpoint, and globs of its parameters or of the Hugging Face tensors that they are made of; or TP-local shapes in order of registration, such as 4096x128, 10 or scalar")
      .required();
  flags.declare(line);
  line.description(
      "Shows how Megatron-FSDP packs the parameters of a model into flat buffers: a line for each buffer, and totals. With GLOB or --group, in detail: why parameters share a buffer, and what every rank has of each. With shapes, one buffer of parameters of these shapes.");
  line.description(
      "Buffers are those of one tensor- and expert-parallel cell, which --rank chooses. Sizes and strategy that are not given are those in the args of the checkpoint, if MODEL is one that has args. No data is read: a folder with only config.json will do, also that of a quantised model. Exit status 1: a shard would cut a row in two, on which Megatron-FSDP v1 fails.");
  line.example("mckpt layout Qwen3-30B-A3B --ep 4 --dp 16");
  line.example("mckpt layout Qwen3-30B-A3B --ep 4 --dp 16 '*.router.weight'");
  line.example("mckpt layout Qwen3-30B-A3B --ep 4 --dp 16 --group 1");
  line.example("mckpt layout 10x4 10 --world 4");
  line.example("mckpt layout 4096x4096 4096 6144x4096 4096 28672x4096 4096x14336 --world 16");
  line.example("mckpt layout 2x6 4x5 --world 2 --engine v2 --json");
  line.parse();
  return names_model(words[0]) ? answer_model(line, words, flags) : answer_shapes(line, words, flags);
}

}  // namespace mckpt::impl
