// mckpt stats PATH... [GLOB]: what the values of tensors are like. Reads all data of the tensors chosen, and
// shows progress.
//
//   name               dtype     shape     min   max   mean     std     L2  zeros  NaN  Inf  min to max
//   model.norm.weight  bfloat16  [16]   0.8086  1.18  0.991  0.0812  3.977      0    0    0  |.    :#: ....  .|
//
//   L2 of all parameters  3.977  (1 tensor)
//
// Minimum, maximum, mean, deviation, norm and histogram count the finite values only; NaN and infinities are
// counted, with the index of the first. A sharded tensor has the norm of the whole. JSON has exact
// numbers.
#include "tools/answers/tensors/stats.h"
#include "core/base/error.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/open_options.h"
#include "io/file/parallel.h"
#include "io/json/json_writer.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "io/values/stats_list.h"
#include "io/values/tensor_stats.h"
#include "tools/answers/tensors/list.h"
#include "tools/commands/commands.h"
#include "tools/options/base_flag.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"
#include "tools/run/each_path.h"

namespace mckpt::impl {
namespace {

// The tensors of one checkpoint, and what their values are like.
struct Measured {
  std::string path;
  std::unique_ptr<Store> store;
  std::vector<i64> tensors;
  StatsList stats{};
  std::optional<Error> error{};  // then there is nothing else
};

void write_json(Output& out, bool lines, const std::vector<Measured>& all) {
  std::vector<TensorRows> rows;
  for (const Measured& m : all)
    rows.push_back(
        {m.path, m.store.get(), m.tensors.size(),
         [&m](JsonWriter& json, std::size_t i) { write_stats(json, *m.store, m.tensors[i], m.stats[i]); },
         [&m](JsonWriter& json) {
           GlobalNorm norm = global_norm(*m.store, m.tensors, m.stats);
           norm.l2 ? json.field("l2", *norm.l2) : json.null_field("l2");
           json.field("l2_tensors", norm.tensors);
         },
         m.error ? &*m.error : nullptr});
  write_rows(out, "stats", lines, rows);
}

void write_text(Output& out, const std::vector<Measured>& all) {
  for (const Measured& m : all) {
    if (m.error) continue;
    if (all.size() > 1)
      out.line(cat(&m == &all[0] ? "" : "\n", out.styled(Style::kBold, escaped(m.path, 4096))));
    write_stats(out, *m.store, m.tensors, m.stats);
  }
}

// The tensors that are chosen. The names of codes and scales, which are not among the values of a quantised
// model, are answered with the flag that shows them.
std::vector<i64> choose(const ChosenPaths& chosen, const Store& store, const std::string& path,
                        const OpenOptions& opening) {
  try {
    return chosen.choose(store);
  } catch (Error& e) {
    if (e.code() != Code::kNoSuchTensor || !dequantized_view(store)) throw;
    try {
      const std::unique_ptr<Store> stored = open_store(path, opening);
      e.help(cat("--raw   shows what is stored, with ",
                 counted(std::ssize(chosen.choice.choose(*stored)), "tensor"), " of such names"));
    } catch (const Error&) {
      // Nor are they the names of what is stored.
    }
    throw;
  }
}

// Opens all checkpoints before the first is read, so that a mistake in a name costs no time.
std::vector<Measured> measure(const CommandLine& line, const ChosenPaths& chosen, int bins, int threads,
                              bool raw, EachPath& each) {
  std::vector<Measured> all;
  i64 total = 0;
  for (const std::string& path : chosen.paths) {
    Measured& m = all.emplace_back(Measured{path, nullptr, {}});
    m.error = each.attempt(path, [&] {
      m.store = local_values(raw ? open_store(path, line.opening()) : open_values(path, line.opening()));
      if (!raw) warn_of_codes(line.flags(), *m.store, path);
      m.tensors = choose(chosen, *m.store, path, line.opening());
      total += stats_bytes(*m.store, m.tensors, bins);
    });
  }
  Progress progress(line.flags(), "stats", total);
  for (Measured& m : all)
    if (!m.error)
      m.error = each.attempt(m.path, [&] {
        each_tensor_stats(
            *m.store, m.tensors, bins, threads, [&](i64 bytes) { progress.add(bytes); },
            [&](const TensorStats& s) { m.stats.add(s); });
      });
  check_unchanged(line.opening());
  return all;
}

}  // namespace

Exit stats_command(CommandLine& line) {
  ChosenPaths chosen;
  int threads = default_threads();
  i64 bins = 16;
  bool raw = false;
  chosen.declare(line);
  line.option("--bins", bins, "bins of the histogram between min and max; default 16, 0 for none").common();
  line.flag("--raw", raw, "of quantised weights: codes and scales as they are stored, not the values")
      .common();
  line.threads(threads, "threads that read; by default one for each processor").common();
  BaseFlag base;
  base.declare(line);
  line.description(
      "Prints minimum, maximum, mean, standard deviation (divided by n), L2 norm and a histogram of the finite values of every tensor, the numbers of zeros, NaN and infinities, and the index of the first NaN or infinity. Reads all data.");
  line.description(
      "Norms are those of whole tensors, however they are sharded. The last line is the L2 norm of all parameters that are listed, without states of optimizers: the global norm of the model. In the files of Megatron's ranks a line is one rank's part of a parameter; the last line counts copies of several ranks once, by the config in hf_assets.");
  line.example("mckpt stats model.safetensors '*.mlp.*'");
  line.example("mckpt stats Qwen3-0.6B ckpt --bins 0");
  line.example("mckpt stats ckpt --jsonl > stats.jsonl");
  line.parse();
  if (bins < 0 || bins > 4096)
    throw Error(Code::kUsage, "--bins: not a possible number of bins").expected("0 to 4096").found(bins);
  chosen.settle();
  base.settle(line, chosen.paths);

  EachPath each(line.flags(), chosen.several());
  const std::vector<Measured> all = measure(line, chosen, static_cast<int>(bins), threads, raw, each);
  Output out(line.flags());
  out.json() ? write_json(out, line.flags().jsonl, all) : write_text(out, all);
  out.flush();
  for (const Measured& m : all)
    if (!m.error) each.ended(report_findings(line.flags(), *m.store));
  return each.exit();
}

}  // namespace mckpt::impl
