// mckpt ls PATH... [GLOB]: one line for each tensor, from headers alone, unless --digest asks for the bytes.
//
//   name                                    dtype     shape     bytes  where
//   model.layers.0.self_attn.k_norm.weight  bfloat16  [8]          16  model-00001-of-00002.safetensors @ 6440
//   model.layers.0.self_attn.q_proj.weight  bfloat16  [32, 16]  1,024  model-00001-of-00002.safetensors @ 3352
//
// Several paths are several lists, each below its path. -q prints names only, for scripts. With --as, the
// list shows a rank of a training run (ls_as.h). Exit status 1: the checkpoint has a problem.
#include "convert/open/shard_facts.h"
#include "io/file/open_options.h"
#include "io/file/parallel.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "io/values/digest.h"
#include "io/values/tensor_reader.h"
#include "tools/answers/tensors/list.h"
#include "tools/commands/commands.h"
#include "tools/commands/ls_as.h"
#include "tools/options/base_flag.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/render/findings.h"
#include "tools/render/progress.h"
#include "tools/run/each_path.h"

namespace mckpt::impl {
namespace {

// The tensors of one checkpoint that are listed. `digests`: one for each tensor, or none.
struct Listed {
  std::string path;
  std::unique_ptr<Store> store;
  std::vector<i64> tensors;
  std::unique_ptr<Store> values{};  // of the store; of one rank's file as far as it has them
  std::vector<std::string> digests{};
  std::optional<ShardFacts> shard{};  // of one rank's file
  std::optional<Error> error{};       // then there is nothing else

  const std::string* digest(std::size_t i) const { return digests.empty() ? nullptr : &digests[i]; }
  const ShardFacts* facts() const { return shard ? &*shard : nullptr; }
};

void write_json(Output& out, bool lines, const std::vector<Listed>& lists) {
  std::vector<TensorRows> rows;
  for (const Listed& l : lists)
    rows.push_back({l.path,
                    l.store.get(),
                    l.tensors.size(),
                    [&l](JsonWriter& json, std::size_t i) {
                      write_tensor(json, *l.store, l.tensors[i], l.digest(i), l.facts());
                    },
                    {},
                    l.error ? &*l.error : nullptr});
  write_rows(out, "ls", lines, rows);
}

void write_text(Output& out, const std::vector<Listed>& lists, bool names_only) {
  for (const Listed& l : lists) {
    if (l.error) continue;
    if (names_only) {
      for (i64 t : l.tensors) out.line(escaped(l.store->name(t), SIZE_MAX));
      continue;
    }
    if (lists.size() > 1)
      out.line(cat(&l == &lists[0] ? "" : "\n", out.styled(Style::kBold, escaped(l.path, 4096))));
    write_tensors(out, *l.store, l.tensors, l.digests, l.facts());
  }
}

}  // namespace

Exit ls_command(CommandLine& line) {
  ChosenPaths chosen;
  bool digest = false;
  int threads = default_threads();
  chosen.declare(line);
  line.flag("--digest", digest, "add the SHA-256 of each tensor's contiguous bytes (reads all data)")
      .common();
  line.threads(threads, "threads that read; by default one for each processor").common();
  BaseFlag base;
  base.declare(line);
  LsAs as;
  as.declare(line);
  line.description("Lists every tensor by name, from headers alone. With -q, prints names only.");
  line.example("mckpt ls model.safetensors '*.layers.0.*'");
  line.example("mckpt ls ckpt model.safetensors '*norm*'");
  line.example("mckpt ls ckpt --jsonl --digest > tensors.jsonl");
  line.example("mckpt ls Qwen3-30B-A3B --as megatron --tp 2 --ep 4 --rank 3");
  line.parse();
  chosen.settle();
  base.settle(line, chosen.paths);
  if (as.chosen()) return as.run(line.flags(), chosen.only("--as"), chosen.choice, digest, threads);

  EachPath each(line.flags(), chosen.several());
  std::vector<Listed> lists;
  i64 total = 0;
  for (const std::string& path : chosen.paths) {
    Listed& l = lists.emplace_back(Listed{path, nullptr, {}});
    l.error = each.attempt(path, [&] {
      l.store = open_store(path, line.opening());
      l.tensors = chosen.choose(*l.store);
      l.shard = shard_facts(*l.store);
      l.values = local_view(*l.store);
      for (i64 t : digest ? l.tensors : std::vector<i64>()) total += TensorReader::tensor_bytes(*l.values, t);
    });
  }
  if (digest) {
    Progress progress(line.flags(), "digest", total);
    for (Listed& l : lists)
      if (!l.error)
        l.error = each.attempt(l.path, [&] {
          l.digests = tensor_digests(*l.values, l.tensors, threads, [&](i64 bytes) { progress.add(bytes); });
        });
  }
  check_unchanged(line.opening());
  Output out(line.flags());
  out.json() ? write_json(out, line.flags().jsonl, lists) : write_text(out, lists, line.flags().quiet);
  out.flush();
  for (const Listed& l : lists)
    if (!l.error) each.ended(report_findings(line.flags(), *l.store));
  return each.exit();
}

}  // namespace mckpt::impl
