// mckpt verify PATH... [--against SRC]: whether a checkpoint is whole and sound by itself, and whether it
// holds what converting another one would write.
//
//   pass  files    2 files         are there, sizes fit
//   pass  format   2 files         headers are well formed
//   pass  coverage 45 tensors      each item in one chunk
//   FAIL  values   7,408 values    NaN and infinities              findings are listed below their check
//   tiny_qwen3_moe: 1 check failed
//
// All checks are the library's (convert/compare/verify.h). Findings never end the run: everything is checked
// and reported. Exit status 0: sound, 1: problems, or not equal.
#include "convert/compare/verify.h"

#include <algorithm>

#include "convert/asked/compare.h"
#include "core/base/error.h"
#include "io/file/parallel.h"
#include "options/fields.h"
#include "tools/answers/verify_json.h"
#include "tools/answers/verify_text.h"
#include "tools/commands/commands.h"
#include "tools/options/as_given.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/run/each_path.h"
#include "tools/run/shown_work.h"

namespace mckpt::impl {
namespace {

// The answer about one path.
struct Answer {
  Verified verified{};
  std::optional<Error> error{};  // then there is no other answer

  bool sound() const { return !error && verified.report.sound(); }
};

void write_json(Output& out, const std::vector<std::string>& paths, const std::vector<Answer>& answers) {
  AnswerJson json(out);
  CheckpointAnswers all(json, "verify", std::ranges::all_of(answers, &Answer::sound), paths.size() > 1);
  for (std::size_t i = 0; i < answers.size(); i++) {
    all.begin(answers[i].sound(), paths[i]);
    if (answers[i].error)
      write_path_error(json, *answers[i].error);
    else
      write_verified_json(json, answers[i].verified);
    all.end();
  }
  all.end_all();
}

// Checkpoints one after the other. Text is printed as soon as a checkpoint is done; JSON begins with the
// verdict on all, so it waits for the last.
Exit verify_all(const CommandLine& line, const std::vector<std::string>& paths,
                const VerifyOptions& options) {
  const GlobalFlags& flags = line.flags();
  Output out(flags);
  std::vector<Answer> answers;
  EachPath each(flags, paths.size() > 1);
  for (const std::string& path : paths) {
    Answer answer;
    answer.error = each.attempt(path, [&] {
      ShownWork work(flags);
      answer.verified = tell_damage(flags, [&] { return verify(path, options, work); });
    });
    for (const Oddities& o : answer.verified.oddities) tell_findings(flags, o.findings, o.root);
    if (!answer.error) each.ended(answer.sound() ? Exit::kOk : Exit::kNo);
    if (!out.json()) {
      if (&path != &paths[0] && !flags.quiet) out.line("");
      if (answer.error)
        out.line(cat(escaped(path, 4096), ": cannot be verified: ", escaped(answer.error->message())));
      else
        write_verified_text(out, path, answer.verified, flags);
      out.flush();
    }
    if (out.json()) answers.push_back(std::move(answer));
  }
  if (out.json()) write_json(out, paths, answers);
  out.flush();
  if (paths.size() > 1)
    note(flags, "each path was verified by itself; `mckpt verify A --against B` compares two");
  return each.exit();
}

}  // namespace

Exit verify_command(CommandLine& line) {
  std::vector<std::string> paths;
  std::optional<std::string> source;
  mckpt::VerifyOptions alone;
  mckpt::CompareOptions against;
  alone.threads = default_threads();
  line.positional("PATH", paths, "checkpoints: files or folders").required();
  FieldFlags flags(line);
  fields(alone, flags);
  line.heading("Comparison");
  line.option(
          "--against SRC", source,
          "the source of PATH: PATH must contain, bit for bit, what a conversion of SRC writes; objects are compared by value, and objects that are not compared are named")
      .common();
  line.only_with("--against");
  fields(against, flags);
  line.description(
      "Checks that a checkpoint is whole and sound by itself. With --against, compares it with SRC instead, tensor by tensor and object by object; run both to know both. Reads all data and changes nothing. Exit status: 0 sound, or equal; 1 problems were found.");
  line.description(
      "By itself: files and sizes, headers, the index, that chunks cover every tensor exactly once, each chunk's own header, stored CRC-32 sums, NaN, infinities and implausible values, experts with equal bytes, the tensors of a Hugging Face model against its config.json, and other checkpoints and JSON files in the folder. In a folder that mckpt wrote, every file is also compared with its digest in mckpt_manifest.json. Everything else in the folder is named as not read.");
  line.description("With -q, checks that pass are not listed; the last line is the verdict.");
  line.example("mckpt verify ckpt");
  line.example("mckpt verify ckpt model.safetensors --json");
  line.example("mckpt verify checkpoint-500 --assets Qwen3-0.6B");
  line.example("mckpt verify ckpt --against Qwen3-30B-A3B");
  line.example("mckpt verify ckpt --report ckpt.json --report ckpt.md");
  line.example("mckpt verify ckpt --card ckpt.json");
  line.parse();
  std::vector<std::string> all = paths;
  if (source) all.push_back(*source);
  if (source && paths.size() > 1)
    throw Error(Code::kUsage, "--against compares one PATH").found(counted(std::ssize(paths), "path"));
  if ((alone.card || !alone.cards.report.empty()) && paths.size() > 1)
    throw Error(Code::kUsage, "a card is of one PATH").found(counted(std::ssize(paths), "path"));
  FieldsOfEveryCommand of_every_command(line);
  fields(alone, of_every_command);
  alone.cards.command = as_given(line);
  const Opening opening{all, line.opening().helper_folders};
  VerifyOptions options = verify_options(alone, opening);
  if (source) {
    const CheckpointOptions opened = options.compare.opening;
    against.model_dict = alone.model_dict, against.opening.accept = alone.accept;
    options.against = source;
    options.compare = compare_options(against, opening);
    options.compare.opening.assets = opened.assets;
    options.compare.opening.model.files = opened.model.files;
  }
  return verify_all(line, paths, options);
}

}  // namespace mckpt::impl
