// mckpt ls PATH [GLOB]: one line for each tensor, from headers alone, unless --digest asks for the bytes.
//
//   name                                    dtype     shape     bytes  where
//   model.layers.0.self_attn.k_norm.weight  bfloat16  [8]          16  model-00001-of-00002.safetensors @ 6440
//   model.layers.0.self_attn.q_proj.weight  bfloat16  [32, 16]  1,024  model-00001-of-00002.safetensors @ 3352
//
// -q prints names only, for scripts. With --as, the list is that of a rank of a training run (ls_as.h). Exit
// status 1: the checkpoint has a problem.
#include "io/choice/tensor_choice.h"
#include "io/file/open_options.h"
#include "io/file/parallel.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/values/digest.h"
#include "tools/answers/tensor_list.h"
#include "tools/commands/commands.h"
#include "tools/commands/ls_as.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"

namespace mckpt::impl {
namespace {

// One object with all tensors and problems, or (`lines`) an object a line without them.
void write_json(Output& out, bool lines, const Store& store, std::span<const i64> tensors,
                std::span<const std::string> digests) {
  AnswerJson json(out);
  if (!lines) json.begin_answer("ls", is_sound(store)).key("tensors").begin_array();
  for (std::size_t i = 0; i < tensors.size(); i++) {
    write_tensor(json, store, tensors[i], digests.empty() ? nullptr : &digests[i]);
    if (lines) out.write("\n");
  }
  if (lines) return;
  json.end_array().key("problems");
  write_findings(json, store.findings());
  json.end_answer();
}

}  // namespace

Exit ls_command(CommandLine& line) {
  std::string path;
  TensorChoice choice;
  bool digest = false;
  int threads = default_threads();
  line.positional("PATH", path, "a checkpoint: a file or a folder").required();
  declare_choice(line, choice);
  line.flag("--digest", digest, "add the SHA-256 of each tensor's contiguous bytes (reads all data)");
  line.threads(threads, "threads that read; by default one for each processor");
  LsAs as;
  as.declare(line);
  line.description("Lists every tensor by name, from headers alone. With -q, prints names only.");
  line.example("mckpt ls model.safetensors '*.layers.0.*'");
  line.example("mckpt ls ckpt --jsonl --digest > tensors.jsonl");
  line.example("mckpt ls Qwen3-30B-A3B --as megatron --tp 2 --ep 4 --rank 3");
  line.parse();
  if (as.chosen()) return as.run(line.flags(), path, choice, digest, threads);

  std::unique_ptr<Store> store = open_store(path, line.opening());
  std::vector<i64> tensors = choice.choose(*store);
  std::vector<std::string> digests;
  if (digest) digests = tensor_digests(*store, tensors, threads);
  check_unchanged(store->opening());
  Output out(line.flags());
  if (out.json()) {
    write_json(out, line.flags().jsonl, *store, tensors, digests);
  } else if (line.flags().quiet) {
    for (i64 t : tensors) out.line(escaped(store->name(t), SIZE_MAX));
  } else {
    write_tensors(out, *store, tensors, digests);
  }
  out.flush();
  return report_findings(line.flags(), *store);
}

}  // namespace mckpt::impl
