// mckpt layout SHAPE...: how Megatron-FSDP packs parameters of given shapes into one bucket. No file is read.
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
// Exit status 1: a shard would cut a row in two; the answer then names a number of ranks that does not.
#include "core/base/error.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/grid.h"
#include "core/fsdp/strategy.h"
#include "core/items/shape.h"
#include "tools/answers/layout_answer.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/options/parse_number.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

// "10x4", "10" or "scalar". Throws kUsage, and what Shape throws for sizes that overflow.
Shape parse_shape(std::string_view text) {
  if (text == "scalar") return {};
  std::vector<i64> dims;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('x', at), text.size());
    std::string_view digits = text.substr(at, end - at);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      throw Error(Code::kUsage, "the shape is not valid")
          .expected("sizes joined by x, as in 4096x128, or 10, or scalar")
          .found(cat("'", escaped(text), "'"));
    dims.push_back(parse_i64(digits, "SHAPE"));
    at = end + 1;
  }
  return Shape(dims);
}

}  // namespace

Exit layout_command(CommandLine& line) {
  std::vector<std::string> shapes;
  std::string strategy = "optim_grads_params", engine = "v1", outer = "replicate", dtype = "bf16";
  PackedShapes l;
  line.positional("SHAPE", shapes, "TP-local shapes in order of registration, such as 4096x128, 10 or scalar")
      .required();
  line.option("--world", l.packing.ranks, "ranks that share the bucket; default 1");
  line.option("--strategy|--data-parallel-sharding-strategy NAME", strategy,
              "no_shard, optim, optim_grads or optim_grads_params (default)")
      .choices({"no_shard", "optim", "optim_grads", "optim_grads_params"});
  line.option("--engine VERSION", engine, "v1 (default) or v2 of Megatron-FSDP").choices({"v1", "v2"});
  line.option("--hsdp|--num-distributed-optimizer-instances", l.packing.hsdp,
              "number of HSDP instances; the ranks are divided over them");
  line.option("--hsdp-outer HOW", outer, "how HSDP instances are related: replicate (default) or shard")
      .choices({"replicate", "shard"});
  line.option("--dtype TYPE", dtype, "data type of the parameters, for sizes in bytes; default bf16");
  line.description(
      "Shows how Megatron-FSDP packs parameters into one buffer. Exit status 1: a shard would cut a row in "
      "two, on which Megatron-FSDP v1 fails.");
  line.example("mckpt layout 10x4 10 --world 4");
  line.example("mckpt layout 4096x4096 4096 6144x4096 4096 28672x4096 4096x14336 --world 16");
  line.example("mckpt layout 2x6 4x5 --world 2 --engine v2 --json");
  line.parse();
  for (const std::string& s : shapes) l.shapes.push_back(parse_shape(s));
  l.packing.strategy = strategy_from_name(strategy);
  l.packing.engine = engine_from_name(engine);
  l.packing.outer = outer == "shard" ? HsdpOuter::kShard : HsdpOuter::kReplicate;
  l.dtype = parse_dtype(dtype, "--dtype");
  l.buffer = pack(l.shapes, l.packing);
  l.cuts = row_cuts(l.buffer);

  Output out(line.flags());
  out.json() ? write_layout_json(out, l) : write_layout_text(out, l);
  out.flush();
  return l.cuts.empty() ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt::impl
