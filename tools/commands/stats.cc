// mckpt stats PATH [GLOB]: what the values of tensors are like. Reads all data of the tensors chosen, and
// shows progress.
//
//   name               dtype     shape     min   max   mean     std     L2  zeros  NaN  Inf  min to max
//   model.norm.weight  bfloat16  [16]   0.8086  1.18  0.991  0.0812  3.977      0    0    0  |.    :#: ....  .|
//
//   L2 of all parameters  3.977  (1 tensor)
//
// Minimum, maximum, mean, deviation, norm and histogram are those of the finite values; NaN and infinities are
// counted, with the index of the first. A sharded tensor has the norm of the whole. JSON has exact numbers.
#include "core/base/error.h"
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "io/file/parallel.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/tensor_reader.h"
#include "io/values/tensor_stats.h"
#include "tools/answers/stats_text.h"
#include "tools/commands/commands.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"

namespace mckpt::impl {
namespace {

void write_json(Output& out, bool lines, const Store& store, std::span<const i64> tensors,
                std::span<const TensorStats> stats) {
  AnswerJson json(out);
  if (!lines) json.begin_answer("stats", is_sound(store)).key("tensors").begin_array();
  for (std::size_t i = 0; i < tensors.size(); i++) {
    write_stats(json, store, tensors[i], stats[i]);
    if (lines) out.write("\n");
  }
  if (lines) return;
  GlobalNorm all = global_norm(store, tensors, stats);
  json.end_array().field("l2", all.l2).field("l2_tensors", all.tensors).key("problems");
  write_findings(json, store.findings());
  json.end_answer();
}

}  // namespace

Exit stats_command(CommandLine& line) {
  std::string path;
  TensorChoice choice;
  int threads = default_threads();
  i64 bins = 16;
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  declare_choice(line, choice);
  line.option("--bins", bins, "bins of the histogram between min and max; default 16, 0 for none");
  line.threads(threads, "threads that read; by default one for each processor");
  line.description(
      "Prints minimum, maximum, mean, standard deviation (divided by n), L2 norm and a histogram of the "
      "finite "
      "values of every tensor, the numbers of zeros, NaN and infinities, and the index of the first NaN or "
      "infinity. Reads all data.");
  line.description(
      "Norms are those of whole tensors, however they are sharded. The last line is the L2 norm of all "
      "parameters "
      "that are listed, without states of optimizers: the global norm of the model.");
  line.example("mckpt stats model.safetensors '*.mlp.*'");
  line.example("mckpt stats ckpt --jsonl > stats.jsonl");
  line.parse();
  if (bins < 0 || bins > 4096)
    throw Error(Code::kUsage, "--bins: not a possible number of bins").expected("0 to 4096").found(bins);

  std::unique_ptr<Store> store = open_store(path, line.opening());
  std::vector<i64> tensors = choice.choose(*store);
  std::vector<TensorStats> stats;
  {
    i64 total = 0;
    for (i64 t : tensors) total += TensorReader::tensor_bytes(*store, t);
    Progress progress(line.flags(), "stats", total);
    stats = tensor_stats(*store, tensors, static_cast<int>(bins), threads,
                         [&](i64 bytes) { progress.add(bytes); });
    check_unchanged(store->opening());
  }
  Output out(line.flags());
  out.json() ? write_json(out, line.flags().jsonl, *store, tensors, stats)
             : write_stats(out, *store, tensors, stats);
  out.flush();
  return report_findings(line.flags(), *store);
}

}  // namespace mckpt::impl
