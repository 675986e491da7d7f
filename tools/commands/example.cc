// mckpt example DIR: a tiny model, to try the other commands on where no model is at hand.
//
//   $ mckpt example tiny_qwen3_moe
//   tiny_qwen3_moe
//
// The folder has the files, names and shapes of a Qwen3 mixture of experts, of 2 layers with 4 experts each;
// its weights are noise. The bytes are in the program: tools/CMakeLists.txt puts the bytes of
// test_data/models/tiny_qwen3_moe there, so that the model is the one of the tests and of the pages.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/output/output_files.h"
#include "io/output/output_rules.h"
#include "io/output/staged_folder.h"
#include "io/output/unfinished.h"
#include "tools/commands/commands.h"
#include "tools/options/command_line.h"
#include "tools/render/answer_json.h"
#include "tools/render/output.h"

namespace mckpt::impl {
namespace {

struct ExampleFile {
  std::string_view name, bytes;
};

constexpr ExampleFile kFiles[] = {
#include "example_files.inc"
};

i64 total_bytes() {
  i64 total = 0;
  for (const ExampleFile& file : kFiles) total += std::ssize(file.bytes);
  return total;
}

// Throws kOutputExists if the name is taken, kNoRoom, kWriteFailed.
void write_model(const std::string& folder) {
  refuse_empty_path(folder, "the folder");
  const StagedFolder::Options scratch{.durable = false, .instead = "remove it first", .resumable = false};
  const std::string plan = kNotResumed;
  StagedFolder::check(folder, scratch, plan, total_bytes(), std::ssize(kFiles));
  StagedFolder staged(folder, scratch, plan);
  std::vector<OutputFile> files;
  for (const ExampleFile& file : kFiles) files.push_back({std::string(file.name), std::ssize(file.bytes)});
  OutputFiles out(staged.folder(), files);
  i32 at = 0;
  for (const ExampleFile& file : kFiles)
    out.write(at++, 0, std::span(reinterpret_cast<const u8*>(file.bytes.data()), file.bytes.size()));
  staged.publish();
}

}  // namespace

Exit example_command(CommandLine& line) {
  std::string folder;
  line.positional("DIR", folder, "the folder to make, with any name").required();
  line.description(
      "Writes a Hugging Face folder of 23 KiB with the config, tensor names and file layout of a Qwen3 mixture of experts: 2 layers, 4 experts, 7,408 parameters in bfloat16. The weights are noise, and there is no tokenizer: the model is for trying commands, and computes nothing of use. It is the same at each run.");
  line.example("mckpt example tiny_qwen3_moe");
  line.example("mckpt example tiny_qwen3_moe && mckpt inspect tiny_qwen3_moe");
  line.example("mckpt example tiny && mckpt convert hf-to-fsdp tiny ckpt --tp 2 --ep 4");
  line.parse();
  write_model(folder);
  Output out(line.flags());
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("example", true).field("output", folder);
    json.field("files", std::ssize(kFiles)).field("bytes", total_bytes());
    json.end_answer();
  } else {
    out.line(folder);
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace mckpt::impl
